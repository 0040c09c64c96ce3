// The routes of a system's API object, which comes to be only when the system starts: they can be listed
// before that, and called after.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "net/router.h"

namespace tabella::house {

template <class Api>
class Routes {
 public:
  // Both must outlive the router's last request.
  Routes(net::Router& router, const std::unique_ptr<Api>& api) : router_(router), api_(api) {}

  void add(net::Route route, boost::asio::awaitable<void> (Api::*handler)(net::Call&)) {
    route.handler = [&api = api_, handler](net::Call& call) { return ((*api).*handler)(call); };
    router_.add(std::move(route));
  }

 private:
  net::Router& router_;
  const std::unique_ptr<Api>& api_;
};

}  // namespace tabella::house

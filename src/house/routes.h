// What the handlers of a system need: their routes, and the answer to an error of the store.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "net/router.h"
#include "store/error.h"

namespace tabella::house {

// The routes of a system's API object, which comes to be only when the system starts: they can be listed
// before that, and called after.
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

// What a store could not do is our trouble and not the caller's: 503, which is worth another try, or 500; but
// for what it would never do.
inline void refuse(net::Call& call, const store::Error& error) {
  const auto code = error.code;
  call.refuse(code == store::ErrorCode::validation ? 400
              : code == store::ErrorCode::internal ? 500
                                                   : 503,
              error.message);
}

}  // namespace tabella::house

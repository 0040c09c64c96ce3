// What the handlers of a system need: their routes, and the answer to an error of the store.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/awaitable.hpp>

#include "base/text.h"
#include "net/router.h"
#include "store/error.h"

namespace tabella::house {

// What becomes of a parameter that a route does not list, in a request that changes something. Where it is
// ignored, one that is misspelt is a condition that nobody has looked at.
enum class Unlisted { ignored, refused };

// False: there is one, and that was answered.
inline bool has_only_listed(net::Call& call, const std::vector<std::string>& listed) {
  for (const auto& [name, value] : call.target.query) {
    if (std::ranges::find(listed, name) != listed.end()) continue;
    call.refuse(400, fmt::format("?{}= is not known here", printable(name)));
    return false;
  }
  return true;
}

// The routes of a system's API object, which comes to be only when the system starts: they can be listed
// before that, and called after.
template <class Api>
class Routes {
 public:
  // Both must outlive the router's last request.
  Routes(net::Router& router, const std::unique_ptr<Api>& api, Unlisted unlisted = Unlisted::ignored)
      : router_(router), api_(api), unlisted_(unlisted) {}

  void add(net::Route route, boost::asio::awaitable<void> (Api::*handler)(net::Call&)) {
    if (unlisted_ == Unlisted::refused && route.method != "GET") {
      std::vector<std::string> listed;
      for (const auto& parameter : route.query) listed.push_back(parameter.name);
      route.handler = [&api = api_, handler, listed = std::move(listed)](net::Call& call) {
        return has_only_listed(call, listed) ? ((*api).*handler)(call) : nothing();
      };
    } else {
      route.handler = [&api = api_, handler](net::Call& call) { return ((*api).*handler)(call); };
    }
    router_.add(std::move(route));
  }

 private:
  static boost::asio::awaitable<void> nothing() { co_return; }

  net::Router& router_;
  const std::unique_ptr<Api>& api_;
  const Unlisted unlisted_;
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

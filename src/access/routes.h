// Logging in and out: GET and POST /login, POST /logout.
#pragma once

#include <optional>
#include <string>

#include "access/gate.h"
#include "net/router.h"

namespace tabella::access {

struct LoginOptions {
  std::string web_path;  // what all paths begin with; empty: nothing
  bool tls = false;      // cookies are for encrypted connections only
};

// Without users they are there as well, and say that nobody needs to log in. What the users refer to must
// outlive the router.
void add_routes(net::Router& router, std::optional<Users> users, LoginOptions options);

// Where to go after logging in: `next` if it is a path of ours, else the first page. A link that somebody
// made up must not lead anywhere else.
std::string page_after_login(const std::string& next, const std::string& web_path);

}  // namespace tabella::access

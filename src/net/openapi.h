// The routes of a process as an OpenAPI document, for people and for the generators of clients.
#pragma once

#include <string>
#include <string_view>

#include "net/router.h"

namespace tabella::net {

// OpenAPI 3.1, in JSON. Paths begin with `web_path`.
std::string openapi(const Router& router, std::string_view web_path, std::string_view version);

}  // namespace tabella::net

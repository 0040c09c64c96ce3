// Where a DynamoDB is, as --store names it.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "net/url.h"

namespace tabella::remote {

struct Endpoint {
  net::Url items;
  net::Url streams;  // AWS serves streams from a host of their own
  std::string region;
  bool aws = false;
};

// dynamodb://REGION, http://HOST:PORT or https://HOST:PORT; `region` is what to sign for where the endpoint
// does not say. A sentence if it is none of them.
std::expected<Endpoint, std::string> parse_endpoint(std::string_view text, std::string_view region);

}  // namespace tabella::remote

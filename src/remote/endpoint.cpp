#include "remote/endpoint.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::remote {
namespace {

constexpr std::string_view kScheme = "dynamodb://";

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 32 && text.find('-') != std::string_view::npos &&
         std::ranges::all_of(
             text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

// The domain of the partition that the region is in.
std::string_view domain_of(std::string_view region) {
  if (region.starts_with("cn-")) return "amazonaws.com.cn";
  if (region.starts_with("us-iso-")) return "c2s.ic.gov";
  if (region.starts_with("us-isob-")) return "sc2s.sgov.gov";
  if (region.starts_with("eusc-")) return "amazonaws.eu";
  return "amazonaws.com";
}

}  // namespace

std::expected<Endpoint, std::string> parse_endpoint(std::string_view text, std::string_view region) {
  Endpoint endpoint;
  if (text.starts_with(kScheme)) {
    const auto named = text.substr(kScheme.size());
    if (!is_region(named))
      return std::unexpected(fmt::format("'{}' names no AWS region, as dynamodb://eu-west-1 does", text));
    endpoint.region = named;
    endpoint.aws = true;
    const auto at = [&](std::string_view service) {
      return net::Url{
          .tls = true, .host = fmt::format("{}.{}.{}", service, named, domain_of(named)), .port = 443};
    };
    endpoint.items = at("dynamodb");
    endpoint.streams = at("streams.dynamodb");
    return endpoint;
  }
  auto url = net::parse_url(text);
  if (!url || url->path != "/")
    return std::unexpected(fmt::format(
        "'{}' is neither embedded nor dynamodb://REGION nor http://HOST:PORT nor https://HOST:PORT", text));
  endpoint.items = *url;
  endpoint.streams = std::move(*url);
  endpoint.region = region.empty() ? "us-east-1" : region;
  return endpoint;
}

}  // namespace tabella::remote

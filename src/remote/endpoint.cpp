#include "remote/endpoint.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

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

// The region in "dynamodb.REGION.amazonaws.com", "dynamodb-fips.REGION.amazonaws.com",
// "ACCOUNT.ddb.REGION.amazonaws.com", "dynamodb.REGION.api.aws" or
// "vpce-….dynamodb.REGION.vpce.amazonaws.com"; empty if it is another host.
std::string_view aws_region_of(std::string_view host) {
  const bool aws =
      host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn") || host.ends_with(".api.aws");
  if (!aws) return {};
  const auto labels = split(host, '.');
  for (size_t i = 0; i + 1 < labels.size(); ++i)
    if ((labels[i] == "dynamodb" || labels[i] == "dynamodb-fips" || labels[i] == "ddb") &&
        is_region(labels[i + 1]))
      return labels[i + 1];
  return {};
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
  if (!region.empty() && !is_plain(region))
    return std::unexpected(std::string("the region holds blanks or line ends"));
  if (const auto named = aws_region_of(url->host); !named.empty()) {
    if (url->host == fmt::format("dynamodb.{}.{}", named, domain_of(named)))
      return parse_endpoint(fmt::format("{}{}", kScheme, named), region);
    endpoint.aws = true;  // of a VPC, an account, …
    endpoint.region = named;
  } else {
    endpoint.region = region.empty() ? "us-east-1" : region;
  }
  endpoint.items = *url;
  endpoint.streams = std::move(*url);
  return endpoint;
}

}  // namespace tabella::remote

#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "net/address_rules.h"
#include "net/url.h"

namespace {

using namespace tabella;

// What was read is the same when it is written and read again, and nothing in it ends a line.
void check(const net::Url& url) {
  if (url.host.empty() || url.port == 0 || !is_plain(url.host) || !is_plain(url.path)) std::abort();
  const auto again = net::parse_url(url.origin() + url.path);
  if (!again || again->origin() != url.origin() || again->path != url.path) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = net::parse_url(text)) check(*url);
  static const auto base = net::parse_url("https://example.com/a/b/c?d").value();
  if (const auto url = net::resolve_url(base, text)) check(*url);
  if (const auto address = net::literal_address(text); address && !net::literal_address(address->to_string()))
    std::abort();
  if (const auto network = net::parse_network(text); network && !network->has(network->address)) std::abort();
  return 0;
}

// The script that makes <tabella-inbox> of a page.
#include <fmt/format.h>

#include "base/checksum.h"
#include "base/gzip.h"
#include "base/text.h"
#include "inbox/api.h"
#include "inbox/script.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

constexpr size_t kMostScript = 4u << 20;

const std::string& script_tag() {
  static const std::string tag = fmt::format("\"{}\"", to_hex(sha256(packed_script())).substr(0, 32));
  return tag;
}

}  // namespace

void Api::add_script_route(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/inbox.js",
              .scope = net::kAnybody,
              .summary = "The bell for pages: <tabella-inbox>, and the client that it is made of",
              .answer = "text/javascript"},
             &Api::script);
}

// It says nothing that is anybody's, and any page may show it.
awaitable<void> Api::script(Call& call) {
  auto& response = call.response;
  response.content_type = "text/javascript; charset=utf-8";
  response.add_header("ETag", script_tag());
  response.add_header("Cache-Control", "public, max-age=300");
  response.add_header("Cross-Origin-Resource-Policy", "cross-origin");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Vary", "Accept-Encoding");
  if (call.request.header("if-none-match") == script_tag()) {
    response.status = 304;
    co_return;
  }
  if (call.request.header("accept-encoding").contains("gzip")) {
    response.add_header("Content-Encoding", "gzip");
    response.body = packed_script();
  } else {
    response.body = decompress(packed_script(), Compression::gzip, kMostScript).bytes;
  }
}

}  // namespace tabella::inbox

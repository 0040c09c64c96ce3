// A message: whatever it is, there is something to see, all text is UTF-8, and cleaned HTML has nothing in it
// that runs.
#include <cstdint>
#include <cstdlib>

#include "mail/content.h"
#include "mail/document.h"
#include "mail/mailhog.h"
#include "mail/model.h"
#include "mail/summary.h"
#include "mime/html.h"
#include "mime/html_tokens.h"
#include "mime/message.h"
#include "mime/utf8.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// As a browser reads it: no tag runs or loads anything.
void check_harmless(std::string_view html) {
  tabella::mime::HtmlTokens tokens(html);
  tabella::mime::HtmlToken token;
  while (tokens.next(token)) {
    if (token.kind != tabella::mime::HtmlToken::Kind::start) continue;
    for (const std::string_view harm :
         {"script", "iframe", "object", "embed", "svg", "math", "form", "input", "link", "base"})
      check(token.name != harm);
    for (const auto& [name, value] : token.attributes) {
      check(!name.starts_with("on") && name != "srcset" && name != "background");
      check(name != "href" || !value.starts_with("javascript:"));
      // What the message brings with it, or data:
      check(name != "src" || value == "/part" || ((value[0] | 32) == 'd' && value[4] == ':'));
    }
    if (token.name == "style") tokens.raw_text("style");
  }
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto parsed = mime::parse(bytes);
  check(!parsed.parts.empty());
  check(is_valid_utf8(parsed.subject));
  for (const auto& header : parsed.headers) check(is_valid_utf8(header.value) && is_valid_utf8(header.raw));
  for (const auto& part : parsed.parts) {
    check(is_valid_utf8(part.filename) && is_valid_utf8(part.text()));
    const auto cleaned = mime::clean_html(part.text(), [](std::string_view) { return std::string("/part"); });
    check_harmless(cleaned);
    mime::html_to_text(part.text());
  }
  mail::Message message{.id = mail::make_id(1'700'000'000'000'000'000, "h"),
                        .created = 1'700'000'000'000'000'000,
                        .raw = std::string(bytes)};
  message.size = message.raw.size();
  message.from = "a@x.org";
  message.to = {"b@y.org"};
  // What was kept reads back as it was.
  if (const auto row = mail::to_item(message, "h")) {
    const auto read = mail::to_message(*row);
    check(read && read->raw == message.raw && read->to == message.to);
  }
  std::string json;
  mail::append_message_json(json, message, "h");
  check(is_valid_utf8(json));
  mail::append_summary_json(json, message);
  check(is_valid_utf8(json));
  for (const auto& piece : mail::document_of(message, parsed).pieces)
    check(!has(piece.text, std::string_view("\0", 1)));
  return 0;
}

#include "mail/shown.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "mime/html.h"
#include "net/target.h"

namespace tabella::mail {

namespace {

// Puts pictures of a message into its HTML. All of them together take no more room than the message itself,
// or a little, if it is small: each may be referred to many times.
class Pictures {
 public:
  explicit Pictures(const mime::Message& parsed) : parsed_(parsed) {
    constexpr size_t kAlways = 1u << 20;
    for (const auto& part : parsed.parts) room_ += part.source.size();
    room_ = std::max(room_, kAlways);
  }

  // As a data: URL; empty: there is none of that name, or no room for it.
  std::string url_of(std::string_view content_id) {
    const auto* part = find(content_id);
    if (!part) part = find(net::percent_decode(content_id, false).value_or(""));
    if (!part || part->source.size() > room_) return {};
    auto url = fmt::format("data:{};base64,{}", part->content_type, to_base64(part->content()));
    if (url.size() > room_) return {};
    room_ -= url.size();
    return url;
  }

 private:
  const mime::Part* find(std::string_view content_id) const {
    const auto found = std::ranges::find_if(parsed_.parts, [&](const mime::Part& part) {
      return !content_id.empty() && part.content_id == content_id && is_picture(part.content_type);
    });
    return found == parsed_.parts.end() ? nullptr : &*found;
  }

  const mime::Message& parsed_;
  size_t room_ = 0;
};

}  // namespace

std::string shown_text(const mime::Message& parsed, size_t most) {
  if (parsed.text()) return parsed.text()->text_within(most);
  return parsed.html() ? mime::html_to_text(parsed.html()->text_within(most)) : "";
}

std::string shown_html(const mime::Message& parsed) {
  const auto* html = parsed.html();
  if (!html) return {};
  Pictures pictures(parsed);
  return mime::clean_html(html->text(), [&](std::string_view id) { return pictures.url_of(id); });
}

bool is_picture(std::string_view type) {
  return type == "image/png" || type == "image/gif" || type == "image/jpeg" || type == "image/webp";
}

std::string download_type(std::string_view content_type, std::string_view charset) {
  if (content_type.empty()) return "application/octet-stream";
  constexpr std::string_view kToken = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.:+";
  auto type = header_text(content_type);
  if (!charset.empty() && charset.find_first_not_of(kToken) == std::string_view::npos)
    type += fmt::format("; charset={}", charset);
  return type;
}

std::string header_text(std::string_view text) {
  std::string value(text);
  std::erase_if(value, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
  });
  return value;
}

}  // namespace tabella::mail

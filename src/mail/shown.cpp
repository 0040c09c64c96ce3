#include "mail/shown.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/base64.h"
#include "mime/html.h"
#include "net/target.h"

namespace tabella::mail {

namespace {

// Puts pictures of a message into its HTML. All of them together take no more room than each of them once,
// or a little, if they are small: each may be referred to many times. One that has found no room is not
// looked at again, however often it is referred to.
class Pictures {
 public:
  explicit Pictures(const mime::Message& parsed) {
    constexpr size_t kAlways = 1u << 20;
    for (const auto& part : parsed.parts) {
      room_ += part.source.size() + part.source.size() / 3 + 100;  // in base64, and what stands before it
      if (!part.content_id.empty() && is_picture(part.content_type))
        pictures_.emplace(part.content_id, &part);
    }
    room_ = std::max(room_, kAlways);
  }

  // As a data: URL; empty: there is none of that name, or no room for it.
  std::string url_of(std::string_view content_id) {
    auto found = pictures_.find(content_id);
    if (found == pictures_.end()) found = pictures_.find(net::percent_decode(content_id, false).value_or(""));
    if (found == pictures_.end()) return {};
    const auto& part = *found->second;
    auto url = fmt::format("data:{};base64,{}", part.content_type, to_base64(part.content()));
    if (url.size() > room_) {
      pictures_.erase(found);
      return {};
    }
    room_ -= url.size();
    return url;
  }

 private:
  std::map<std::string, const mime::Part*, std::less<>> pictures_;  // by content id
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

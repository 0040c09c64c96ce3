#include "mail/content.h"

#include <algorithm>

#include "mime/header.h"
#include "mime/utf8.h"

namespace tabella::mail {
namespace {

constexpr size_t kMostParts = 1000;
// Each level takes three of the 32 that an item may have.
constexpr int kDeepest = 7;

void read_headers(std::string_view lines, Content& content) {
  std::string* last = nullptr;
  while (!lines.empty()) {
    const auto end = std::min(lines.find("\r\n"), lines.size());
    const auto line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    if (line.empty()) continue;
    if ((line.front() == ' ' || line.front() == '\t') && last) {
      last->append(mime::to_valid_utf8(line));
      continue;
    }
    const auto colon = line.find(": ");
    constexpr size_t kLongestName = 1024;
    if (colon == std::string_view::npos || colon == 0 || colon > kLongestName) continue;
    // MailHog keeps the last of several headers of one name.
    auto& values = content.headers[mime::to_valid_utf8(line.substr(0, colon))];
    values.assign(1, mime::to_valid_utf8(line.substr(colon + 2)));
    last = &values.front();
  }
}

std::string_view strip_line_ends(std::string_view text) {
  const auto is_end = [](char c) { return c == '\r' || c == '\n'; };
  while (!text.empty() && is_end(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_end(text.back())) text.remove_suffix(1);
  return text;
}

Content parse(std::string_view bytes, int depth, size_t& parts_left);

void read_parts(Content& content, int depth, size_t& parts_left) {
  const auto type = content.headers.find("Content-Type");
  if (depth >= kDeepest || type == content.headers.end() || !type->second.front().starts_with("multipart/"))
    return;
  const auto boundary = mime::parse_parameters(type->second.front()).get("boundary");
  constexpr size_t kLongestBoundary = 256;  // RFC 2046 says 70
  if (boundary.empty() || boundary.size() > kLongestBoundary) return;
  auto& parts = content.parts.emplace();
  const auto separator = "--" + boundary;
  for (auto rest = content.body; !rest.empty();) {
    const auto at = parts_left > 1 ? std::min(rest.find(separator), rest.size()) : rest.size();
    if (at > 0) {
      parts_left -= parts_left > 0 ? 1 : 0;
      parts.push_back(parse(strip_line_ends(rest.substr(0, at)), depth + 1, parts_left));
    }
    rest.remove_prefix(std::min(at + separator.size(), rest.size()));
  }
}

Content parse(std::string_view bytes, int depth, size_t& parts_left) {
  Content content;
  content.size = bytes.size();
  content.body = bytes;
  const auto end = bytes.find("\r\n\r\n");
  if (end != std::string_view::npos) {
    read_headers(bytes.substr(0, end), content);
    content.body = bytes.substr(end + 4);
  }
  read_parts(content, depth, parts_left);
  return content;
}

}  // namespace

Content parse_content(std::string_view bytes) {
  size_t parts_left = kMostParts;
  return parse(bytes, 0, parts_left);
}

}  // namespace tabella::mail

#include "mime/message.h"

#include <algorithm>

#include "base/text.h"
#include "mime/encodings.h"
#include "mime/utf8.h"

namespace tabella::mime {
namespace {

constexpr size_t kMostParts = 1000;
constexpr int kDeepest = 30;

std::string value_of(const std::vector<Header>& headers, std::string_view name) {
  const auto* header = find_header(headers, name);
  return header ? header->value : "";
}

// As it stands: parameters and addresses decode their own words.
std::string_view raw_of(const std::vector<Header>& headers, std::string_view name) {
  constexpr size_t kLongest = 64 * 1024;
  const auto* header = find_header(headers, name);
  return header ? std::string_view(header->raw).substr(0, kLongest) : std::string_view();
}

// Takes the parts between boundary lines off a multipart's body, one by one.
class Parts {
 public:
  Parts(std::string_view body, const std::string& boundary) : rest_(body), boundary_("--" + boundary) {
    skip_to_boundary();
  }
  bool found() const { return found_; }
  std::optional<std::string_view> next() {
    if (!found_ || ended_) return std::nullopt;
    return skip_to_boundary();
  }

 private:
  // What stands before the next boundary line, without the line end that belongs to it.
  std::string_view skip_to_boundary() {
    const auto all = rest_;
    for (size_t line = 0; line < all.size();) {
      const auto end = std::min(all.find('\n', line), all.size());
      if (is_boundary(all.substr(line, end - line))) {
        found_ = true;
        rest_ = all.substr(std::min(end + 1, all.size()));
        auto part = all.substr(0, line);
        if (part.ends_with('\n')) part.remove_suffix(1);
        if (part.ends_with('\r')) part.remove_suffix(1);
        return part;
      }
      // Boundary lines begin with two hyphens: look only at those.
      const auto next = all.find("\n--", line);
      if (next == std::string_view::npos) break;
      line = next + 1;
    }
    ended_ = true;
    rest_ = {};
    return all;
  }

  bool is_boundary(std::string_view line) {
    if (!line.starts_with(boundary_)) return false;
    auto rest = line.substr(boundary_.size());
    const bool last = rest.starts_with("--");
    if (last) rest.remove_prefix(2);
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (!trim(rest).empty()) return false;
    ended_ = ended_ || last;
    return true;
  }

  std::string_view rest_;
  const std::string boundary_;
  bool found_ = false;
  bool ended_ = false;
};

class Walker {
 public:
  // Each level of nesting looks at its bytes once more: there is an end to that.
  Walker(Message& message, size_t size) : message_(message), budget_(size * 8 + (1u << 20)) {}

  void visit(const std::vector<Header>& headers, std::string_view body, int depth,
             std::string_view fallback) {
    const auto raw = raw_of(headers, "content-type");
    const auto type = parse_parameters(raw.empty() ? fallback : raw);
    if (type.value.starts_with("multipart/") && visit_parts(type, body, depth)) return;
    add(headers, type, body);
  }

 private:
  bool visit_parts(const Parameters& type, std::string_view body, int depth) {
    const auto boundary = type.get("boundary");
    if (depth >= kDeepest || body.size() > budget_) {
      message_.cut_short = true;
      return false;
    }
    budget_ -= body.size();
    if (boundary.empty()) return false;
    Parts parts(body, boundary);
    if (!parts.found()) return false;
    const auto fallback = type.value == "multipart/digest" ? "message/rfc822" : "text/plain";
    const auto before = message_.parts.size();
    while (const auto part = parts.next()) {
      if (message_.parts.size() >= kMostParts) {
        message_.cut_short = true;
        break;
      }
      auto rest = *part;
      const auto headers = take_headers(rest);
      visit(headers, rest, depth + 1, fallback);
    }
    // Boundaries with nothing between them: there is still the text.
    return message_.parts.size() > before;
  }

  void add(const std::vector<Header>& headers, const Parameters& type, std::string_view body) {
    Part part;
    const bool sensible = type.value.find('/') != std::string::npos && is_plain(type.value);
    part.content_type = sensible ? type.value : "text/plain";
    // Parts that could not be taken apart are shown as they are.
    if (part.content_type.starts_with("multipart/")) part.content_type = "text/plain";
    part.charset = type.get("charset");
    const auto disposition = parse_parameters(raw_of(headers, "content-disposition"));
    part.disposition = disposition.value;
    part.filename = disposition.get("filename");
    if (part.filename.empty()) part.filename = type.get("name");
    part.content_id = trim(value_of(headers, "content-id"));
    if (part.content_id.starts_with('<') && part.content_id.ends_with('>'))
      part.content_id = part.content_id.substr(1, part.content_id.size() - 2);
    part.encoding = lower(std::string(trim(value_of(headers, "content-transfer-encoding"))));
    if (part.content_type == "message/rfc822" && part.filename.empty()) part.filename = "message.eml";
    part.headers = headers;
    part.source = body;
    message_.parts.push_back(std::move(part));
  }

  Message& message_;
  size_t budget_;
};

}  // namespace

bool Part::is_attachment() const {
  return disposition == "attachment" || (!filename.empty() && disposition != "inline" && !is_text());
}

std::string Part::content() const { return decode(source, encoding); }
std::string Part::text() const { return from_charset(content(), charset); }
std::string Part::text_within(size_t most) const {
  if (source.size() <= most) return text();
  auto bytes = decode(source.substr(0, most), encoding);
  // A character that was cut in two would make the rest look as if it were no UTF-8.
  size_t end = bytes.size();
  while (end > 0 && bytes.size() - end < 3 && (static_cast<uint8_t>(bytes[end - 1]) & 0xc0) == 0x80) --end;
  if (end > 0 && static_cast<uint8_t>(bytes[end - 1]) >= 0xc0) bytes.resize(end - 1);
  return from_charset(bytes, charset);
}
size_t Part::size() const {
  return encoding == "base64" ? source.size() / 78 * 57 + source.size() % 78 * 3 / 4 : source.size();
}

const Part* Message::first(std::string_view content_type) const {
  for (const auto& part : parts)
    if (part.content_type == content_type && !part.is_attachment()) return &part;
  return nullptr;
}

size_t Message::attachments() const {
  return static_cast<size_t>(std::ranges::count_if(parts, [](const Part& part) {
    return part.is_attachment() || (!part.filename.empty() && !part.is_text());
  }));
}

Message parse(std::string_view bytes) {
  Message message;
  auto body = bytes;
  message.headers = take_headers(body);
  for (const auto& [name, into] : {std::pair{"from", &message.from},
                                   {"to", &message.to},
                                   {"cc", &message.cc},
                                   {"bcc", &message.bcc},
                                   {"reply-to", &message.reply_to}})
    *into = parse_addresses(raw_of(message.headers, name));
  message.subject = value_of(message.headers, "subject");
  message.message_id = trim(value_of(message.headers, "message-id"));
  if (message.message_id.starts_with('<') && message.message_id.ends_with('>'))
    message.message_id = message.message_id.substr(1, message.message_id.size() - 2);
  message.date = parse_date(value_of(message.headers, "date"));
  Walker(message, bytes.size()).visit(message.headers, body, 0, "text/plain");
  return message;
}

}  // namespace tabella::mime

#include "net/http.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <expected>

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::net {
namespace {

constexpr auto kTokenCharacters = [] {
  std::array<bool, 256> table{};
  for (char c :
       std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    table[static_cast<uint8_t>(c)] = true;
  return table;
}();

bool is_target(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) > 0x20 && c != 0x7f; });
}

std::optional<uint64_t> parse_length(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (same_header(trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string_view reason(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 204: return "No Content";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 500: return "Internal Server Error";
    case 426: return "Upgrade Required";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

// "Sun, 06 Nov 1994 08:49:37 GMT", made once a second on each thread.
std::string_view http_date() {
  thread_local std::time_t made_for = 0;
  thread_local std::string text;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now != made_for) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    char buffer[40];
    text.assign(buffer, std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S GMT", &utc));
    made_for = now;
  }
  return text;
}

// "POST / HTTP/1.1"
HeadResult parse_request_line(std::string_view line, RequestHead& head) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first + 1) return HeadResult::malformed;
  auto& request = head.request;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  const auto version = line.substr(last + 1);
  if (!is_token(request.method) || !is_target(request.target)) return HeadResult::malformed;
  request.keep_alive = request.chunks = version == "HTTP/1.1";
  if (!request.keep_alive && version != "HTTP/1.0")
    return version.starts_with("HTTP/") ? HeadResult::unsupported_version : HeadResult::malformed;
  return HeadResult::complete;
}

// "HTTP/1.1 200 OK"
HeadResult parse_status_line(std::string_view line, ResponseHead& head) {
  if (!line.starts_with("HTTP/1.")) return HeadResult::malformed;
  if (line.size() < 12 || (line[7] != '0' && line[7] != '1')) return HeadResult::unsupported_version;
  head.keep_alive = line[7] == '1';
  const auto [end, error] = std::from_chars(line.data() + 9, line.data() + 12, head.status);
  const bool fits = line[8] == ' ' && error == std::errc{} && end == line.data() + 12 && head.status >= 100 &&
                    (line.size() == 12 || line[12] == ' ');
  return fits ? HeadResult::complete : HeadResult::malformed;
}

// What the headers say about the message itself.
struct Framing {
  bool chunked = false;
  std::optional<uint64_t> content_length;
  bool keep_alive = true;
};

HeadResult read_framing(const HttpHeaders& headers, Framing& framing) {
  for (const auto& [name, value] : headers) {
    if (same_header(name, "content-length")) {
      const auto length = parse_length(value);
      if (!length || (framing.content_length && *length != *framing.content_length))
        return HeadResult::malformed;
      framing.content_length = length;
    } else if (same_header(name, "transfer-encoding")) {
      if (framing.chunked) return HeadResult::malformed;
      if (!same_header(value, "chunked")) return HeadResult::unsupported_encoding;
      framing.chunked = true;
    } else if (same_header(name, "connection")) {
      if (has_token(value, "close")) framing.keep_alive = false;
      if (has_token(value, "keep-alive")) framing.keep_alive = true;
    }
  }
  return framing.chunked && framing.content_length ? HeadResult::malformed : HeadResult::complete;
}

// The bytes of a head at the front of `bytes`, its empty line included.
std::expected<std::string_view, HeadResult> find_head(std::string_view bytes) {
  const auto end = bytes.substr(0, kMaxHead).find("\r\n\r\n");
  if (end == std::string_view::npos)
    return std::unexpected(bytes.size() >= kMaxHead ? HeadResult::too_large : HeadResult::incomplete);
  return bytes.substr(0, end + 4);
}

std::string_view take_line(std::string_view& rest) {
  const auto at = rest.find("\r\n");
  const auto line = rest.substr(0, at);
  rest.remove_prefix(at + 2);
  return line;
}

std::optional<HttpHeaders::value_type> parse_header(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto name = line.substr(0, colon);
  const auto value = trim(line.substr(colon + 1));
  if (!is_token(name) || !is_field_value(value)) return std::nullopt;
  return std::pair(name, value);
}

// All lines up to the empty one.
HeadResult parse_headers(std::string_view rest, HttpHeaders& headers) {
  while (rest != "\r\n") {
    const auto header = parse_header(take_line(rest));
    if (!header) return HeadResult::malformed;
    headers.push_back(*header);
  }
  return HeadResult::complete;
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return kTokenCharacters[static_cast<uint8_t>(c)]; });
}

bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x20 && c != '\t'; });
}

bool same_header(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [n, value] : headers)
    if (same_header(n, name)) return value;
  return std::nullopt;
}

namespace {

auto count_headers(const HttpHeaders& headers, std::string_view name) {
  return std::ranges::count_if(headers, [&](const auto& header) { return same_header(header.first, name); });
}

}  // namespace

HeadResult parse_head(std::string_view bytes, RequestHead& head) {
  auto found = find_head(bytes);
  if (!found) return found.error();
  auto headers = std::move(head.request.headers);
  headers.clear();
  head = {};
  head.size = found->size();
  auto result = parse_request_line(take_line(*found), head);
  if (result == HeadResult::complete) result = parse_headers(*found, headers);
  head.request.headers = std::move(headers);
  if (result != HeadResult::complete) return result;
  Framing framing{.keep_alive = head.request.keep_alive};
  result = read_framing(head.request.headers, framing);
  head.chunked = framing.chunked;
  head.content_length = framing.content_length.value_or(0);
  head.request.keep_alive = framing.keep_alive;
  if (result == HeadResult::complete && count_headers(head.request.headers, "host") > 1)
    return HeadResult::malformed;
  head.expects_continue = same_header(head.request.header("expect"), "100-continue");
  return result;
}

HeadResult parse_head(std::string_view bytes, ResponseHead& head) {
  auto found = find_head(bytes);
  if (!found) return found.error();
  auto headers = std::move(head.headers);
  headers.clear();
  head = {};
  head.size = found->size();
  auto result = parse_status_line(take_line(*found), head);
  if (result == HeadResult::complete) result = parse_headers(*found, headers);
  head.headers = std::move(headers);
  if (result != HeadResult::complete) return result;
  Framing framing{.keep_alive = head.keep_alive};
  result = read_framing(head.headers, framing);
  head.chunked = framing.chunked;
  head.content_length = framing.content_length;
  head.keep_alive = framing.keep_alive;
  return result;
}

// The next line without its end; nothing if it is not whole yet.
std::optional<std::string_view> ChunkedBody::take_line(std::string_view& bytes) {
  constexpr size_t kMaxLine = 1024;
  const auto end = bytes.substr(0, kMaxLine).find("\r\n");
  if (end == std::string_view::npos) {
    malformed_ = malformed_ || bytes.size() >= kMaxLine;
    return std::nullopt;
  }
  const auto line = bytes.substr(0, end);
  bytes.remove_prefix(end + 2);
  overhead_ += end + 2;
  return line;
}

bool ChunkedBody::begin_chunk(std::string_view line) {
  if (!is_field_value(line)) return false;
  auto text = line.substr(0, line.find(';'));
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), left_, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

ChunkedBody::State ChunkedBody::feed(std::string_view& bytes) {
  while (true) {
    // As much again for the sizes as for the data: chunks of one byte are odd, but they happen.
    if (overhead_ > max_size_ + kMaxHead) return State::too_large;
    if (stage_ == Stage::data) {
      const auto part = bytes.substr(0, left_);
      body_.append(part);
      bytes.remove_prefix(part.size());
      left_ -= part.size();
      if (left_ > 0) return State::incomplete;
      stage_ = Stage::data_end;
    }
    const auto line = take_line(bytes);
    if (malformed_) return State::malformed;
    if (!line) return State::incomplete;
    switch (stage_) {
      case Stage::size:
        if (!begin_chunk(*line)) return State::malformed;
        if (left_ > max_size_ - body_.size()) return State::too_large;
        stage_ = left_ > 0 ? Stage::data : Stage::trailer;
        break;
      case Stage::data_end:
        if (!line->empty()) return State::malformed;
        stage_ = Stage::size;
        break;
      case Stage::trailer:
        if (line->empty()) return State::complete;
        if (!parse_header(*line)) return State::malformed;
        break;
      case Stage::data: break;
    }
  }
}

void append_response_head(std::string& out, const HttpResponse& response, bool close) {
  if (response.status == 200)
    out.append("HTTP/1.1 200 OK\r\n");
  else
    fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
  out.append("Server: Tabella\r\nDate: ").append(http_date());
  out.append("\r\n");
  if (!response.then && !response.stream && response.status != 204 && response.status != 304)
    out.append("Content-Length: ")
        .append(fmt::format_int(response.length.value_or(response.body.size())).c_str())
        .append("\r\n");
  if (!response.content_type.empty())
    out.append("Content-Type: ").append(response.content_type).append("\r\n");
  out.append(response.headers);
  if (response.status == 101)
    out.append("Connection: Upgrade\r\n\r\n");
  else
    out.append(close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
}

}  // namespace tabella::net

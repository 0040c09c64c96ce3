// HTTP messages as handlers see them, and the parsers of their heads. No socket is known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

namespace tabella::net {

class BodyWriter;
class BudgetShare;
class Connection;

bool same_header(std::string_view a, std::string_view b);  // header names: case does not count

// What a method or a header's name may be, and what its value may be: nothing that ends a line.
bool is_token(std::string_view text);
bool is_field_value(std::string_view text);

// Borrow from whatever was parsed.
using HttpHeaders = std::vector<std::pair<std::string_view, std::string_view>>;
// The first header of that name, trimmed; nothing if there is none.
std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name);

// Borrows from the connection's buffer: valid until the handler returns.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  HttpHeaders headers;
  std::string_view body;
  bool keep_alive = true;
  BudgetShare* unpacked = nullptr;  // where a handler counts what it unpacks; may be null
  bool chunks = true;               // whether the client can read a chunked answer: not in HTTP/1.0

  // Empty if there is none.
  std::string_view header(std::string_view name) const { return find_header(headers, name).value_or(""); }
  bool has_header(std::string_view name) const { return find_header(headers, name).has_value(); }
};

struct HttpResponse {
  int status = 200;
  std::string_view content_type;  // of static storage
  std::string headers;            // complete lines
  std::string body;
  std::optional<size_t> length;  // what Content-Length says, where that is not the body's: in answers to HEAD
  // If set, the connection is its own once the head and the body are out, and ends with it: for answers
  // without an end, and for other protocols. It gets what the client has sent beyond its request.
  std::function<boost::asio::awaitable<void>(Connection&, std::string unread)> then;
  // If set, writes the body, piece by piece, once the head is out: for answers that are too large to be in
  // memory. It must own what it uses: the request is gone by then. False: it could not be written to its end,
  // and the connection is closed, so that nobody takes it for whole.
  std::function<boost::asio::awaitable<bool>(BodyWriter&)> stream;

  void add_header(std::string_view name, std::string_view value) {
    headers.append(name).append(": ").append(value).append("\r\n");
  }
  // For the next response, with the memory of this one.
  void clear() {
    status = 200;
    content_type = {};
    headers.clear();
    body.clear();
    length.reset();
    then = nullptr;
    stream = nullptr;
  }
};

struct RequestHead {
  HttpRequest request;
  size_t size = 0;  // bytes of the head, the empty line included
  bool chunked = false;
  uint64_t content_length = 0;
  bool expects_continue = false;
};

enum class HeadResult {
  complete,
  incomplete,
  malformed,
  too_large,
  unsupported_version,
  unsupported_encoding
};

inline constexpr size_t kMaxHead = 16 * 1024;

// Parses a head at the front of `bytes` into `head`, whose memory it uses again. Strict about what differs
// between parsers and so lets requests be smuggled: lengths, line ends, names.
HeadResult parse_head(std::string_view bytes, RequestHead& head);

// The head of a response. Where there is neither a length nor chunks, the body ends with the connection.
struct ResponseHead {
  int status = 0;
  HttpHeaders headers;
  size_t size = 0;
  bool chunked = false;
  std::optional<uint64_t> content_length;
  bool keep_alive = true;
};

HeadResult parse_head(std::string_view bytes, ResponseHead& head);

// Decodes a chunked body piece by piece: each byte is looked at once, however the body arrives.
class ChunkedBody {
 public:
  enum class State { incomplete, complete, malformed, too_large };

  explicit ChunkedBody(size_t max_size) : max_size_(max_size) {}

  // Takes what it can use off the front of `bytes`; the rest is to come again, with more behind it.
  State feed(std::string_view& bytes);

  std::string& body() { return body_; }

 private:
  enum class Stage { size, data, data_end, trailer };
  std::optional<std::string_view> take_line(std::string_view& bytes);
  bool begin_chunk(std::string_view line);

  const size_t max_size_;
  Stage stage_ = Stage::size;
  size_t left_ = 0;      // of the chunk that is being read
  size_t overhead_ = 0;  // bytes of sizes, extensions and trailers so far
  bool malformed_ = false;
  std::string body_;
};

// The head of a response, ready to send.
void append_response_head(std::string& out, const HttpResponse& response, bool close);

}  // namespace tabella::net

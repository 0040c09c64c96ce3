#include "net/server.h"

#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "net/body_writer.h"
#include "net/budget.h"
#include "net/call.h"
#include "net/listener.h"
#include "net/transport.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr size_t kCopiedBody = 16 * 1024;
constexpr const char* kNoRoom = "too many large requests and answers are under way; try again";

}  // namespace

struct HttpServer::Impl {
  explicit Impl(ServerOptions o, Handler h) : options(std::move(o)), handler(std::move(h)) {
    if (options.tls) tls.emplace(*options.tls);
  }

  const ServerOptions options;
  const Handler handler;
  std::optional<TlsIdentity> tls;
  Limits own_limits{20'000, 512u << 20};
  Limits& limits{options.limits ? *options.limits : own_limits};
  std::optional<Listener> listener;
};

namespace {

// The requests of one connection, one after the other.
class HttpConnection {
 public:
  HttpConnection(HttpServer::Impl& server, Connection& connection)
      : server_(server),
        connection_(connection),
        budget_(server.limits.memory_used, server.limits.memory),
        unpacked_(server.limits.memory_used, server.limits.memory),
        answer_(server.limits.memory_used, server.limits.memory) {}

  awaitable<void> run() {
    if (server_.tls) {
      connection_.expire_in(server_.options.head_timeout);
      connection_.set_waiting(true);
      if (co_await connection_.transport().secure(*server_.tls)) co_return;
    }
    while (co_await serve_one()) {
    }
  }

 private:
  // Reads a request, lets the handler answer, writes. False when the connection is to end.
  awaitable<bool> serve_one() {
    RequestHead& head = request_;
    if (!co_await read_head(head)) co_return false;
    std::string decoded;
    size_t request_size = head.size;
    if (head.chunked) {
      if (!co_await read_chunked(head, decoded)) co_return false;
    } else if (head.content_length > 0) {
      if (!co_await read_body(head)) co_return false;
      request_size += head.content_length;
    }
    connection_.never_expire();  // the handler answers for its own waits
    response_.clear();
    head.request.unpacked = &unpacked_;
    co_await server_.handler(head.request, response_);
    if (!response_.stream) unpacked_.resize(0);
    if (!answer_.resize(response_.body.capacity())) refuse_answer();
    const bool only_head = head.request.method == "HEAD";
    if (only_head) {
      response_.length = response_.body.size();
      response_.body.clear();
      response_.then = nullptr;
    }
    const bool chunked = response_.stream && head.request.chunks;
    if (chunked) response_.add_header("Transfer-Encoding", "chunked");
    // A body that is neither chunked nor of a known length ends with the connection.
    const bool keep_alive =
        head.request.keep_alive && !connection_.draining() && (chunked || !response_.stream);
    if (response_.then) {
      if (co_await write(response_, true)) {
        connection_.set_idle(true);
        co_await response_.then(connection_, std::string(unread().substr(request_size)));
      }
      co_return false;
    }
    bool written = co_await write(response_, !keep_alive);
    if (written && response_.stream && !only_head) {
      BodyWriter body(connection_, chunked, server_.options.write_timeout);
      written = co_await response_.stream(body);
      if (written) written = co_await body.finish();
    }
    response_.stream = nullptr;  // with what it holds
    unpacked_.resize(0);
    if (response_.body.capacity() > kFreeBuffer) response_ = {};
    answer_.resize(0);
    consume(request_size);
    co_return written&& keep_alive;
  }

  // There is no room for it beside those of others.
  void refuse_answer() {
    response_ = {};
    response_.status = 503;
    response_.add_header("Retry-After", "1");
    response_.content_type = "text/plain; charset=utf-8";
    response_.body = std::string(kNoRoom) + "\n";
  }

  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

  awaitable<bool> read_head(RequestHead& head) {
    // Between requests a connection may rest; once a request has begun it must come to an end.
    const bool idle = unread().empty();
    connection_.set_idle(idle);
    connection_.expire_in(idle ? server_.options.idle_timeout : server_.options.head_timeout);
    while (true) {
      const auto result = unread().empty() ? HeadResult::incomplete : parse_head(unread(), head);
      if (result == HeadResult::complete) {
        connection_.set_idle(false);
        co_return true;
      }
      if (result != HeadResult::incomplete) {
        co_await refuse(status_of(result));
        co_return false;
      }
      const bool first = unread().empty();
      if (!co_await read_more(kReadSize)) co_return false;
      if (first) connection_.expire_in(server_.options.head_timeout);
      connection_.set_idle(false);
    }
  }

  static int status_of(HeadResult result) {
    if (result == HeadResult::unsupported_version) return 505;
    return result == HeadResult::unsupported_encoding ? 501 : 400;
  }

  awaitable<bool> read_body(RequestHead& head) {
    if (const auto limit = body_limit(head.request); head.content_length > limit) {
      co_await refuse(413, too_large(limit));
      co_return false;
    }
    const size_t whole = head.size + head.content_length;
    const char* before = buffer_.data() + begin_;
    if (unread().size() < whole && head.expects_continue && !co_await send_continue()) co_return false;
    connection_.expire_in(time_for_body(head.content_length));
    while (unread().size() < whole) {
      if (!co_await read_more(whole - unread().size())) co_return false;
    }
    rebase(head.request, before);
    head.request.body = unread().substr(head.size, head.content_length);
    co_return true;
  }

  // The head stays at the front of the buffer; what follows it is taken in and dropped as it comes.
  awaitable<bool> read_chunked(RequestHead& head, std::string& decoded) {
    const char* before = buffer_.data() + begin_;
    if (head.expects_continue && !co_await send_continue()) co_return false;
    const size_t limit = body_limit(head.request);
    ChunkedBody chunked(limit);
    connection_.expire_in(time_for_body(limit));
    while (true) {
      auto rest = unread().substr(head.size);
      const auto state = chunked.feed(rest);
      std::memmove(buffer_.data() + begin_ + head.size, rest.data(), rest.size());
      end_ = begin_ + head.size + rest.size();
      if (state == ChunkedBody::State::complete) {
        rebase(head.request, before);
        decoded = std::move(chunked.body());
        head.request.body = decoded;
        co_return true;
      }
      if (state != ChunkedBody::State::incomplete) {
        const bool large = state == ChunkedBody::State::too_large;
        co_await refuse(large ? 413 : 400, large ? too_large(limit) : "");
        co_return false;
      }
      if (!budget_.resize(buffer_.size() + chunked.body().capacity())) {
        co_await refuse(503, kNoRoom);
        co_return false;
      }
      if (!co_await read_more(kReadSize)) co_return false;
    }
  }

  static std::string too_large(size_t limit) {
    return fmt::format("the body is larger than {} bytes", limit);
  }

  size_t body_limit(const HttpRequest& request) const {
    const auto& options = server_.options;
    return options.body_limit ? options.body_limit(request) : options.max_body;
  }

  // A slow line has its time; a sender that only drips does not.
  std::chrono::seconds time_for_body(size_t bytes) const {
    constexpr size_t kSlowest = 64 * 1024;  // bytes a second
    return server_.options.body_timeout + std::chrono::seconds(bytes / kSlowest);
  }

  // Views of the head move with the buffer.
  void rebase(HttpRequest& request, const char* before) {
    const ptrdiff_t moved = buffer_.data() + begin_ - before;
    if (moved == 0) return;
    const auto move = [moved](std::string_view& view) { view = {view.data() + moved, view.size()}; };
    move(request.method);
    move(request.target);
    for (auto& [name, value] : request.headers) {
      move(name);
      move(value);
    }
  }

  awaitable<bool> send_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    co_return co_await connection_.write_all({asio::buffer(kContinue), asio::const_buffer()},
                                             server_.options.write_timeout);
  }

  // Room for what a request may hold grows only as its bytes arrive.
  awaitable<bool> read_more(size_t wanted) {
    const size_t step = std::min(wanted, std::max(kReadSize, unread().size()));
    if (buffer_.size() - end_ < step) {
      if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      if (buffer_.size() - end_ < step) {
        if (!budget_.resize(end_ + step)) {
          co_await refuse(503, kNoRoom);
          co_return false;
        }
        buffer_.resize(end_ + step);
      }
    }
    const auto into = asio::buffer(buffer_.data() + end_, buffer_.size() - end_);
    if (budget_.size() > 0) connection_.set_holding(true);
    connection_.set_waiting(true);
    const auto [error, n] = co_await connection_.transport().read_some(into);
    connection_.set_waiting(false);
    connection_.set_holding(false);
    if (error) co_return false;
    end_ += n;
    co_return true;
  }

  void consume(size_t n) {
    begin_ += n;
    if (begin_ < end_) return;
    begin_ = end_ = 0;
    if (buffer_.size() > kFreeBuffer) buffer_ = {};
    budget_.resize(buffer_.size());
  }

  awaitable<bool> write(const HttpResponse& response, bool close) {
    head_.clear();
    append_response_head(head_, response, close);
    // A small answer goes out in one piece: copying it is cheaper than gathering.
    const bool copied = response.body.size() <= kCopiedBody;
    if (copied) head_.append(response.body);
    const std::string_view rest = copied ? std::string_view() : response.body;
    return connection_.write_all({asio::buffer(head_), asio::buffer(rest)}, server_.options.write_timeout);
  }

  // Answers a request that is not going to be read to its end.
  awaitable<void> refuse(int status, std::string sentence = {}) {
    HttpResponse response;
    response.status = status;
    if (!sentence.empty()) answer_error(response, status, sentence);
    if (status == 503) response.add_header("Retry-After", "1");
    if (co_await write(response, true)) co_await connection_.linger();
  }

  HttpServer::Impl& server_;
  Connection& connection_;
  BudgetShare budget_;    // what was read
  BudgetShare unpacked_;  // what the handler makes of it
  BudgetShare answer_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  RequestHead request_;
  HttpResponse response_;
  std::string head_;
};

}  // namespace

HttpServer::HttpServer(IoThreads& threads, ServerOptions options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {
  const auto& o = impl_->options;
  impl_->listener.emplace(
      threads,
      ListenOptions{
          .host = o.host, .port = o.port, .max_connections = o.max_connections, .limits = &impl_->limits},
      [impl = impl_.get()](Connection& connection) -> awaitable<void> {
        HttpConnection http(*impl, connection);
        co_await http.run();
      });
}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->listener->port(); }

void HttpServer::stop(std::chrono::milliseconds grace) { impl_->listener->stop(grace); }

}  // namespace tabella::net

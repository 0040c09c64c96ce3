#include "faults/fault_proxy.h"

#include <fmt/format.h>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "net/http.h"

namespace tabella::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Reads one message; empty if the connection ends first.
template <class Head>
std::string read_message(tcp::socket& socket, Head& head) {
  std::string bytes;
  while (true) {
    size_t whole = 0;
    if (net::parse_head(bytes, head) == net::HeadResult::complete) {
      if constexpr (requires { head.content_length.value_or(0); })
        whole = head.size + head.content_length.value_or(0);
      else
        whole = head.size + head.content_length;
      if (bytes.size() >= whole) return bytes;
    }
    const size_t before = bytes.size();
    bytes.resize(before + std::max<size_t>(whole > before ? whole - before : 0, 16 * 1024));
    error_code error;
    const size_t count = socket.read_some(asio::buffer(bytes.data() + before, bytes.size() - before), error);
    bytes.resize(before + count);
    if (error) return {};
    net::parse_head(bytes, head);  // its views follow the bytes
  }
}

std::string answer(int status, std::string_view type, std::string_view body_end = "") {
  const auto body = fmt::format(R"({{"__type":"com.amazonaws.dynamodb.v20120810#{}","message":"made up"{}}})",
                                type, body_end);
  return fmt::format("HTTP/1.1 {} Made Up\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

// Says of a batch that nothing of it was done; empty if it is none.
std::string unprocessed(std::string_view request, std::string_view body) {
  const bool write = request.find(".BatchWriteItem") != std::string_view::npos;
  if (!write && request.find(".BatchGetItem") == std::string_view::npos) return {};
  std::string text(body);
  const std::string_view member = "\"RequestItems\"";
  const auto at = text.find(member);
  if (at == std::string::npos) return {};
  text.replace(at, member.size(), write ? "\"UnprocessedItems\"" : "\"Responses\":{},\"UnprocessedKeys\"");
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", text.size(), text);
}

void reset(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

FaultProxy::FaultProxy(uint16_t upstream, double share, uint32_t seed)
    : upstream_(upstream),
      share_(share),
      acceptor_(context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
      random_(seed),
      accepting_([this] { accept(); }) {}

FaultProxy::~FaultProxy() {
  stopping_ = true;
  error_code ignored;
  tcp::socket wake(context_);
  wake.connect(acceptor_.local_endpoint(), ignored);
  accepting_.join();
  for (auto& thread : threads_) thread.join();
}

void FaultProxy::accept() {
  while (true) {
    tcp::socket client(context_);
    error_code error;
    acceptor_.accept(client, error);
    if (stopping_) return;
    if (error) continue;
    client.set_option(tcp::no_delay(true), error);
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(
        [this, c = std::make_shared<tcp::socket>(std::move(client))] { serve(std::move(*c)); });
  }
}

Fault FaultProxy::choose() {
  const std::lock_guard lock(mutex_);
  if (next_ && before_next_-- <= 0) return *std::exchange(next_, std::nullopt);
  if (std::uniform_real_distribution<>(0, 1)(random_) >= share_) return Fault::none;
  return static_cast<Fault>(
      std::uniform_int_distribution<>(1, static_cast<int>(Fault::unprocessed))(random_));
}

void FaultProxy::serve(tcp::socket client) {
  tcp::socket upstream(context_);
  error_code error;
  upstream.connect(tcp::endpoint(asio::ip::make_address("127.0.0.1"), upstream_), error);
  while (!error && relay(client, upstream)) {
  }
}

// One request and its answer. False when the connection is over.
bool FaultProxy::relay(tcp::socket& client, tcp::socket& upstream) {
  net::RequestHead request_head;
  const auto request = read_message(client, request_head);
  if (request.empty()) return false;
  const auto body = std::string_view(request).substr(request_head.size);
  const auto fault = choose();
  faults_ += fault != Fault::none;
  error_code error;
  const auto send = [&](tcp::socket& to, std::string_view bytes) {
    asio::write(to, asio::buffer(bytes), error);
  };
  switch (fault) {
    case Fault::latency: std::this_thread::sleep_for(std::chrono::milliseconds(20)); break;
    case Fault::reset_before: reset(client); return false;
    case Fault::half_request:
      send(upstream, std::string_view(request).substr(0, request.size() - body.size() / 2 - 1));
      reset(client);
      return false;
    case Fault::error_before: send(client, answer(500, "InternalServerError")); return !error;
    case Fault::throttled: send(client, answer(400, "ProvisionedThroughputExceededException")); return !error;
    case Fault::unprocessed:
      if (const auto text = unprocessed(request, body); !text.empty()) {
        send(client, text);
        return !error;
      }
      break;
    default: break;
  }
  send(upstream, request);
  net::ResponseHead response_head;
  auto response = error ? std::string() : read_message(upstream, response_head);
  if (response.empty()) return false;
  switch (fault) {
    case Fault::reset_after: reset(client); return false;
    case Fault::half_answer:
      send(client, std::string_view(response).substr(0, response.size() - 1));
      reset(client);
      return false;
    case Fault::damaged_answer: response.back() ^= 1; break;
    case Fault::error_after: send(client, answer(500, "InternalServerError")); return !error;
    case Fault::silence: {
      // Until the client has had enough.
      std::string nothing(1, '\0');
      client.read_some(asio::buffer(nothing), error);
      return false;
    }
    default: break;
  }
  send(client, response);
  return !error && response_head.keep_alive;
}

}  // namespace tabella::test

#include "net/server.h"

#include <thread>

#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "net/body_writer.h"
#include "net/listener.h"

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

// A connection as a client has it.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : socket_(context_) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
  }
  // What comes until the other side closes.
  std::string ask(std::string_view text) {
    asio::write(socket_, asio::buffer(text));
    return listen();
  }
  std::string listen() {
    std::string answer;
    boost::system::error_code ended;
    asio::read(socket_, asio::dynamic_buffer(answer), ended);
    return answer;
  }

 private:
  asio::io_context context_;
  tcp::socket socket_;
};

// Sends "one", then "two"; breaks off between them where the path says so.
awaitable<void> one_and_two(const HttpRequest& request, HttpResponse& response) {
  const bool breaks = request.target == "/breaks";
  response.stream = [breaks](BodyWriter& body) -> awaitable<bool> {
    std::string text = "one";
    if (!co_await body.send(text) || breaks) co_return false;
    text = "two";
    co_return co_await body.send(text);
  };
  co_return;
}

class Streams : public testing::Test {
 protected:
  IoThreads threads{1};
  HttpServer server{threads, {}, one_and_two};

  void TearDown() override { server.stop(std::chrono::milliseconds(0)); }
};

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(Streams, AreChunkedAndTheConnectionStays) {
  const auto answer = RawClient(server.port())
                          .ask(
                              "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: "
                              "close\r\n\r\n");
  EXPECT_EQ(count(answer, "Transfer-Encoding: chunked\r\n"), 2u) << answer;
  EXPECT_EQ(count(answer, "\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), 2u) << answer;
  EXPECT_EQ(count(answer, "Content-Length"), 0u) << answer;
}

TEST_F(Streams, HaveNoLastChunkWhereTheyBreakOff) {
  const auto answer = RawClient(server.port()).ask("GET /breaks HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("3\r\none\r\n")) << answer;
}

TEST_F(Streams, EndWithTheConnectionOfOlderClients) {
  const auto answer = RawClient(server.port()).ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("Connection: close\r\n\r\nonetwo")) << answer;
}

TEST_F(Streams, AreNotSentToWhoAsksForTheHead) {
  const auto answer = RawClient(server.port()).ask("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Listener, TellsOneTooManyAndTakesTheNextWhenThereIsRoom) {
  IoThreads threads(1);
  const auto greet = [](Connection& connection) -> awaitable<void> {
    static constexpr std::string_view kHello = "hello\n";
    co_await connection.write_all({asio::buffer(kHello), asio::const_buffer()}, std::chrono::seconds(5));
    co_await connection.linger();
  };
  Listener listener(threads, {.max_connections = 1, .refusal = "full\n"}, greet);
  {
    RawClient first(listener.port());
    while (listener.connections() == 0) std::this_thread::yield();
    EXPECT_EQ(RawClient(listener.port()).listen(), "full\n");
  }
  while (listener.connections() > 0) std::this_thread::yield();
  EXPECT_EQ(RawClient(listener.port()).listen(), "hello\n");
  listener.stop(std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace tabella::net

#include "net/client.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using Stage = ClientError::Stage;

// Answers every request of a connection with the next of its texts, and closes when they are used up.
class ScriptedServer {
 public:
  // So many connections at once.
  explicit ScriptedServer(std::vector<std::string> answers, bool close_at_end = true, int threads = 1)
      : answers_(std::move(answers)),
        close_at_end_(close_at_end),
        acceptor_(context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    std::list<tcp::socket> wakes;
    for (size_t i = 0; i < threads_.size(); ++i) {
      boost::system::error_code ignored;
      wakes.emplace_back(context_).connect(acceptor_.local_endpoint(), ignored);
    }
    for (auto& thread : threads_) thread.join();
  }

  Url url() const { return {.tls = false, .host = "127.0.0.1", .port = acceptor_.local_endpoint().port()}; }
  int connections() const { return connections_; }

 private:
  void serve() {
    std::vector<tcp::socket> kept;
    while (!stopping_) {
      tcp::socket socket(context_);
      acceptor_.accept(socket);
      if (stopping_) return;
      ++connections_;
      for (const auto& answer : answers_) {
        std::string request(4096, '\0');
        boost::system::error_code error;
        if (socket.read_some(asio::buffer(request), error) == 0) break;
        asio::write(socket, asio::buffer(answer), error);
      }
      if (!close_at_end_) kept.push_back(std::move(socket));
    }
  }

  const std::vector<std::string> answers_;
  const bool close_at_end_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::vector<std::thread> threads_;
};

// "200 body", or how far it came and whether its time ran out.
std::string show(const std::expected<HttpReply, ClientError>& reply) {
  if (reply) return fmt::format("{} {}", reply->status(), reply->body());
  const char* stages[] = {"connecting", "sending", "waiting", "receiving"};
  return fmt::format("{}{}", stages[static_cast<int>(reply.error().stage)],
                     reply.error().timed_out ? " timed out" : "");
}

asio::awaitable<std::string> ask(HttpClient& client, milliseconds within = milliseconds{2000}) {
  const auto reply = co_await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "",
                                          std::chrono::steady_clock::now() + within);
  co_return show(reply);
}

template <class T>
T run(asio::awaitable<T> work) {
  asio::io_context context;
  std::optional<T> result;
  asio::co_spawn(context, std::move(work), [&](std::exception_ptr failure, T value) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(value);
  });
  context.run();
  return std::move(*result);
}

std::string get(const ScriptedServer& server, milliseconds within = milliseconds{2000}) {
  HttpClient client(server.url(), {.max_body = 100'000});
  return run(ask(client, within));
}

TEST(Client, ReadsBodiesHoweverTheyEnd) {
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"})), "200 hello");
  EXPECT_EQ(get(ScriptedServer(
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"})),
            "200 hello");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.0 200 OK\r\n\r\nhello"})), "200 hello");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 204 No Content\r\n\r\n"})), "204 ");
  EXPECT_EQ(
      get(ScriptedServer({"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"})),
      "200 ok");
  const std::string large(90'000, 'x');
  EXPECT_EQ(get(ScriptedServer({fmt::format("HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n{}", large)})),
            "200 " + large);
}

TEST(Client, SaysHowFarItCame) {
  EXPECT_EQ(get(ScriptedServer({""})), "waiting");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 200 OK\r\nContent-Le"})), "receiving");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"})), "receiving");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"})),
            "receiving");
  EXPECT_EQ(get(ScriptedServer({"220 mail.example.com ESMTP\r\n\r\n"})), "receiving");
  EXPECT_EQ(get(ScriptedServer({"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n"})), "receiving");
  EXPECT_EQ(get(ScriptedServer({""}, false), milliseconds{100}), "waiting timed out");
  EXPECT_EQ(
      get(ScriptedServer({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"}, false), milliseconds{100}),
      "receiving timed out");
  HttpClient nobody({.tls = false, .host = "127.0.0.1", .port = 1}, {});
  EXPECT_EQ(run(ask(nobody)), "connecting");
}

asio::awaitable<std::string> ask_often(HttpClient& client, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += co_await ask(client) + "\n";
  co_return all;
}

TEST(Client, UsesAConnectionAgain) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  const ScriptedServer server({ok + "a", ok + "b", ok + "c"});
  HttpClient client(server.url(), {});
  EXPECT_EQ(run(ask_often(client, 3)), "200 a\n200 b\n200 c\n");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Client, LeavesConnectionsThatTheServerCloses) {
  const ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na"});
  HttpClient client(server.url(), {});
  EXPECT_EQ(run(ask_often(client, 3)), "200 a\n200 a\n200 a\n");
  EXPECT_EQ(server.connections(), 3);
}

asio::awaitable<std::string> ask_after_a_rest(HttpClient& client) {
  const auto first = co_await ask(client);
  asio::steady_timer timer(co_await asio::this_coro::executor, milliseconds{400});
  co_await timer.async_wait(asio::use_awaitable);
  co_return first + "\n" + co_await ask(client);
}

TEST(Client, NoticesThatTheServerHasClosedARestingConnection) {
  const ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"});
  HttpClient client(server.url(), {});
  EXPECT_EQ(run(ask_after_a_rest(client)), "200 a\n200 a");
}

TEST(Client, TakesWhatComesAfterAnAnswerForAnError) {
  const ScriptedServer server(
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"});
  HttpClient client(server.url(), {});
  EXPECT_EQ(run(ask_often(client, 2)), "200 a\n200 a\n") << "the second is not an answer to anything";
  EXPECT_EQ(server.connections(), 2);
}

asio::awaitable<void> ask_into(HttpClient& client, std::string& out, milliseconds within) {
  out = co_await ask(client, within);
}

TEST(Client, LetsMoreRequestsWaitForTheirTurn) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
  const ScriptedServer server({ok, ok, ok, ok, ok});
  HttpClient client(server.url(), {.max_connections = 1});
  asio::io_context context;
  std::vector<std::string> answers(5);
  for (auto& answer : answers)
    asio::co_spawn(context, ask_into(client, answer, milliseconds{2000}), [](std::exception_ptr) {});
  context.run();
  for (const auto& answer : answers) EXPECT_EQ(answer, "200 a");
  EXPECT_EQ(server.connections(), 1);
}

asio::awaitable<void> ask_until(HttpClient& client, int& answers, int& all, int enough) {
  while (all < enough) {
    co_await ask(client);
    ++answers;
    ++all;
  }
}

TEST(Client, ServesThoseFirstWhoCameFirst) {
  const ScriptedServer server(
      std::vector<std::string>(1000, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"));
  HttpClient client(server.url(), {.max_connections = 1});
  asio::io_context context;
  std::vector<int> answers(4);
  int all = 0;
  for (auto& count : answers)
    asio::co_spawn(context, ask_until(client, count, all, 200), [](std::exception_ptr) {});
  context.run();
  const auto [least, most] = std::ranges::minmax(answers);
  EXPECT_LE(most - least, 2) << "each in its turn";
}

size_t open_files() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.exists() || true;
  return count;
}

asio::awaitable<std::string> ask_with_many(Url url) {
  std::string last;
  for (int i = 0; i < 20; ++i) {
    HttpClient client(url, {});
    last = co_await ask(client);
  }
  co_return fmt::format("{} {}", last, open_files() < 100 ? "few" : "many");
}

TEST(Client, TakesItsConnectionsWithIt) {
  const ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"});
  const auto before = open_files();
  EXPECT_EQ(run(ask_with_many(server.url())), "200 a few");
  EXPECT_LE(open_files(), before + 5);
}

asio::awaitable<size_t> burst_and_trickle(HttpClient& client) {
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  const auto before = open_files();
  int left = 8;
  for (int i = 0; i < 8; ++i)
    asio::co_spawn(executor, ask(client), [&](std::exception_ptr, const std::string&) { --left; });
  while (left > 0) {
    timer.expires_after(milliseconds{5});
    co_await timer.async_wait(asio::use_awaitable);
  }
  // Both ends of one or two connections are left in the end.
  int tries = 0;
  do {
    co_await ask(client);
    timer.expires_after(milliseconds{20});
    co_await timer.async_wait(asio::use_awaitable);
  } while (open_files() > before + 4 && ++tries < 200);
  co_return open_files() > before ? open_files() - before : 0;
}

TEST(Client, ClosesWhatRestsWhileOthersWork) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
  ScriptedServer server(std::vector<std::string>(100, ok), true, 8);
  HttpClient client(server.url(), {.idle = milliseconds{50}});
  EXPECT_LE(run(burst_and_trickle(client)), 4u);
}

TEST(Client, LetsItsIoContextEndInTheMiddleOfAll) {
  const ScriptedServer server({""}, false);
  HttpClient client(server.url(), {.max_connections = 1});
  std::string answers[3];
  {
    asio::io_context context;
    for (auto& answer : answers)
      asio::co_spawn(context, ask_into(client, answer, std::chrono::hours{1}), [](std::exception_ptr) {});
    context.run_for(milliseconds{50});
  }
  for (const auto& answer : answers) EXPECT_EQ(answer, "");
}

TEST(Client, EndsWhenItIsCancelled) {
  const ScriptedServer server({""}, false);
  HttpClient client(server.url(), {});
  asio::io_context context;
  asio::cancellation_signal signal;
  std::string answer = "never came";
  bool ended = false;
  asio::co_spawn(context, ask_into(client, answer, std::chrono::hours{1}),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr) { ended = true; }));
  asio::steady_timer timer(context, milliseconds{50});
  timer.async_wait([&](boost::system::error_code) { signal.emit(asio::cancellation_type::terminal); });
  context.run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(answer, "waiting");
}

TEST(Urls, AreReadStrictly) {
  EXPECT_EQ(parse_url("http://example.com")->authority(), "example.com");
  EXPECT_EQ(parse_url("https://example.com:443/a?b")->authority(), "example.com");
  EXPECT_EQ(parse_url("https://example.com:443/a?b")->path, "/a?b");
  EXPECT_EQ(parse_url("http://[::1]:8000")->authority(), "[::1]:8000");
  for (const auto* wrong :
       {"", "example.com", "http://", "http://a b", "http://a:99999", "http://a:1x", "http://a/b c"})
    EXPECT_FALSE(parse_url(wrong)) << wrong;
}

}  // namespace
}  // namespace tabella::net

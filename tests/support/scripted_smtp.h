// An SMTP server of a test's own, on 127.0.0.1, that says what its script says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "net/transport.h"
#include "smtp/connection.h"

namespace tabella::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using Kind = smtp::Outcome::Kind;
using Step = smtp::Outcome::Step;

// Until nothing is left to do.
template <class T>
T run_alone(asio::io_context& context, asio::awaitable<T> work) {
  auto result = asio::co_spawn(context, std::move(work), asio::use_future);
  context.restart();
  context.run();
  return result.get();
}

// The server's side of a connection, as a script sees it.
class Talk {
 public:
  explicit Talk(int socket) : socket_(socket), transport_(tcp::socket(context_, tcp::v4(), socket)) {}

  void say(std::string_view text) {
    run_alone(context_, transport_.write({asio::buffer(text), asio::const_buffer()}));
  }
  // A byte at a time, until nobody listens any more.
  void drip(std::string_view text, std::chrono::milliseconds pause) {
    for (const char& c : text) {
      const auto [error, n] =
          run_alone(context_, transport_.write({asio::buffer(&c, 1), asio::const_buffer()}));
      if (error) return;
      std::this_thread::sleep_for(pause);
    }
  }
  // The next line without its end; empty: they are gone.
  std::string hear() { return hear_until("\r\n"); }
  std::string hear_content() {
    if (unread_.starts_with(".\r\n")) return hear_until(".\r\n");
    return hear_until("\r\n.\r\n");
  }
  void hear_the_end() {
    while (read_more()) {
    }
  }
  // What is sent at once, without a reply in between.
  std::string hear_at_once(std::string_view last) {
    while (!unread_.ends_with(last) && read_more()) {
    }
    return std::exchange(unread_, "");
  }
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    transport_.close();
  }
  bool start_tls(const net::TlsIdentity& identity) {
    return !run_alone(context_, transport_.secure(identity));
  }

  void greet(std::string_view offers = "") {
    say("220 mx.test ESMTP\r\n");
    hello(offers);
  }
  void hello(std::string_view offers = "") {
    EXPECT_EQ(hear(), "EHLO us.test");
    say(fmt::format("250-mx.test\r\n{}250 HELP\r\n", offers));
  }
  // One letter to one recipient, to the end, with no more than is needed.
  void take_letter(std::string_view reply = "250 2.0.0 Ok: queued as 4F2B\r\n") {
    EXPECT_TRUE(hear().starts_with("MAIL FROM:<"));
    say("250 sender ok\r\n");
    take_letter_after_sender(reply);
  }
  void take_letter_after_sender(std::string_view reply = "250 2.0.0 Ok: queued as 4F2B\r\n") {
    EXPECT_TRUE(hear().starts_with("RCPT TO:<"));
    say("250 recipient ok\r\n");
    EXPECT_EQ(hear(), "DATA");
    say("354 go on\r\n");
    hear_content();
    say(reply);
  }

 private:
  bool read_more() {
    std::array<char, 4096> room;  // NOLINT: filled by the read
    const auto [error, n] = run_alone(context_, transport_.read_some(asio::buffer(room)));
    unread_.append(room.data(), n);
    return !error;
  }
  std::string hear_until(std::string_view end) {
    while (unread_.find(end) == std::string::npos)
      if (!read_more()) return "";
    const auto at = unread_.find(end);
    auto heard = unread_.substr(0, at);
    unread_.erase(0, at + end.size());
    return heard;
  }

  const int socket_;
  asio::io_context context_;
  net::Transport transport_;
  std::string unread_;
};

// A server on a thread of its own. The first connection gets the first script, and so on; one at a time.
class ScriptedServer {
 public:
  using Script = std::function<void(Talk&)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        thread_([this, scripts = std::move(scripts)] { serve(scripts); }) {}
  explicit ScriptedServer(Script script) : ScriptedServer(std::vector{std::move(script)}) {}
  ~ScriptedServer() {
    stopping_ = true;
    thread_.join();
  }

  smtp::Destination destination() const {
    return {.host = "127.0.0.1", .port = acceptor_.local_endpoint().port(), .helo = "us.test"};
  }

 private:
  void serve(const std::vector<Script>& scripts) {
    for (const auto& script : scripts) {
      pollfd waiting{.fd = acceptor_.native_handle(), .events = POLLIN, .revents = 0};
      while (poll(&waiting, 1, 10) == 0)
        if (stopping_) return;
      Talk talk(accept(acceptor_.native_handle(), nullptr, nullptr));
      script(talk);
    }
  }

  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

inline smtp::Timeouts short_ones() {
  constexpr std::chrono::milliseconds kShort{300};
  return {kShort, kShort, kShort, kShort, kShort, kShort};
}

inline const smtp::Letter kLetter{
    .from = "me@us.test", .to = {"one@mx.test"}, .data = "Subject: x\r\n\r\ntext\r\n"};
inline const smtp::Letter kThree{.from = "me@us.test",
                                 .to = {"one@mx.test", "two@mx.test", "three@mx.test"},
                                 .data = "Subject: x\r\n\r\ntext\r\n"};

inline void expect(const smtp::Outcome& outcome, Kind kind, Step step, std::string_view reply) {
  EXPECT_EQ(to_string(outcome.kind), to_string(kind));
  EXPECT_EQ(to_string(outcome.step), to_string(step));
  EXPECT_EQ(outcome.reply, reply);
}

inline constexpr auto kClosed = "127.0.0.1 closed the connection";
inline constexpr auto kLate = "127.0.0.1 did not answer in time";
inline constexpr auto kNonsense = "127.0.0.1 said something that is not SMTP";

}  // namespace tabella::test

#include "smtp/client.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/text.h"
#include "net/address_rules.h"
#include "net/by_value.h"
#include "net/transport.h"
#include "smtp/address.h"

namespace tabella::smtp {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {

constexpr size_t kLongestReply = 64 * 1024;

using Sent = std::expected<std::string, SendError>;

std::unexpected<SendError> failed(std::string message) {
  return std::unexpected(SendError{.code = 0, .message = std::move(message)});
}

struct Answer {
  int code = 0;
  std::vector<std::string> lines;  // without the code

  std::string text() const { return fmt::format("{} {}", code, fmt::join(lines, " ")); }
  bool ok() const { return code >= 200 && code < 300; }
};

class Client {
 public:
  Client(const asio::any_io_executor& executor, const Relay& relay)
      : transport_(executor),
        relay_(relay),
        trust_(relay.check_certificate ? net::TlsTrust("") : net::TlsTrust::anyone()) {}

  awaitable<Sent> send(const Letter& letter) {
    if (auto ready = co_await begin(); !ready) co_return ready;
    if (!relay_.user.empty())
      if (auto done = co_await log_in(); !done) co_return done;
    co_return co_await hand_over(letter);
  }
  void close() { transport_.close(); }

 private:
  awaitable<Sent> begin() {
    if (auto connected = co_await connect(); !connected) co_return connected;
    if (relay_.security == Security::implicit)
      if (auto secure = co_await start_tls(); !secure) co_return secure;
    if (auto greeting = co_await expect(2); !greeting) co_return greeting;
    if (auto hello = co_await say_hello(); !hello) co_return hello;
    const bool wanted = relay_.security == Security::required ||
                        (relay_.security == Security::opportunistic && offers("STARTTLS"));
    if (!wanted) co_return Sent();
    if (!offers("STARTTLS")) co_return failed(fmt::format("{} does not offer STARTTLS", relay_.host));
    if (auto agreed = co_await command("STARTTLS", 2); !agreed) co_return agreed;
    // What came before the handshake was not said under TLS.
    unread_.clear();
    if (auto secure = co_await start_tls(); !secure) co_return secure;
    co_return co_await say_hello();
  }

  awaitable<Sent> connect() {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    const auto [unknown, found] =
        co_await resolver.async_resolve(relay_.host, std::to_string(relay_.port), net::kByValue);
    if (unknown) co_return failed(fmt::format("{} is not known: {}", relay_.host, unknown.message()));
    std::vector<tcp::endpoint> endpoints(found.begin(), found.end());
    if (relay_.rules) {
      auto permitted = relay_.rules->permitted(relay_.host, std::move(endpoints));
      if (!permitted)
        co_return std::unexpected(SendError{.refused = true, .message = std::move(permitted).error()});
      endpoints = std::move(*permitted);
    }
    boost::system::error_code error = asio::error::host_not_found;
    for (const auto& endpoint : endpoints) {
      std::tie(error) = co_await transport_.connect(endpoint);
      if (!error) co_return Sent();
    }
    co_return failed(fmt::format("cannot connect to {}:{}: {}", relay_.host, relay_.port, error.message()));
  }

  awaitable<Sent> start_tls() {
    const auto error = co_await transport_.secure(trust_, relay_.host);
    if (error) co_return failed(fmt::format("no secure connection to {}: {}", relay_.host, error.message()));
    co_return Sent();
  }

  awaitable<Sent> say_hello() {
    auto hello = co_await command("EHLO " + relay_.helo, 2);
    extensions_.clear();
    if (hello) {
      for (size_t i = 1; i < answer_.lines.size(); ++i) extensions_.push_back(upper(answer_.lines[i]));
      co_return hello;
    }
    if (hello.error().code < 500) co_return hello;
    co_return co_await command("HELO " + relay_.helo, 2);
  }

  bool offers(std::string_view extension) const {
    return std::ranges::any_of(extensions_, [&](const std::string& line) {
      return line == extension || line.starts_with(std::string(extension) + " ");
    });
  }
  bool offers_login(const std::string& mechanism) const {
    return std::ranges::any_of(extensions_, [&](const std::string& line) {
      return line.starts_with("AUTH") && (line + " ").find(" " + mechanism + " ") != std::string::npos;
    });
  }

  awaitable<Sent> log_in() {
    auto mechanism = relay_.mechanism;
    if (mechanism == Mechanism::automatic)
      mechanism = offers_login("CRAM-MD5") && !transport_.is_secure() ? Mechanism::cram_md5
                  : offers_login("PLAIN")                             ? Mechanism::plain
                                                                      : Mechanism::login;
    switch (mechanism) {
      case Mechanism::automatic: break;
      case Mechanism::plain: {
        std::string identity;
        identity.append(1, '\0').append(relay_.user).append(1, '\0').append(relay_.password);
        co_return co_await command("AUTH PLAIN " + to_base64(identity), 2);
      }
      case Mechanism::login: {
        if (auto asked = co_await command("AUTH LOGIN", 3); !asked) co_return asked;
        if (auto asked = co_await command(to_base64(relay_.user), 3); !asked) co_return asked;
        co_return co_await command(to_base64(relay_.password), 2);
      }
      case Mechanism::cram_md5: {
        if (auto asked = co_await command("AUTH CRAM-MD5", 3); !asked) co_return asked;
        const auto challenge = from_base64(answer_.lines.empty() ? "" : answer_.lines.front());
        if (!challenge) co_return failed(relay_.host + " asked something that cannot be read");
        co_return co_await command(
            to_base64(relay_.user + " " + to_hex(hmac_md5(relay_.password, *challenge))), 2);
      }
    }
    co_return failed("no way to log in");
  }

  awaitable<Sent> hand_over(const Letter& letter) {
    const bool needs_utf8 = !is_ascii(letter.from) ||
                            std::ranges::any_of(letter.to, [](const auto& to) { return !is_ascii(to); });
    if (needs_utf8 && !offers("SMTPUTF8"))
      co_return failed(fmt::format("{} does not take addresses beyond ASCII", relay_.host));
    const auto data = stuff_dots(letter.data);
    std::string parameters;
    if (offers("SIZE")) parameters += fmt::format(" SIZE={}", data.size());
    if (!is_ascii(data) && offers("8BITMIME")) parameters += " BODY=8BITMIME";
    if (needs_utf8) parameters += " SMTPUTF8";
    if (auto taken = co_await command(fmt::format("MAIL FROM:<{}>{}", letter.from, parameters), 2); !taken)
      co_return taken;
    for (const auto& to : letter.to)
      if (auto taken = co_await command(fmt::format("RCPT TO:<{}>", to), 2); !taken) co_return taken;
    if (auto ready = co_await command("DATA", 3); !ready) co_return ready;
    if (!co_await write(data) || !co_await write(".\r\n")) co_return failed("the connection broke");
    auto taken = co_await expect(2);
    if (taken) co_await write("QUIT\r\n");
    co_return taken;
  }

  // Fails unless the answer's code begins with `kind`.
  awaitable<Sent> command(std::string line, int kind) {
    if (!co_await write(line + "\r\n"))
      co_return failed(fmt::format("{} closed the connection", relay_.host));
    co_return co_await expect(kind);
  }

  awaitable<Sent> expect(int kind) {
    answer_ = {};
    while (true) {
      const auto line = co_await read_line();
      if (!line) co_return failed(fmt::format("{} closed the connection", relay_.host));
      const auto [end, error] =
          std::from_chars(line->data(), line->data() + std::min<size_t>(3, line->size()), answer_.code);
      if (line->size() < 3 || error != std::errc{})
        co_return failed(relay_.host + " said something that is not SMTP");
      answer_.lines.push_back(line->size() > 4 ? line->substr(4) : "");
      if (line->size() == 3 || (*line)[3] != '-') break;
    }
    if (answer_.code / 100 == kind) co_return answer_.text();
    co_return std::unexpected(SendError{.code = answer_.code, .message = answer_.text()});
  }

  awaitable<std::optional<std::string>> read_line() {
    while (true) {
      if (const auto end = unread_.find('\n'); end != std::string::npos) {
        auto line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        co_return line;
      }
      if (unread_.size() > kLongestReply || answer_.lines.size() > 1000) co_return std::nullopt;
      std::array<char, 4096> room;  // NOLINT: filled by the read
      const auto [error, n] = co_await transport_.read_some(asio::buffer(room));
      if (error) co_return std::nullopt;
      unread_.append(room.data(), n);
    }
  }

  awaitable<bool> write(std::string_view bytes) {
    const auto [error, n] = co_await transport_.write({asio::buffer(bytes), asio::const_buffer()});
    co_return !error;
  }

  net::Transport transport_;
  const Relay& relay_;
  const net::TlsTrust trust_;
  std::string unread_;
  Answer answer_;
  std::vector<std::string> extensions_;
};

bool is_harmless(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string stuff_dots(std::string_view data) {
  std::string out;
  out.reserve(data.size() + data.size() / 64 + 16);
  while (!data.empty()) {
    const auto end = data.find_first_of("\r\n");
    const auto line = data.substr(0, end);
    if (line.starts_with('.')) out.push_back('.');
    out.append(line).append("\r\n");
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + (data.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  return out;
}

awaitable<Sent> send(Relay relay, Letter letter, std::chrono::milliseconds timeout) {
  for (const auto& to : letter.to)
    if (!is_address(to)) co_return failed(fmt::format("'{}' is no address", to));
  if (letter.to.empty()) co_return failed("there is nobody to send it to");
  if ((!letter.from.empty() && !is_address(letter.from)) || !is_harmless(relay.helo))
    co_return failed(fmt::format("'{}' is no address", letter.from));
  try {
    const auto executor = co_await asio::this_coro::executor;
    Client client(executor, relay);
    asio::steady_timer timer(executor, timeout);
    using asio::experimental::awaitable_operators::operator||;
    auto result = co_await (client.send(letter) || timer.async_wait(asio::use_awaitable));
    client.close();
    if (result.index() == 1) co_return failed(fmt::format("{} did not answer in time", relay.host));
    co_return std::get<0>(std::move(result));
  } catch (const std::exception& error) {
    co_return failed(error.what());
  }
}

}  // namespace tabella::smtp

#include "smtp/connection.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/result.h"
#include "base/text.h"
#include "base/utf8.h"
#include "net/address_rules.h"
#include "net/by_value.h"
#include "net/transport.h"

namespace tabella::smtp {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;
using Opened = ClientConnection::Opened;

namespace {

constexpr size_t kLongestReply = 64 * 1024;
constexpr size_t kMostLines = 1000;
constexpr size_t kKeptOfReply = 500;

// As much of it as is kept.
std::string shown_reply(std::string_view text) {
  auto result = printable(text.substr(0, kKeptOfReply));
  result.resize(valid_utf8_length(std::string_view(result).substr(0, kKeptOfReply)));
  return std::string(trim(result));
}

// The code of RFC 3463 that the text begins with; empty if there is none.
std::string_view enhanced_code(std::string_view text) {
  const auto code = text.substr(0, text.find_first_of(" \n"));
  const auto parts = split(code, '.');
  const bool fits = parts.size() == 3 && (parts[0] == "2" || parts[0] == "4" || parts[0] == "5") &&
                    std::ranges::all_of(parts, [](std::string_view part) {
                      return !part.empty() && part.size() <= 3 &&
                             std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
                    });
  return fits ? code : std::string_view();
}

bool fits_one_line(std::string_view text) {
  return !text.empty() &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// As PLAIN says it.
std::string identity_of(const Destination& destination) {
  std::string identity;
  return identity.append(1, '\0').append(destination.user).append(1, '\0').append(destination.password);
}

// A question to the system's resolver. It cannot be interrupted, but left alone: it outlives who asked.
struct Lookup {
  explicit Lookup(const asio::any_io_executor& executor) : resolver(executor), timer(executor) {}
  tcp::resolver resolver;
  asio::steady_timer timer;  // the asker's patience
  bool answered = false;
  error_code error;
  std::vector<tcp::endpoint> found;
};

awaitable<std::shared_ptr<const Lookup>> look_up(const std::string& host, uint16_t port,
                                                 SteadyClock::time_point until) {
  auto lookup = std::make_shared<Lookup>(co_await asio::this_coro::executor);
  lookup->timer.expires_at(until);
  lookup->resolver.async_resolve(host, std::to_string(port),
                                 [lookup](error_code error, const tcp::resolver::results_type& found) {
                                   lookup->answered = true;
                                   lookup->error = error;
                                   lookup->found.assign(found.begin(), found.end());
                                   lookup->timer.cancel();
                                 });
  co_await lookup->timer.async_wait(net::kByValue);
  co_return lookup;
}

}  // namespace

// The bytes, and the timer that closes them when a step takes too long. The timer is set anew only for an
// earlier time than the one it waits for; when it wakes too early, it goes on waiting.
struct ClientConnection::Line : std::enable_shared_from_this<ClientConnection::Line> {
  explicit Line(const asio::any_io_executor& executor) : transport(executor), timer(executor) {}

  void allow_until(SteadyClock::time_point until) {
    deadline = until;
    if (!waiting || until < timer.expiry()) wait();
  }
  void rest() {
    deadline = SteadyClock::time_point::max();
    if (std::exchange(waiting, false)) timer.cancel();
  }
  void wait() {
    waiting = true;
    timer.expires_at(deadline);
    timer.async_wait([self = weak_from_this()](error_code error) {
      const auto line = self.lock();
      if (error || !line || !line->waiting) return;
      if (SteadyClock::now() < line->deadline) return line->wait();
      line->waiting = false;
      line->expired = true;
      line->transport.close();
    });
  }

  net::Transport transport;
  asio::steady_timer timer;
  SteadyClock::time_point deadline = SteadyClock::time_point::max();
  bool waiting = false;
  bool expired = false;
  std::array<char, 4096> room;  // NOLINT: filled by reads
};

std::string_view to_string(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::delivered: return "delivered";
    case Outcome::Kind::deferred: return "deferred";
    case Outcome::Kind::refused: return "refused";
    case Outcome::Kind::unknown: return "unknown";
  }
  return "";
}

std::string_view to_string(Outcome::Step step) {
  switch (step) {
    case Outcome::Step::connect: return "connect";
    case Outcome::Step::greeting: return "greeting";
    case Outcome::Step::hello: return "hello";
    case Outcome::Step::tls: return "tls";
    case Outcome::Step::login: return "login";
    case Outcome::Step::sender: return "sender";
    case Outcome::Step::recipient: return "recipient";
    case Outcome::Step::data: return "data";
    case Outcome::Step::content: return "content";
  }
  return "";
}

ClientConnection::ClientConnection(const asio::any_io_executor& executor, Destination destination,
                                   const net::TlsTrust& trust, Timeouts timeouts)
    : destination_(std::move(destination)),
      trust_(trust),
      timeouts_(timeouts),
      line_(std::make_shared<Line>(executor)) {}
ClientConnection::~ClientConnection() { close(); }

awaitable<Opened> ClientConnection::open() {
  auto opened = co_await begin(true);
  if (!opened) co_await quit();
  rest();
  co_return opened;
}

awaitable<Opened> ClientConnection::open_without_tls() {
  auto opened = co_await begin(false);
  if (!opened) co_await quit();
  rest();
  co_return opened;
}

bool ClientConnection::may_go_without_tls(const Outcome& failure) const {
  return failure.step == Step::tls && destination_.security == Security::opportunistic &&
         destination_.user.empty();
}

awaitable<Opened> ClientConnection::begin(bool with_tls) {
  if (!fits_one_line(destination_.helo))
    co_return failed(Step::hello, "4.3.5", fmt::format("'{}' is no name to say", destination_.helo));
  TABELLA_CO_TRY(co_await connect());
  if (destination_.security == Security::implicit) TABELLA_CO_TRY(co_await secure(timeouts_.greeting));
  TABELLA_CO_TRY(co_await greet());
  TABELLA_CO_TRY(co_await say_hello());
  if (with_tls) TABELLA_CO_TRY(co_await start_tls());
  if (!destination_.user.empty()) TABELLA_CO_TRY(co_await log_in());
  co_return Opened();
}

awaitable<Opened> ClientConnection::connect() {
  unread_.clear();
  at_ = 0;
  needs_reset_ = false;
  trouble_ = Trouble::none;
  TABELLA_CO_ASSIGN(const auto endpoints, co_await find());
  error_code error = asio::error::host_not_found;
  for (const auto& endpoint : endpoints) {
    line_->expired = SteadyClock::now() >= limit_;
    if (line_->expired) break;
    allow(timeouts_.connect);
    std::tie(error) = co_await line_->transport.connect(endpoint);
    if (error) continue;
    open_ = true;
    peer_ = endpoint.address().to_string();
    co_return Opened();
  }
  co_return failed(
      Step::connect, "4.4.1",
      fmt::format("cannot connect to {}:{}: {}", destination_.host, destination_.port, error.message()));
}

awaitable<std::expected<ClientConnection::Endpoints, Outcome>> ClientConnection::find() {
  const auto& [host, port] = std::tie(destination_.host, destination_.port);
  auto endpoints = destination_.endpoints;
  error_code is_name;
  if (endpoints.empty())
    if (const auto address = asio::ip::make_address(host, is_name); !is_name)
      endpoints.emplace_back(address, port);
  if (endpoints.empty()) {
    const auto until = std::min(SteadyClock::now() + timeouts_.connect, limit_);
    const auto lookup = co_await look_up(host, port, until);
    line_->expired = !lookup->answered;
    if (!lookup->answered || lookup->error)
      co_return failed(Step::connect, "4.4.3",
                       fmt::format("{} is not known: {}", host, lookup->error.message()));
    endpoints = lookup->found;
  }
  if (!destination_.rules) co_return endpoints;
  auto permitted = destination_.rules->permitted(host, std::move(endpoints));
  if (permitted) co_return std::move(*permitted);
  co_return std::unexpected(Outcome{.kind = Kind::refused,
                                    .step = Step::connect,
                                    .enhanced = "5.7.1",
                                    .reply = shown_reply(permitted.error())});
}

awaitable<Opened> ClientConnection::greet() {
  if (!co_await read_reply(timeouts_.greeting)) co_return std::unexpected(broke(Step::greeting));
  if (reply_.code / 100 != 2) co_return std::unexpected(said(Step::greeting));
  co_return Opened();
}

awaitable<Opened> ClientConnection::say_hello() {
  offers_ = {};
  auto hello = co_await command("EHLO " + destination_.helo, 2, Step::hello);
  if (hello) read_offers();
  if (hello || hello.error().code < 500) co_return hello;
  co_return co_await command("HELO " + destination_.helo, 2, Step::hello);
}

void ClientConnection::read_offers() {
  std::string_view text = reply_.text;
  while (true) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);  // the first line is the server's name
    const auto line = upper(text.substr(0, text.find('\n')));
    // AUTH=LOGIN is how it was written before there was a standard.
    const auto name = std::string_view(line).substr(0, line.find_first_of(" ="));
    const auto value = trim(std::string_view(line).substr(std::min(name.size() + 1, line.size())));
    if (name == "STARTTLS") offers_.starttls = true;
    if (name == "PIPELINING") offers_.pipelining = true;
    if (name == "8BITMIME") offers_.eight_bit = true;
    if (name == "SMTPUTF8") offers_.utf8 = true;
    if (name == "AUTH") offers_.logins += fmt::format(" {} ", value);
    if (name == "SIZE") {
      uint64_t size = 0;
      std::from_chars(value.data(), value.data() + value.size(), size);
      offers_.size = size;
    }
  }
}

awaitable<Opened> ClientConnection::start_tls() {
  const auto security = destination_.security;
  if (security == Security::none || security == Security::implicit) co_return Opened();
  if (!offers_.starttls && security == Security::opportunistic) co_return Opened();
  if (!offers_.starttls)
    co_return failed(Step::tls, "4.7.4", fmt::format("{} does not offer STARTTLS", destination_.host));
  if (auto agreed = co_await command("STARTTLS", 2, Step::tls); !agreed) {
    const bool goes_on = open_ && reply_.code != 421 && may_go_without_tls(agreed.error());
    co_return goes_on ? Opened() : agreed;
  }
  // What came before the handshake was not said under TLS.
  unread_.clear();
  at_ = 0;
  TABELLA_CO_TRY(co_await secure(timeouts_.command));
  co_return co_await say_hello();
}

awaitable<Opened> ClientConnection::secure(milliseconds limit) {
  allow(limit);
  const auto error = co_await line_->transport.secure(trust_, destination_.host);
  if (!error) co_return Opened();
  close();
  co_return failed(Step::tls, "4.7.5",
                   fmt::format("no secure connection to {}: {}", destination_.host, error.message()));
}

awaitable<Opened> ClientConnection::log_in() {
  const auto offered = [&](std::string_view name) {
    return offers_.logins.find(fmt::format(" {} ", name)) != std::string::npos;
  };
  auto mechanism = destination_.mechanism;
  if (mechanism == Mechanism::automatic)
    mechanism = offered("CRAM-MD5") && !line_->transport.is_secure() ? Mechanism::cram_md5
                : offered("PLAIN")                                   ? Mechanism::plain
                                                                     : Mechanism::login;
  auto done = co_await log_in_by(mechanism);
  if (done || destination_.password.empty()) co_return done;
  const auto& password = destination_.password;
  for (const auto& secret : {password, to_base64(password), to_base64(identity_of(destination_))})
    if (reply_.text.find(secret) != std::string::npos)
      done.error().reply = fmt::format("{} (the rest of the reply repeats the password)", reply_.code);
  co_return done;
}

awaitable<Opened> ClientConnection::log_in_by(Mechanism mechanism) {
  const auto& [user, password] = std::tie(destination_.user, destination_.password);
  switch (mechanism) {
    case Mechanism::automatic: break;
    case Mechanism::plain:
      co_return co_await command("AUTH PLAIN " + to_base64(identity_of(destination_)), 2, Step::login);
    case Mechanism::login:
      TABELLA_CO_TRY(co_await command("AUTH LOGIN", 3, Step::login));
      TABELLA_CO_TRY(co_await command(to_base64(user), 3, Step::login));
      co_return co_await command(to_base64(password), 2, Step::login);
    case Mechanism::cram_md5: {
      TABELLA_CO_TRY(co_await command("AUTH CRAM-MD5", 3, Step::login));
      const auto challenge = from_base64(reply_.text);
      if (!challenge)
        co_return failed(Step::login, "4.7.0", destination_.host + " asked something that cannot be read");
      const auto digest = to_hex(hmac_md5(password, *challenge));
      co_return co_await command(to_base64(user + " " + digest), 2, Step::login);
    }
  }
  co_return failed(Step::login, "4.7.0", "no way to log in");
}

// Fails unless the code of the reply begins with `kind`.
awaitable<Opened> ClientConnection::command(std::string line, int kind, Step step) {
  commands_ = std::move(line);
  allow(timeouts_.command);
  co_await write(commands_, "\r\n");
  if (!co_await read_reply(timeouts_.command)) co_return std::unexpected(broke(step));
  if (reply_.code / 100 != kind) co_return std::unexpected(said(step));
  co_return Opened();
}

awaitable<void> ClientConnection::quit() {
  if (open_) {
    allow(timeouts_.quit);
    co_await write("QUIT\r\n");
  }
  close();
  rest();
}

bool ClientConnection::is_secure() const { return line_->transport.is_secure(); }

bool ClientConnection::is_quiet() { return open_ && !has_unread() && line_->transport.is_quiet(); }

// Where it fails, there may still be a reply that says why: a caller reads on and fails there.
awaitable<bool> ClientConnection::write(std::string_view bytes, std::string_view more) {
  const auto [error, n] = co_await line_->transport.write({asio::buffer(bytes), asio::buffer(more)});
  co_return !error;
}

// False: there is none, trouble_ says why, and the connection is closed.
awaitable<bool> ClientConnection::read_reply(milliseconds limit) {
  allow(limit);
  reply_.code = 0;
  reply_.lines = 0;
  reply_.text.clear();
  while (true) {
    const auto parsed = parse_reply();
    if (parsed == Parsed::whole) co_return true;
    if (parsed == Parsed::nonsense) {
      break_off(Trouble::nonsense);
      co_return false;
    }
    const auto [error, n] = co_await line_->transport.read_some(asio::buffer(line_->room));
    if (error) {
      break_off(line_->expired ? Trouble::late : Trouble::lost);
      co_return false;
    }
    unread_.append(line_->room.data(), n);
  }
}

// Takes what is there of a reply.
ClientConnection::Parsed ClientConnection::parse_reply() {
  while (true) {
    const auto end = unread_.find('\n', at_);
    if (end == std::string::npos) break;
    auto line = std::string_view(unread_).substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at_ = end + 1;
    bool last = false;
    if (!parse_line(line, last)) return Parsed::nonsense;
    if (last) return Parsed::whole;
  }
  unread_.erase(0, std::exchange(at_, 0));
  return unread_.size() > kLongestReply ? Parsed::nonsense : Parsed::partly;
}

// Of several codes the last counts.
bool ClientConnection::parse_line(std::string_view line, bool& last) {
  const auto digit = [&](size_t i, char from, char to) { return line[i] >= from && line[i] <= to; };
  if (line.size() < 3 || !digit(0, '2', '5') || !digit(1, '0', '9') || !digit(2, '0', '9')) return false;
  if (line.size() > 3 && line[3] != ' ' && line[3] != '-') return false;
  last = line.size() == 3 || line[3] == ' ';
  reply_.code = (line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0');
  if (reply_.lines++ > 0) reply_.text.push_back('\n');
  reply_.text.append(line.substr(std::min<size_t>(4, line.size())));
  return reply_.lines <= kMostLines && reply_.text.size() <= kLongestReply;
}

void ClientConnection::allow(milliseconds limit) {
  line_->allow_until(std::min(SteadyClock::now() + limit, limit_));
}

// No step is under way, and no timer keeps anybody's loop running.
void ClientConnection::rest() { line_->rest(); }

void ClientConnection::close() {
  open_ = false;
  line_->transport.close();
}

void ClientConnection::break_off(Trouble trouble) {
  trouble_ = trouble;
  close();
}

// What the reply means at that step.
Outcome ClientConnection::said(Step step) const {
  const auto by_code = reply_.code < 400   ? Kind::delivered
                       : reply_.code < 500 ? Kind::deferred
                                           : Kind::refused;
  return {.kind = step < Step::sender ? Kind::deferred : by_code,
          .step = step,
          .code = reply_.code,
          .enhanced = std::string(enhanced_code(reply_.text)),
          .reply = shown_reply(
              fmt::format("{} {}", reply_.code, std::string_view(reply_.text).substr(0, kKeptOfReply)))};
}

// What it means that there is none.
Outcome ClientConnection::broke(Step step, Kind kind) const {
  const auto what = trouble_ == Trouble::late       ? "did not answer in time"
                    : trouble_ == Trouble::nonsense ? "said something that is not SMTP"
                                                    : "closed the connection";
  return {.kind = kind,
          .step = step,
          .enhanced = trouble_ == Trouble::nonsense ? "4.5.0" : "4.4.2",
          .reply = shown_reply(fmt::format("{} {}", destination_.host, what))};
}

std::unexpected<Outcome> ClientConnection::failed(Step step, std::string_view enhanced,
                                                  std::string_view sentence) const {
  const auto late = fmt::format("{} did not answer in time", destination_.host);
  return std::unexpected(Outcome{.step = step,
                                 .enhanced = std::string(enhanced),
                                 .reply = shown_reply(line_->expired ? late : sentence)});
}

}  // namespace tabella::smtp

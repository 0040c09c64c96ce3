#include "smtp/session.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/ids.h"
#include "base/text.h"
#include "base/utf8.h"
#include "net/transport.h"
#include "smtp/data.h"

namespace tabella::smtp {

using boost::asio::awaitable;

namespace {

constexpr size_t kLongestCommand = 4 * 1024;
constexpr size_t kLongestLogin = 12 * 1024;  // RFC 4954
constexpr size_t kMostMistakes = 100;

// What may stand in a header without changing what it says.
std::string harmless(std::string_view text) {
  std::string result(trim(text).substr(0, 255));
  std::erase_if(result, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return result;
}

std::string_view argument_after(std::string_view argument, std::string_view keyword) {
  const auto colon = argument.find(':');
  if (colon == std::string_view::npos || upper(trim(argument.substr(0, colon))) != keyword) return {};
  return argument.substr(colon + 1);
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::string_view kBareLineFeed =
    "5.5.2 bare <LF> received: end each line with <CR><LF>; closing the connection";
constexpr std::string_view kBareCarriageReturn =
    "5.5.2 bare <CR> received: end each line with <CR><LF>; closing the connection";

}  // namespace

Session::Session(Channel& channel, Host& host, const SessionOptions& options,
                 std::atomic<size_t>& budget_used, std::string peer)
    : channel_(channel),
      host_(host),
      options_(options),
      budget_(budget_used, options.budget),
      peer_(std::move(peer)),
      until_(std::chrono::steady_clock::now() + options.longest) {}

awaitable<void> Session::run() {
  if (!host_.takes_connection()) co_return;
  say(220, options_.hostname + " ESMTP Tabella");
  while (open_) {
    const auto read = co_await read_line(kLongestCommand);
    if (read == Line::ended) co_return;
    if (read == Line::whole) co_await run_command();
    if (mistakes_ > kMostMistakes) {
      say(421, "4.7.0 too many mistakes; closing the connection");
      open_ = false;
    }
  }
  co_await flush();
}

// Replies wait until there is nothing more to read: those to pipelined commands leave together.
awaitable<bool> Session::flush() {
  if (out_.empty()) co_return true;
  const auto out = std::exchange(out_, {});
  co_return co_await channel_.write(out);
}

awaitable<bool> Session::read_more() {
  if (!co_await flush()) co_return false;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + net::kReadSize) buffer_.resize(end_ + net::kReadSize);
  const auto now = std::chrono::steady_clock::now();
  if (now >= until_) {
    co_await channel_.write("421 4.4.2 the session took too long; closing the connection\r\n");
    co_return false;
  }
  channel_.expire_in(options_.idle);
  channel_.set_holding(budget_.size() > 0);
  const size_t n =
      co_await channel_.read_some(boost::asio::buffer(buffer_.data() + end_, buffer_.size() - end_));
  channel_.set_holding(false);
  end_ += n;
  co_return n > 0;
}

awaitable<Session::Line> Session::read_line(size_t longest) {
  bool too_long = false;
  while (true) {
    const auto rest = unread();
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (rest.size() > longest) {
        too_long = true;
        // A carriage return at the end may belong to the line end.
        begin_ = rest.back() == '\r' ? end_ - 1 : end_;
      }
      if (!host_.goes_on()) {
        co_await flush();
        co_return Line::ended;
      }
      if (!co_await read_more()) co_return Line::ended;
      continue;
    }
    if (end == 0 || rest[end - 1] != '\r') {
      say(521, kBareLineFeed);
      open_ = false;
      co_return Line::refused;
    }
    line_ = rest.substr(0, end - 1);
    begin_ += end + 1;
    if (too_long || line_.size() > longest) {
      ++mistakes_;
      say(500, "5.5.2 the line is too long");
      co_return Line::refused;
    }
    if (line_.find('\r') != std::string::npos) {
      say(521, kBareCarriageReturn);
      open_ = false;
      co_return Line::refused;
    }
    co_return Line::whole;
  }
}

void Session::say(int code, std::string_view text) {
  const auto lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i)
    fmt::format_to(std::back_inserter(out_), "{}{}{}\r\n", code, i + 1 < lines.size() ? '-' : ' ', lines[i]);
}

void Session::say(const Reply& reply) {
  say(reply.code, reply.text);
  if (reply.close) open_ = false;
}

void Session::reset() {
  envelope_ = {};
  budget_.resize(0);
  has_sender_ = chunks_ = chunks_failed_ = false;
}

awaitable<void> Session::run_command() {
  const std::string line = line_;
  const auto blank = std::min(line.find(' '), line.size());
  const auto verb = upper(std::string_view(line).substr(0, blank));
  const auto argument = trim(std::string_view(line).substr(blank));
  if (verb == "HELO" || verb == "EHLO") {
    hello(argument, verb == "EHLO");
  } else if (verb == "QUIT") {
    say(221, "2.0.0 Bye");
    open_ = false;
  } else if (verb == "NOOP") {
    say(250, "2.0.0 Ok");
  } else if (verb == "RSET") {
    reset();
    say(250, "2.0.0 Ok");
  } else if (verb == "HELP") {
    say(214, "2.0.0 Mail that comes here is caught, not delivered; look at it over HTTP");
  } else if (verb == "VRFY") {
    say(252, "2.5.2 every address is taken");
  } else if (verb == "EXPN") {
    say(502, "5.5.1 there are no lists here");
  } else if (verb == "STARTTLS") {
    co_await start_tls();
  } else if (verb == "AUTH") {
    co_await log_in(argument);
  } else if (verb == "MAIL") {
    mail(argument);
  } else if (verb == "RCPT") {
    recipient(argument);
  } else if (verb == "DATA") {
    co_await data();
  } else if (verb == "BDAT") {
    co_await chunk(argument);
  } else {
    ++mistakes_;
    say(500, "5.5.1 Unrecognised command");
  }
}

void Session::hello(std::string_view name, bool extended) {
  if (harmless(name).empty()) {
    ++mistakes_;
    return say(501, "5.5.4 say who you are: EHLO name");
  }
  reset();
  helo_ = harmless(name);
  extended_ = extended;
  if (!extended) return say(250, "Hello " + helo_);
  std::string text = fmt::format(
      "Hello {}\nPIPELINING\nSIZE {}\n8BITMIME\nSMTPUTF8\nENHANCEDSTATUSCODES\n"
      "CHUNKING\n",
      helo_, options_.max_message);
  if (channel_.can_start_tls() && !channel_.is_secure()) text += "STARTTLS\n";
  if (!options_.require_tls || channel_.is_secure())
    text += options_.offer_cram_md5 ? "AUTH PLAIN LOGIN CRAM-MD5\n" : "AUTH PLAIN LOGIN\n";
  text += "HELP";
  say(250, text);
}

awaitable<void> Session::start_tls() {
  if (!channel_.can_start_tls()) co_return say(502, "5.5.1 TLS is not set up here: see --smtp-tls-cert");
  if (channel_.is_secure()) co_return say(503, "5.5.1 the connection is secure already");
  say(220, "2.0.0 Ready to start TLS");
  if (!co_await flush()) co_return;
  // What came in the clear behind the command must not count as said under TLS.
  begin_ = end_ = 0;
  channel_.expire_in(options_.idle);
  open_ = co_await channel_.start_tls();
  reset();
  helo_.clear();
  user_.clear();
  extended_ = false;
}

// One step of a login: what the client answers, decoded; nothing if it cannot be used.
awaitable<std::optional<std::string>> Session::ask(std::string_view challenge) {
  say(334, to_base64(challenge));
  const auto read = co_await read_line(kLongestLogin);
  if (read == Line::ended) open_ = false;
  if (read != Line::whole) co_return std::nullopt;
  if (line_ == "*") {
    say(501, "5.7.0 the login was cancelled");
    co_return std::nullopt;
  }
  auto answer = from_base64(line_);
  if (!answer) say(501, "5.5.2 that is no base64");
  co_return answer;
}

awaitable<std::optional<Credentials>> Session::ask_for_credentials(std::string mechanism,
                                                                   std::string initial) {
  std::optional<std::string> first;
  if (!initial.empty()) {
    first = initial == "=" ? std::string() : from_base64(initial);
    if (!first) say(501, "5.5.2 that is no base64");
    if (!first) co_return std::nullopt;
  }
  Credentials credentials;
  if (mechanism == "PLAIN") {
    if (!first) first = co_await ask("");
    if (!first) co_return std::nullopt;
    const auto fields = split(*first, '\0');
    if (fields.size() != 3) {
      say(501, "5.5.2 expected an identity, a user and a password");
      co_return std::nullopt;
    }
    credentials.user = fields[1];
    credentials.password = fields[2];
  } else if (mechanism == "LOGIN") {
    if (!first) first = co_await ask("Username:");
    if (!first) co_return std::nullopt;
    const auto password = co_await ask("Password:");
    if (!password) co_return std::nullopt;
    credentials.user = *first;
    credentials.password = *password;
  } else {
    credentials.challenge = fmt::format("<{}.{}@{}>", random_bits(), random_bits(), options_.hostname);
    const auto answer = co_await ask(credentials.challenge);
    if (!answer) co_return std::nullopt;
    const auto blank = std::min(answer->rfind(' '), answer->size());
    credentials.user = answer->substr(0, blank);
    credentials.digest = answer->substr(std::min(blank + 1, answer->size()));
  }
  co_return credentials;
}

awaitable<void> Session::log_in(std::string_view argument) {
  if (helo_.empty() || !extended_) co_return say(503, "5.5.1 say EHLO first");
  if (options_.require_tls && !channel_.is_secure()) co_return say(530, "5.7.0 say STARTTLS first");
  if (!user_.empty()) co_return say(503, "5.5.1 you are logged in already");
  if (has_sender_) co_return say(503, "5.5.1 not in the middle of a message");
  const auto blank = std::min(argument.find(' '), argument.size());
  const auto mechanism = upper(argument.substr(0, blank));
  const bool known =
      mechanism == "PLAIN" || mechanism == "LOGIN" || (mechanism == "CRAM-MD5" && options_.offer_cram_md5);
  if (!known) co_return say(504, "5.5.4 Unsupported authentication mechanism");
  const auto credentials = co_await ask_for_credentials(mechanism, std::string(trim(argument.substr(blank))));
  if (!credentials) {
    ++mistakes_;
    co_return;
  }
  if (const auto refusal = host_.refuse_login(*credentials)) co_return say(*refusal);
  switch (co_await host_.may_log_in(*credentials)) {
    case Verdict::right: break;
    case Verdict::wrong: mistakes_ += 10; co_return say(535, "5.7.8 the user or the password is wrong");
    case Verdict::busy: co_return say(454, "4.7.0 too many logins at once; try again later");
  }
  user_ = harmless(credentials->user);
  if (user_.empty()) user_ = "anonymous";
  say(235, "2.7.0 Authentication successful");
}

void Session::mail(std::string_view argument) {
  if (helo_.empty()) return say(503, "5.5.1 say EHLO or HELO first");
  if (has_sender_) return say(503, "5.5.1 one sender for each message: say RSET to begin again");
  if (options_.require_tls && !channel_.is_secure()) return say(530, "5.7.0 say STARTTLS first");
  if (options_.require_login && user_.empty()) return say(530, "5.7.0 Authentication required");
  const auto path = parse_path(argument_after(argument, "FROM"));
  if (!path) {
    ++mistakes_;
    return say(501, fmt::format("5.5.4 Invalid syntax in MAIL command: {}; expected MAIL FROM:<address>",
                                path.error()));
  }
  const auto& given = path->parameters;
  for (const auto& [name, value] : given) {
    static constexpr std::array<std::string_view, 7> kKnown = {"SIZE", "BODY",  "SMTPUTF8",  "AUTH",
                                                               "RET",  "ENVID", "REQUIRETLS"};
    if (std::ranges::find(kKnown, name) == kKnown.end())
      return say(555, fmt::format("5.5.4 the parameter {} is not known here", harmless(name)));
  }
  if (const auto size = given.find("SIZE"); size != given.end()) {
    const auto announced = number(size->second);
    if (!announced) return say(501, "5.5.4 SIZE must be a number");
    if (*announced > options_.max_message)
      return say(552, fmt::format("5.3.4 the message is larger than {} bytes", options_.max_message));
  }
  if (const auto body = given.find("BODY"); body != given.end())
    if (const auto kind = upper(body->second); kind != "7BIT" && kind != "8BITMIME")
      return say(501, "5.5.4 BODY is 7BIT or 8BITMIME");
  const bool utf8 = given.contains("SMTPUTF8");
  if (!utf8 && !is_ascii(path->address)) return say(553, "5.6.7 such an address needs SMTPUTF8");
  if (!is_valid_utf8(path->address)) return say(553, "5.6.7 the address is no UTF-8");
  envelope_.from = path->address;
  envelope_.utf8 = utf8;
  envelope_.helo = helo_;
  envelope_.user = user_;
  if (const auto refusal = host_.refuse_sender(envelope_)) {
    envelope_ = {};
    return say(*refusal);
  }
  has_sender_ = true;
  say(250, fmt::format("2.1.0 Sender {} ok", envelope_.from));
}

void Session::recipient(std::string_view argument) {
  if (!has_sender_) return say(503, "5.5.1 say MAIL first");
  if (chunks_) return say(503, "5.5.1 not in the middle of a message");
  const auto path = parse_path(argument_after(argument, "TO"));
  if (!path || path->address.empty()) {
    ++mistakes_;
    return say(501, fmt::format("5.5.4 Invalid syntax in RCPT command: {}; expected RCPT TO:<address>",
                                path ? "the address is missing" : path.error()));
  }
  if (!envelope_.utf8 && !is_ascii(path->address)) return say(553, "5.6.7 such an address needs SMTPUTF8");
  if (!is_valid_utf8(path->address)) return say(553, "5.6.7 the address is no UTF-8");
  constexpr size_t kMostBytes = 64 * 1024;  // of all recipients: they are kept beside the message
  size_t bytes = path->address.size();
  for (const auto& to : envelope_.to) bytes += to.size();
  if (envelope_.to.size() >= options_.max_recipients || bytes > kMostBytes)
    return say(452, fmt::format("4.5.3 more than {} recipients",
                                std::min(options_.max_recipients, envelope_.to.size())));
  if (const auto refusal = host_.refuse_recipient(envelope_, path->address)) return say(*refusal);
  envelope_.to.push_back(path->address);
  say(250, fmt::format("2.1.5 Recipient {} ok", path->address));
}

awaitable<void> Session::data() {
  if (!has_sender_ || chunks_) co_return say(503, "5.5.1 say MAIL and RCPT first");
  if (envelope_.to.empty()) co_return say(554, "5.5.1 no valid recipients: say RCPT first");
  say(354, "End data with <CR><LF>.<CR><LF>");
  DataReader reader(options_.max_message, options_.max_line);
  bool room = true;
  while (true) {
    auto rest = unread();
    const size_t before = rest.size();
    const auto state = reader.feed(rest);
    begin_ += before - rest.size();
    if (state == DataReader::State::complete) break;
    if (state == DataReader::State::bare_line_feed || state == DataReader::State::bare_carriage_return) {
      // Whatever follows may be meant to look like a session of its own: it is not read.
      say(521, state == DataReader::State::bare_line_feed ? kBareLineFeed : kBareCarriageReturn);
      open_ = false;
      co_return;
    }
    if (state == DataReader::State::line_too_long) {
      say(521,
          fmt::format("5.5.2 a line is longer than {} bytes; closing the connection", options_.max_line));
      open_ = false;
      co_return;
    }
    room = room && budget_.resize(reader.text().capacity());
    if (!room) {
      reader.text() = {};
      budget_.resize(0);
    }
    if (!co_await read_more()) {
      open_ = false;
      co_return;
    }
  }
  if (reader.too_large()) {
    reset();
    co_return say(552, fmt::format("5.3.4 the message is larger than {} bytes", options_.max_message));
  }
  if (!room) {
    reset();
    co_return say(452, "4.3.1 too many large messages at once; try again");
  }
  envelope_.data = std::move(reader.text());
  co_await deliver();
}

awaitable<void> Session::chunk(std::string_view argument) {
  const auto blank = std::min(argument.find(' '), argument.size());
  const auto size = number(argument.substr(0, blank));
  const auto word = upper(trim(argument.substr(blank)));
  if (!size || (!word.empty() && word != "LAST")) {
    // How much follows is not known: there is no way to go on.
    say(501, "5.5.4 expected BDAT size [LAST]; closing the connection");
    open_ = false;
    co_return;
  }
  const bool in_order = has_sender_ && !envelope_.to.empty();
  if (!in_order) chunks_failed_ = true;
  chunks_ = in_order;
  const bool fits = *size <= options_.max_message && envelope_.data.size() <= options_.max_message - *size;
  bool room = true;
  for (uint64_t left = *size; left > 0;) {
    if (unread().empty() && !co_await read_more()) {
      open_ = false;
      co_return;
    }
    const auto piece = unread().substr(0, left);
    // Room is taken for what came, not for what was announced.
    if (!chunks_failed_ && fits && room) {
      envelope_.data.append(piece);
      room = budget_.resize(envelope_.data.capacity());
    }
    begin_ += piece.size();
    left -= piece.size();
  }
  if (in_order && (!fits || !room)) {
    chunks_failed_ = true;
    envelope_.data = {};
    budget_.resize(0);
  }
  const bool last = word == "LAST";
  if (chunks_failed_) {
    if (!in_order)
      say(503, "5.5.1 say MAIL and RCPT first");
    else if (!fits)
      say(552, fmt::format("5.3.4 the message is larger than {} bytes", options_.max_message));
    else
      say(452, "4.3.1 too many large messages at once; try again");
    if (last || !in_order) reset();
    co_return;
  }
  if (last)
    co_await deliver();
  else
    say(250, fmt::format("2.0.0 {} bytes received", *size));
}

awaitable<void> Session::deliver() {
  envelope_.peer = peer_;
  envelope_.extended = extended_;
  envelope_.secure = channel_.is_secure();
  auto envelope = std::move(envelope_);
  if (const auto refusal = host_.refuse_message(envelope)) {
    reset();
    co_return say(*refusal);
  }
  say(co_await host_.take(std::move(envelope)));
  reset();
}

}  // namespace tabella::smtp

// A mail transaction: MAIL, RCPT, DATA and the content.
#include <algorithm>

#include <fmt/format.h>

#include "smtp/address.h"
#include "smtp/connection.h"
#include "smtp/data.h"

namespace tabella::smtp {

using boost::asio::awaitable;

namespace {

// Commands that are sent before the first of their replies is read. Both must fit into what the network
// holds, or each side would wait for the other to read.
constexpr size_t kPipelined = 50;
constexpr size_t kSlowestLine = 16 * 1024;  // bytes in a second

// The commands of a transaction by number: these two, a RCPT for each who is asked for, DATA.
constexpr size_t kReset = 0;
constexpr size_t kSender = 1;
constexpr size_t kFirstRecipient = 2;

// As RFC 1870 counts it: without the dots that were put in.
size_t size_of(std::string_view content, bool has_dots) {
  if (!has_dots) return content.size();
  size_t dots = content.starts_with('.') ? 1 : 0;
  for (auto at = content.find("\n."); at != std::string_view::npos; at = content.find("\n.", at + 2)) ++dots;
  return content.size() - dots;
}

}  // namespace

struct ClientConnection::Transaction {
  explicit Transaction(const Letter& given)
      : letter(given),
        stuffed(is_stuffed(given.data) ? "" : stuff_dots(given.data)),
        content(stuffed.empty() ? given.data : stuffed),
        size(size_of(content, !stuffed.empty())),
        settled(given.to.size(), false) {
    delivery.recipients.resize(given.to.size());
    asked.reserve(given.to.size());
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  size_t data() const { return kFirstRecipient + asked.size(); }
  Step step_of(size_t number) const {
    return number <= kSender ? Step::sender : number < data() ? Step::recipient : Step::data;
  }
  void settle(size_t recipient, Outcome outcome) {
    if (outcome.kind != Kind::delivered && !objection) objection = recipient;
    delivery.recipients[recipient] = std::move(outcome);
    settled[recipient] = true;
  }
  void settle_rest(const Outcome& outcome) {
    for (size_t i = 0; i < settled.size(); ++i)
      if (!settled[i]) settle(i, outcome);
  }
  // To all or to none: what kept it from one keeps it from the others, for now.
  void withhold() {
    if (!objection) return;
    auto why = delivery.recipients[*objection];
    why.kind = Kind::deferred;
    settle_rest(why);
  }
  // Somebody is to get it, as far as is known.
  bool goes_on() const { return sender_taken && accepted > 0 && !(letter.all_or_none && objection); }

  const Letter& letter;
  const std::string stuffed;  // empty: the letter's own bytes will do
  const std::string_view content;
  const size_t size;
  std::vector<size_t> asked;  // recipients
  std::vector<bool> settled;  // recipients whose outcome is known
  bool sender_taken = false;
  size_t accepted = 0;              // recipients
  bool content_awaited = false;     // 354
  std::optional<size_t> objection;  // the first recipient who is not to get it
  Delivery delivery;
};

awaitable<Delivery> ClientConnection::deliver(const Letter& letter) {
  Transaction transaction(letter);
  if (can_take(transaction)) {
    ++letters_;
    co_await transact(transaction);
  }
  rest();
  auto& delivery = transaction.delivery;
  delivery.reusable = open_ && !has_unread();
  delivery.secure = is_secure();
  delivery.peer = peer_;
  co_return std::move(delivery);
}

// Settles what needs no question. False if nothing is left.
bool ClientConnection::can_take(Transaction& t) const {
  const auto refused = [](Step step, int code, std::string enhanced, std::string sentence) {
    return Outcome{.kind = Kind::refused,
                   .step = step,
                   .code = code,
                   .enhanced = std::move(enhanced),
                   .reply = std::move(sentence)};
  };
  const auto beyond_ascii = [&](Step step) {
    return refused(step, 553, "5.6.7",
                   fmt::format("{} does not take addresses beyond ASCII", destination_.host));
  };
  const auto& [from, to, data, all_or_none] = t.letter;
  if (!open_) {
    t.settle_rest(broke(Step::sender));
    t.delivery.unheard = true;
  } else if (!from.empty() && !is_address(from)) {
    t.settle_rest(refused(Step::sender, 553, "5.1.7", "the sender is no address"));
  } else if (!offers_.utf8 && !is_ascii(from)) {
    t.settle_rest(beyond_ascii(Step::sender));
  } else if (offers_.size.value_or(0) > 0 && t.size > *offers_.size) {
    t.settle_rest(refused(Step::sender, 552, "5.3.4",
                          fmt::format("{} takes {} bytes at most, and these are {}", destination_.host,
                                      *offers_.size, t.size)));
  } else {
    for (size_t i = 0; i < to.size(); ++i) {
      if (!is_address(to[i]))
        t.settle(i, refused(Step::recipient, 553, "5.1.3", "the recipient is no address"));
      else if (!offers_.utf8 && !is_ascii(to[i]))
        t.settle(i, beyond_ascii(Step::recipient));
      else
        t.asked.push_back(i);
    }
    if (all_or_none && t.objection) t.asked.clear();
  }
  if (t.asked.empty()) t.withhold();
  return !t.asked.empty();
}

awaitable<void> ClientConnection::transact(Transaction& t) {
  if (!co_await say_envelope(t)) co_return;
  if (t.content_awaited && t.accepted > 0) co_return co_await hand_over(t);
  if (t.content_awaited) co_await send_nothing();
  t.withhold();
}

// As many commands at once as the server takes. Without pipelining, and where all depends on each recipient,
// DATA waits until the recipients are known. False if the connection is over.
awaitable<bool> ClientConnection::say_envelope(Transaction& t) {
  const size_t most = offers_.pipelining ? kPipelined : 1;
  const size_t data = t.data();
  size_t next = needs_reset_ ? kReset : kSender;
  while (next <= data) {
    if (next > kSender && !t.sender_taken) break;
    if (t.letter.all_or_none && t.objection) break;
    if (next == data && !t.goes_on()) break;
    size_t end = std::min(next + most, data + 1);
    if (t.letter.all_or_none && next < data) end = std::min(end, data);
    commands_.clear();
    for (size_t number = next; number < end; ++number) append_command(t, number);
    needs_reset_ = true;
    allow(timeouts_.command);
    co_await write(commands_);
    for (; next < end; ++next)
      if (!co_await hear(t, next)) co_return false;
  }
  co_return true;
}

void ClientConnection::append_command(const Transaction& t, size_t number) {
  if (number == kReset)
    commands_ += "RSET\r\n";
  else if (number == kSender)
    append_sender(t);
  else if (number < t.data())
    commands_.append("RCPT TO:<").append(t.letter.to[t.asked[number - kFirstRecipient]]).append(">\r\n");
  else
    commands_ += "DATA\r\n";
}

void ClientConnection::append_sender(const Transaction& t) {
  commands_.append("MAIL FROM:<").append(t.letter.from).append(">");
  if (offers_.size) commands_.append(" SIZE=").append(std::to_string(t.size));
  if (offers_.eight_bit && !is_ascii(t.content)) commands_ += " BODY=8BITMIME";
  const auto ascii = [&](size_t recipient) { return is_ascii(t.letter.to[recipient]); };
  if (!is_ascii(t.letter.from) || !std::ranges::all_of(t.asked, ascii)) commands_ += " SMTPUTF8";
  commands_ += "\r\n";
}

// Reads the reply to a command. False if it was the last one.
awaitable<bool> ClientConnection::hear(Transaction& t, size_t number) {
  const bool is_data = number == t.data();
  const auto step = t.step_of(number);
  if (!co_await read_reply(is_data ? timeouts_.data : timeouts_.command)) {
    t.delivery.unheard = number <= kSender && trouble_ == Trouble::lost;
    t.settle_rest(broke(step));
    co_return false;
  }
  const int kind = reply_.code / 100;
  const bool reset_failed = number == kReset && kind != 2;
  if (reply_.code == 421 || reset_failed) {
    t.delivery.unheard = number <= kSender;
    auto outcome = said(step);
    outcome.kind = Kind::deferred;
    t.settle_rest(outcome);
    close();
    co_return false;
  }
  // Yes to DATA is 3, to all else 2: the other way round the two sides do not speak of the same thing.
  if (kind < 4 && kind != (is_data ? 3 : 2)) {
    break_off(Trouble::nonsense);
    t.settle_rest(broke(step));
    co_return false;
  }
  take_reply(t, number);
  co_return true;
}

void ClientConnection::take_reply(Transaction& t, size_t number) {
  const bool taken = reply_.code < 400;
  if (number == kReset) return;
  if (number == kSender) {
    t.sender_taken = taken;
    if (!taken) t.settle_rest(said(Step::sender));
  } else if (number == t.data()) {
    t.content_awaited = taken;
    if (!taken) t.settle_rest(said(Step::data));
  } else if (t.sender_taken && taken) {
    ++t.accepted;
  } else if (t.sender_taken) {
    auto outcome = said(Step::recipient);
    const bool too_many = outcome.code == 552 && (outcome.enhanced.empty() || outcome.enhanced == "5.5.3");
    if (too_many) outcome.kind = Kind::deferred;
    t.settle(t.asked[number - kFirstRecipient], std::move(outcome));
  }
}

awaitable<void> ClientConnection::hand_over(Transaction& t) {
  if (has_unread()) {
    // It answers what it has not seen.
    break_off(Trouble::nonsense);
    co_return t.settle_rest(broke(Step::content));
  }
  allow(timeouts_.content + std::chrono::seconds(t.content.size() / kSlowestLine));
  const bool whole = co_await write(t.content, ".\r\n");
  // Who does not want it may have said so before the end of it, and closed.
  const bool answered = co_await read_reply(timeouts_.content);
  const bool fits = answered && reply_.code / 100 != 3 && (whole || reply_.code >= 400);
  if (fits) {
    needs_reset_ = false;
    t.settle_rest(said(Step::content));
    if (!whole || reply_.code == 421) close();
    co_return;
  }
  if (answered) break_off(Trouble::nonsense);
  t.settle_rest(broke(Step::content, whole ? Kind::unknown : Kind::deferred));
}

// Nobody was accepted, and yet the content is awaited: the dot alone ends it (RFC 2920, 3.1). Whatever is
// said to that is about nobody.
awaitable<void> ClientConnection::send_nothing() {
  allow(timeouts_.command);
  co_await write(".\r\n");
  if (co_await read_reply(timeouts_.command) && reply_.code == 421) close();
}

}  // namespace tabella::smtp

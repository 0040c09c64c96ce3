#include "smtp/client.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include "net/transport.h"
#include "smtp/address.h"

namespace tabella::smtp {

using boost::asio::awaitable;

namespace {

using Sent = std::expected<std::string, SendError>;

std::unexpected<SendError> not_sent(std::string message) {
  return std::unexpected(SendError{.code = 0, .message = std::move(message)});
}

std::unexpected<SendError> not_sent(const Outcome& outcome) {
  const bool by_rules = outcome.step == Outcome::Step::connect && outcome.kind == Outcome::Kind::refused;
  return std::unexpected(SendError{.code = outcome.code, .refused = by_rules, .message = outcome.reply});
}

}  // namespace

awaitable<Sent> send(Relay relay, Letter letter, std::chrono::milliseconds timeout) {
  for (const auto& to : letter.to)
    if (!is_address(to)) co_return not_sent(fmt::format("'{}' is no address", to));
  if (letter.to.empty()) co_return not_sent("there is nobody to send it to");
  if (!letter.from.empty() && !is_address(letter.from))
    co_return not_sent(fmt::format("'{}' is no address", letter.from));
  letter.all_or_none = true;
  try {
    const auto trust = relay.check_certificate ? net::TlsTrust("") : net::TlsTrust::anyone();
    // The whole may take as long as the caller says, and so may each step of it.
    const Timeouts steps{timeout, timeout, timeout, timeout, timeout, timeout};
    ClientConnection connection(co_await boost::asio::this_coro::executor, std::move(relay), trust, steps);
    connection.expire_at(std::chrono::steady_clock::now() + timeout);
    if (const auto opened = co_await connection.open(); !opened) co_return not_sent(opened.error());
    const auto delivery = co_await connection.deliver(letter);
    co_await connection.quit();
    const auto failed = std::ranges::find_if_not(
        delivery.recipients, [](const Outcome& o) { return o.kind == Outcome::Kind::delivered; });
    if (failed != delivery.recipients.end()) co_return not_sent(*failed);
    co_return delivery.recipients.front().reply;
  } catch (const std::exception& error) {
    co_return not_sent(error.what());
  }
}

}  // namespace tabella::smtp

#include "mail/api.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "mime/utf8.h"
#include "net/budget.h"
#include "net/known_hosts.h"
#include "store/pause.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {

constexpr size_t kShownAtOnce = 8;

}  // namespace

void Api::add_routes(Routes routes) {
  add_mailhog_routes(routes);
  add_v3_routes(routes);
  add_live_routes(routes);
  add_pages(routes);
}

Deadline deadline_of(const net::Target& target, std::chrono::milliseconds otherwise) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::minutes{10};
  const auto given = parse_duration(target.get("timeout"));
  const auto length = target.has("timeout") && given ? std::min(*given, kLongest) : otherwise;
  return std::chrono::steady_clock::now() + length;
}

size_t number_in(const net::Target& target, std::string_view name, size_t fallback) {
  const auto text = target.get(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value > 0 ? static_cast<size_t>(value) : fallback;
}

void add_sandbox(net::HttpResponse& response) {
  response.add_header(
      "Content-Security-Policy",
      "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "no-referrer");
  response.add_header("Cache-Control", "private, no-store");
}

awaitable<std::optional<Message>> Api::load_or_answer(Call& call) {
  constexpr size_t kCopies = 3;  // as it is stored, in one piece, and as it is shown
  auto message = co_await mail_.load(call.path("id"), Load::head);
  if (message && *message && !call.count_memory(kCopies * (*message)->size)) co_return std::nullopt;
  if (message && *message)
    if (auto completed = co_await mail_.complete(**message); !completed) message = store::error_of(completed);
  if (!message) {
    house::refuse(call, message.error());
    co_return std::nullopt;
  }
  if (!*message) call.refuse(404, "there is no such message");
  co_return std::move(*message);
}

store::Async<void> Api::each_message(MessagePage& page, const Show& show) {
  Pace pace;
  for (auto& message : page.messages) {
    co_await pace.go_on();
    auto shown = co_await show(message);
    if (!shown) co_return store::error_of(shown);
    message = {};  // its memory is needed for those that follow
  }
  for (size_t at = 0; at < page.later.size(); at += kShownAtOnce) {
    const auto begin = page.later.begin() + static_cast<ptrdiff_t>(at);
    const auto end =
        page.later.begin() + static_cast<ptrdiff_t>(std::min(at + kShownAtOnce, page.later.size()));
    auto messages = co_await mail_.load_some(std::vector<std::string>(begin, end), Load::head);
    if (!messages) co_return store::error_of(messages);
    for (auto& message : *messages) {
      co_await pace.go_on();
      auto shown = co_await show(message);
      if (!shown) co_return store::error_of(shown);
    }
  }
  co_return store::Result<void>();
}

store::Async<void> Api::complete(Message& message, net::BudgetShare& room, Deadline deadline) {
  constexpr std::chrono::milliseconds kLooksAgain{10};
  if (message.whole) co_return store::Result<void>();
  // One that is larger than all the room there is has it for itself.
  while (!room.resize(std::min<size_t>(message.size, kLargeMessages))) {
    if (stopping_ || std::chrono::steady_clock::now() > deadline)
      co_return store::fail(store::ErrorCode::unavailable, "too many large messages are being read at once");
    co_await store::pause_for(kLooksAgain);
  }
  co_return co_await mail_.complete(message);
}

}  // namespace tabella::mail

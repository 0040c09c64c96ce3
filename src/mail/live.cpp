// What waits for messages: server-sent events, the WebSocket, wait and assertions with time.
#include <fmt/format.h>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/text.h"
#include "item/json.h"
#include "mail/api.h"
#include "mail/assertions.h"
#include "mail/mailhog.h"
#include "mail/summary.h"
#include "net/listener.h"
#include "net/websocket.h"

namespace tabella::mail {

namespace asio = boost::asio;
using asio::awaitable;
using SteadyClock = std::chrono::steady_clock;

namespace {

// How long a wait lasts before it looks whether the process is stopping.
constexpr std::chrono::milliseconds kSlice{250};
constexpr std::chrono::seconds kKeepAlive{30};
constexpr std::chrono::seconds kWriteTimeout{30};
constexpr size_t kChecked = 100;

// Each line of the JSON behind "data: ".
std::string event_of(std::string_view json) {
  std::string event;
  for (const auto line : split(json, '\n')) event.append("data: ").append(line).append("\n");
  return event + "\n";
}

}  // namespace

// The next message, as MailHog shows it; nothing when the time is over.
awaitable<std::optional<std::string>> Api::next_message_json(Arrivals::Subscription& arrivals,
                                                             SteadyClock::time_point until) {
  const auto id = co_await arrivals.next(until);
  if (!id) co_return std::nullopt;
  const auto message = co_await mail_.load(*id);
  if (!message || !*message) co_return std::nullopt;
  std::string json;
  append_message_json(json, **message, mail_.options().hostname);
  co_return json;
}

awaitable<void> Api::v1_events(Call& call) {
  call.response.content_type = "text/event-stream";
  call.response.add_header("Cache-Control", "no-cache");
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  call.response.then = [this, arrivals](net::Connection& connection, std::string) -> awaitable<void> {
    auto last = SteadyClock::now();
    while (!stopping_ && !connection.draining()) {
      auto json = co_await next_message_json(*arrivals, SteadyClock::now() + kSlice);
      std::string event;
      if (json)
        event = event_of(*json);
      else if (SteadyClock::now() - last > kKeepAlive)
        event = "keepalive: \n\n";
      if (event.empty()) continue;
      last = SteadyClock::now();
      if (!co_await connection.write_all({asio::buffer(event), asio::const_buffer()}, kWriteTimeout))
        co_return;
      connection.never_expire();
    }
  };
}

awaitable<void> Api::v2_websocket(Call& call) {
  if (!net::accept_websocket(call.request, call.response)) co_return;
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  call.response.then = [this, arrivals](net::Connection& connection, std::string unread) -> awaitable<void> {
    std::string answers;
    const auto write = [&](std::string frame) -> awaitable<bool> {
      const bool written =
          co_await connection.write_all({asio::buffer(frame), asio::const_buffer()}, kWriteTimeout);
      connection.never_expire();
      co_return written;
    };
    const auto tell = [&]() -> awaitable<void> {
      auto last = SteadyClock::now();
      while (!stopping_ && !connection.draining()) {
        auto json = co_await next_message_json(*arrivals, SteadyClock::now() + kSlice);
        auto frames = std::exchange(answers, {});
        if (json)
          frames += net::websocket_text(*json + "\n");
        else if (SteadyClock::now() - last > kKeepAlive)
          frames += net::websocket_ping();
        if (frames.empty()) continue;
        last = SteadyClock::now();
        if (!co_await write(std::move(frames))) co_return;
      }
    };
    connection.never_expire();
    using asio::experimental::awaitable_operators::operator||;
    co_await (tell() || net::drain_websocket(connection, std::move(unread), answers));
    if (!answers.empty()) co_await write(std::move(answers));
  };
}

awaitable<void> Api::v3_wait(Call& call) {
  const auto filter = parse_query(call.target.get("query"), mail_.clock().now());
  if (!filter) co_return answer_error(call.response, 400, filter.error());
  if (call.target.has("timeout") && !parse_duration(call.target.get("timeout")))
    co_return answer_error(call.response, 400, "timeout is a time, as in 5s");
  const auto deadline = deadline_of(call.target);
  // Listening begins before looking: nothing comes in between.
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  auto page = co_await mail_.find(*filter, 0, 1, Load::whole, SteadyClock::now() + kKeepAlive);
  if (!page) co_return answer_error(call.response, page.error());
  std::optional<Message> found;
  if (!page->messages.empty()) found = std::move(page->messages.front());
  while (!found && !stopping_ && SteadyClock::now() < deadline) {
    const auto id = co_await arrivals->next(std::min(deadline, SteadyClock::now() + kSlice));
    if (!id) continue;
    auto message = co_await mail_.load(*id);
    if (!message) co_return answer_error(call.response, message.error());
    if (!*message) continue;
    if (matches(*filter, document_of(**message, mime::parse((*message)->raw)), labels_of(**message)))
      found = std::move(*message);
  }
  if (!found) co_return answer_error(call.response, 404, "no message that matches came in time");
  call.response.content_type = kJson;
  append_summary_json(call.response.body, *found);
}

awaitable<void> Api::v3_assert(Call& call) {
  const auto assertion = parse_assertion(call.request.body, mail_.clock().now());
  if (!assertion) co_return answer_error(call.response, 400, assertion.error());
  const auto deadline = SteadyClock::now() + assertion->timeout;
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  while (true) {
    auto page = co_await mail_.find(assertion->filter, 0, kChecked, Load::whole,
                                    SteadyClock::now() + kKeepAlive, Total::exact);
    if (!page) co_return answer_error(call.response, page.error());
    auto wrong = failures(*assertion, page->total, page->messages);
    if (!assertion->each.empty() && page->total > page->messages.size())
      wrong.push_back(fmt::format("only the newest {} of {} messages were looked at: narrow the query",
                                  page->messages.size(), page->total));
    // Too many will not become fewer; all else may still become right.
    const bool hopeless = assertion->most && page->total > *assertion->most;
    if (wrong.empty() || hopeless || stopping_ || SteadyClock::now() >= deadline) {
      call.response.status = wrong.empty() ? 200 : 417;
      call.response.content_type = kJson;
      item::JsonObjectWriter object(call.response.body);
      object.boolean("passed", wrong.empty());
      object.number("count", static_cast<int64_t>(page->total));
      {
        item::JsonArrayWriter failed(object.key("failures"));
        for (const auto& sentence : wrong) append_json_string(failed.element(), sentence);
      }
      item::JsonArrayWriter ids(object.key("messages"));
      for (const auto& message : page->messages) append_json_string(ids.element(), message.id);
      co_return;
    }
    while (!stopping_ && SteadyClock::now() < deadline)
      if (co_await arrivals->next(std::min(deadline, SteadyClock::now() + kSlice))) break;
  }
}

}  // namespace tabella::mail

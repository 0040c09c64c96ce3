// What waits for messages: server-sent events, the WebSocket, wait and assertions with time.
#include <utility>

#include <fmt/format.h>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/duration.h"
#include "base/json.h"
#include "mail/api.h"
#include "mail/assertions.h"
#include "mail/summary.h"
#include "net/listener.h"
#include "net/websocket.h"

namespace tabella::mail {

namespace asio = boost::asio;
using asio::awaitable;
using SteadyClock = std::chrono::steady_clock;

namespace {

// How long a wait lasts before it looks whether the process is stopping.
constexpr std::chrono::milliseconds kLiveSlice{250};
constexpr std::chrono::seconds kKeepAlive{30};
constexpr std::chrono::seconds kWriteTimeout{30};
constexpr size_t kChecked = 100;

}  // namespace

void Api::add_live_routes(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/api/v1/events",
              .scope = "mail:read",
              .summary = "Messages as they come, as server-sent events",
              .answer = "text/event-stream"},
             &Api::v1_events);
  routes.add({.method = "GET",
              .path = "/api/v2/websocket",
              .scope = "mail:read",
              .summary = "Messages as they come, over a WebSocket"},
             &Api::v2_websocket);
  routes.add({.method = "GET",
              .path = "/api/v3/wait",
              .scope = "mail:read",
              .summary = "Waits for a message that matches",
              .query = {{"query", "what it must match"}, {"timeout", "how long, as in 5s"}}},
             &Api::v3_wait);
  routes.add({.method = "POST",
              .path = "/api/v3/assert",
              .scope = "mail:read",
              .summary = "Checks what has been sent",
              .body = R"({"query": "to:ann@example.com", "count": 1})"},
             &Api::v3_assert);
}

awaitable<void> Api::v1_events(Call& call) {
  call.response.content_type = "text/event-stream";
  call.response.add_header("Cache-Control", "no-cache");
  const auto listener = feed_.listen(co_await asio::this_coro::executor, Feed::Form::server_sent_events);
  call.response.then = [this, listener](net::Connection& connection, std::string) -> awaitable<void> {
    // A write that waits for a reader who does not read ends with the connection.
    listener->when_dropped([&connection] { connection.transport().close(); });
    auto last = SteadyClock::now();
    while (!stopping_ && !connection.draining() && !listener->dropped()) {
      auto batch = co_await listener->next(SteadyClock::now() + kLiveSlice);
      if (batch.empty() && SteadyClock::now() - last > kKeepAlive) batch.text = "keepalive: \n\n";
      if (batch.empty()) continue;
      last = SteadyClock::now();
      if (!co_await connection.write_all({asio::buffer(batch.text), asio::buffer(batch.rest)}, kWriteTimeout))
        co_return;
      connection.never_expire();
      co_await listener->rest();
    }
  };
}

awaitable<void> Api::v2_websocket(Call& call) {
  if (!net::accept_websocket(call.request, call.response)) co_return;
  const auto listener = feed_.listen(co_await asio::this_coro::executor, Feed::Form::websocket);
  call.response.then = [this, listener](net::Connection& connection, std::string unread) -> awaitable<void> {
    listener->when_dropped([&connection] { connection.transport().close(); });
    std::string answers;
    const auto write = [&](std::string_view text, std::string_view rest) -> awaitable<bool> {
      const bool written =
          co_await connection.write_all({asio::buffer(text), asio::buffer(rest)}, kWriteTimeout);
      connection.never_expire();
      co_return written;
    };
    const auto tell = [&]() -> awaitable<void> {
      auto last = SteadyClock::now();
      while (!stopping_ && !connection.draining() && !listener->dropped()) {
        auto batch = co_await listener->next(SteadyClock::now() + kLiveSlice);
        batch.text.insert(0, std::exchange(answers, {}));
        if (batch.empty() && SteadyClock::now() - last > kKeepAlive) batch.text = net::websocket_ping();
        if (batch.empty()) continue;
        last = SteadyClock::now();
        if (!co_await write(batch.text, batch.rest)) co_return;
        co_await listener->rest();
      }
    };
    connection.never_expire();
    using asio::experimental::awaitable_operators::operator||;
    co_await (tell() || net::drain_websocket(connection, std::move(unread), answers));
    if (!answers.empty()) co_await write(answers, {});
  };
}

awaitable<void> Api::v3_wait(Call& call) {
  const auto filter = parse_query(call.target.get("query"), mail_.clock().now());
  if (!filter) co_return call.refuse(400, filter.error());
  if (call.target.has("timeout") && !parse_duration(call.target.get("timeout")))
    co_return call.refuse(400, "timeout is a time, as in 5s");
  const auto deadline = deadline_of(call.target);
  // Listening begins before looking: nothing comes in between.
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  auto page = co_await mail_.find(*filter, 0, 1, Load::head, SteadyClock::now() + kKeepAlive);
  if (!page) co_return house::refuse(call, page.error());
  std::optional<Message> found;
  if (!page->messages.empty()) found = std::move(page->messages.front());
  Pace pace;
  while (!found && !stopping_ && SteadyClock::now() < deadline) {
    co_await pace.go_on();
    auto id = co_await arrivals->next(std::min(deadline, SteadyClock::now() + kLiveSlice));
    if (!id) continue;
    std::vector<std::string> ids;
    ids.push_back(std::move(*id));
    auto messages = co_await mail_.load_some(std::move(ids), Load::head);
    if (!messages) co_return house::refuse(call, messages.error());
    if (messages->empty()) continue;
    auto& message = messages->front();
    const auto document = co_await mail_.document(message);
    if (!document) co_return house::refuse(call, document.error());
    if (matches(*filter, **document, labels_of(message))) found = std::move(message);
  }
  if (!found) co_return call.refuse(404, "no message that matches came in time");
  if (const auto completed = co_await mail_.complete(*found); !completed)
    co_return house::refuse(call, completed.error());
  call.response.content_type = kJson;
  co_await mail_.aside(found->size, [&] { append_summary_json(call.response.body, *found); });
}

store::Async<void> Api::check(const Assertion& assertion, std::string id, std::vector<std::string>& wrong) {
  std::vector<std::string> ids;
  ids.push_back(std::move(id));
  auto messages = co_await mail_.load_some(std::move(ids), Load::head);
  if (!messages) co_return store::error_of(messages);
  for (auto& message : *messages) {
    auto room = room_for_one();
    auto completed = co_await complete(message, room, SteadyClock::now() + kKeepAlive);
    if (!completed) co_return store::error_of(completed);
    const auto look = [&] { return message_failures(assertion, message); };
    auto sentences = co_await mail_.aside(message.raw.size(), look);
    wrong.insert(wrong.end(), sentences.begin(), sentences.end());
  }
  co_return store::Result<void>();
}

awaitable<void> Api::v3_assert(Call& call) {
  const auto assertion = parse_assertion(call.request.body, mail_.clock().now());
  if (!assertion) co_return call.refuse(400, assertion.error());
  const auto deadline = SteadyClock::now() + assertion->timeout;
  Pace pace;
  const auto arrivals = arrivals_.subscribe(co_await asio::this_coro::executor, mail_.now());
  while (true) {
    auto page =
        co_await mail_.find(assertion->filter, 0, kChecked, Load::keys, SteadyClock::now() + kKeepAlive);
    if (!page) co_return house::refuse(call, page.error());
    auto wrong = count_failures(*assertion, page->total);
    for (const auto& message : page->messages) {
      if (assertion->each.empty()) break;
      co_await pace.go_on();
      const auto checked = co_await check(*assertion, message.id, wrong);
      if (!checked) co_return house::refuse(call, checked.error());
    }
    if (!assertion->each.empty() && page->total > page->messages.size())
      wrong.push_back(fmt::format("only the newest {} of {} messages were looked at: narrow the query",
                                  page->messages.size(), page->total));
    // Too many will not become fewer; all else may still become right.
    const bool hopeless = assertion->most && page->total > *assertion->most;
    if (wrong.empty() || hopeless || stopping_ || SteadyClock::now() >= deadline) {
      call.response.status = wrong.empty() ? 200 : 417;
      call.response.content_type = kJson;
      JsonObjectWriter object(call.response.body);
      object.boolean("passed", wrong.empty());
      object.number("count", static_cast<int64_t>(page->total));
      {
        JsonArrayWriter failed(object.key("failures"));
        for (const auto& sentence : wrong) append_json_string(failed.element(), sentence);
      }
      JsonArrayWriter ids(object.key("messages"));
      for (const auto& message : page->messages) append_json_string(ids.element(), url_spelling(message.id));
      co_return;
    }
    while (!stopping_ && SteadyClock::now() < deadline)
      if (co_await arrivals->next(std::min(deadline, SteadyClock::now() + kLiveSlice))) break;
  }
}

}  // namespace tabella::mail

#include "outbox/api.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/time_text.h"
#include "smtp/address.h"

namespace tabella::outbox {

using boost::asio::awaitable;

namespace {

const std::vector<net::Parameter> kPaging = {{"limit", "at most so many, about (50)"},
                                             {"from", "the next of the page before"}};

void write_email(JsonObjectWriter& out, const Email& email) {
  out.string("id", email.id);
  out.string("status", name_of(email.status));
  out.string("reason", email.reason);
  out.string("updated_at", time_text(email.updated_at));
  if (!email.payload_file_path.empty()) out.string("payload_file_path", email.payload_file_path);
  if (!email.eml_file_path.empty()) out.string("eml_file_path", email.eml_file_path);
  if (email.ttl) out.number("ttl", *email.ttl);
  if (email.version > 0) out.number("version", static_cast<int64_t>(email.version));
}

void write_message(std::string& out, const Message& message) {
  JsonObjectWriter object(out);
  object.string("from", message.from);
  object.string("subject", message.subject);
  object.string("message_id", message.message_id);
  object.string("door", message.door);
  object.string("created_at", time_text(message.created));
  object.string("priority", name_of(message.priority));
  object.string("send_at", time_text(message.send_at));
  object.string("give_up_at", time_text(message.give_up_at));
  if (!message.shard.empty() && message.owner.empty())
    object.string("next_attempt_at", time_text(time_at(message.due)));
  if (!message.callback.empty()) object.string("callback_url", message.callback);
  object.number("size", static_cast<int64_t>(message.size));
  object.number("attempts", static_cast<int64_t>(message.attempts));
  {
    JsonObjectWriter labels(object.key("labels"));
    for (const auto& [name, value] : message.labels) labels.string(name, value);
  }
  JsonArrayWriter recipients(object.key("recipients"));
  for (const auto& recipient : message.recipients) {
    JsonObjectWriter one(recipients.element());
    one.string("address", recipient.address);
    one.string("result", name_of(recipient.result));
    one.string("reply", recipient.reply);
    if (recipient.may_have_it) one.boolean("may_have_it", true);
  }
}

void write_attempts(std::string& out, const std::vector<Attempt>& attempts) {
  JsonArrayWriter list(out);
  for (const auto& attempt : attempts) {
    JsonObjectWriter one(list.element());
    one.number("number", static_cast<int64_t>(attempt.number));
    one.string("outcome", attempt.outcome);
    one.string("began", time_text(attempt.began));
    one.string("ended", time_text(attempt.ended));
    one.string("worker", attempt.worker);
    one.boolean("repeated", attempt.repeated);
    JsonArrayWriter results(one.key("results"));
    for (const auto& result : attempt.results) {
      JsonObjectWriter each(results.element());
      each.string("address", result.address);
      each.string("outcome", result.outcome);
      each.string("host", result.host);
      each.string("step", result.step);
      each.string("reply", result.reply);
    }
  }
}

void write_history(std::string& out, const std::vector<Step>& steps) {
  JsonArrayWriter list(out);
  for (const auto& step : steps) {
    JsonObjectWriter one(list.element());
    one.string("status", name_of(step.status));
    one.string("reason", step.reason);
    one.string("at", time_text(step.at));
  }
}

void answer_stepped(net::Call& call, const store::Result<Stepped>& stepped, std::string_view too_late) {
  if (!stepped) return house::refuse(call, stepped.error());
  switch (*stepped) {
    case Stepped::done: call.answer_json(202) = "{}"; return;
    case Stepped::not_found: return call.refuse(404, "there is no such email");
    case Stepped::too_late: return call.refuse(409, too_late);
  }
}

// The states of a page, one after the other: which of them, and where in it.
struct Cursor {
  size_t state = 0;
  std::string from;
};

Cursor read_cursor(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return {};
  return {.state = static_cast<size_t>(std::max(0, std::atoi(text.c_str()))), .from = text.substr(colon + 1)};
}

}  // namespace

void Api::add_routes(Routes routes, size_t max_body) {
  add_sending(routes, max_body);
  add_watching(routes);
  add_stepping_in(routes);
}

void Api::add_watching(Routes& routes) {
  auto listing = kPaging;
  listing.insert(listing.begin(), {"status", "READY, SENT, …; without it emails in all states"});
  routes.add({"GET", "/outbox/emails", "outbox:read", "Lists emails by their state", {}, listing},
             &Api::list);
  routes.add(
      {"GET", "/outbox/emails/{id}", "outbox:read", "Shows an email's life: recipients, states and attempts"},
      &Api::show);
  routes.add({.method = "GET",
              .path = "/outbox/emails/{id}/raw",
              .scope = "outbox:read",
              .summary = "The message as it is sent",
              .answer = "message/rfc822"},
             &Api::raw);
  routes.add(
      {"GET", "/outbox/emails/{id}/attempts", "outbox:read", "Shows every attempt to deliver an email"},
      &Api::attempts);
  routes.add({"GET",
              "/outbox/stale-emails",
              "outbox:read",
              "Lists emails that nobody has moved on for too long",
              {},
              kPaging},
             &Api::stale);
  routes.add({"GET",
              "/outbox/invalid-emails",
              "outbox:read",
              "Lists emails that could not be composed",
              {},
              kPaging},
             &Api::invalid_ones);
  routes.add(
      {"GET", "/outbox/dead-letters", "outbox:read", "Lists emails that were not delivered", {}, kPaging},
      &Api::dead_letters);
  routes.add({"GET", "/outbox/counts", "outbox:read", "How many emails are in which state"}, &Api::counts);
  routes.add({.method = "GET",
              .path = "/outbox/events",
              .scope = "outbox:read",
              .summary = "Tells of changes as they happen: counts, and emails that reach a state",
              .answer = "text/event-stream"},
             &Api::events);
  routes.add({"GET", "/outbox/health-check", "outbox:read", "Whether emails can be taken and looked up"},
             &Api::health);
}

void Api::add_stepping_in(Routes& routes) {
  routes.add({"POST", "/outbox/emails/{id}/requeue", "outbox:write",
              "Tries an email once more that failed or was invalid"},
             &Api::requeue);
  routes.add(
      {"POST", "/outbox/emails/{id}/cancel", "outbox:write", "Stops an email that is not being sent yet"},
      &Api::cancel);
  routes.add({"POST", "/outbox/emails/{id}/callback", "outbox:write", "Calls an email's callback again"},
             &Api::replay_callback);
  routes.add(
      {"GET", "/outbox/suppression", "outbox:read", "Lists addresses that nothing is sent to", {}, kPaging},
      &Api::list_suppressed);
  routes.add({.method = "POST",
              .path = "/outbox/suppression",
              .scope = "outbox:write",
              .summary = "Sends nothing to an address any more",
              .body = R"({"address": "ann@example.com", "reason": "MANUAL"})"},
             &Api::add_suppressed);
  routes.add({"DELETE", "/outbox/suppression/{address}", "outbox:write", "Lets an address have mail again"},
             &Api::remove_suppressed);
  routes.add({"GET", "/outbox/pauses", "outbox:read", "Lists destinations that are paused"},
             &Api::list_pauses);
  routes.add({.method = "PUT",
              .path = "/outbox/pauses/{destination}",
              .scope = "outbox:write",
              .summary = "Sends nothing to a domain until it is resumed; *: to nobody",
              .body = R"({"reason": "their server is down"})",
              .body_is_optional = true},
             &Api::pause);
  routes.add({"DELETE", "/outbox/pauses/{destination}", "outbox:write", "Resumes a destination"},
             &Api::resume);
}

awaitable<void> Api::list(Call& call) {
  const auto name = call.text("status");
  if (name.empty()) co_return co_await list_in(call, {kStates.begin(), kStates.end()}, std::nullopt);
  const auto state = state_named(name);
  if (!state) co_return call.refuse(400, fmt::format("'{}' is no state; one is READY", name));
  co_return co_await list_in(call, {*state}, std::nullopt);
}
awaitable<void> Api::stale(Call& call) {
  return list_in(call,
                 {State::accepted, State::intaking, State::processing, State::calling_sent_callback,
                  State::calling_failed_callback},
                 parts_.stale);
}
awaitable<void> Api::invalid_ones(Call& call) { return list_in(call, {State::invalid}, std::nullopt); }
awaitable<void> Api::dead_letters(Call& call) {
  return list_in(call,
                 {State::failed, State::invalid, State::calling_failed_callback, State::failed_acknowledged},
                 std::nullopt);
}

awaitable<void> Api::list_in(Call& call, std::vector<State> states,
                             std::optional<std::chrono::milliseconds> older_than) {
  const auto limit = static_cast<size_t>(call.number("limit", 50, 1, 500));
  auto cursor = read_cursor(call.text("from"));
  if (call.answered()) co_return;
  const auto oldest = older_than ? parts_.outbox.clock().now() - *older_than : TimePoint::max();
  std::vector<Email> emails;
  // One page of each state at most: what is left is for the next request.
  while (cursor.state < states.size() && emails.size() < limit) {
    auto page =
        co_await parts_.outbox.backend().list(states[cursor.state], limit - emails.size(), cursor.from);
    if (!page && page.error().code == store::ErrorCode::validation)
      co_return call.refuse(400, "this page cannot be gone on from: begin anew");
    if (!page) co_return house::refuse(call, page.error());
    for (auto& email : page->emails)
      if (email.updated_at < oldest) emails.push_back(std::move(email));
    cursor.from = std::move(page->next);
    if (!cursor.from.empty()) break;
    ++cursor.state;
  }
  JsonObjectWriter answer(call.answer_json());
  {
    JsonArrayWriter list(answer.key("emails"));
    for (const auto& email : emails) {
      JsonObjectWriter one(list.element());
      write_email(one, email);
    }
  }
  if (cursor.state < states.size()) answer.string("next", fmt::format("{}:{}", cursor.state, cursor.from));
}

awaitable<void> Api::show(Call& call) {
  const auto life = co_await parts_.outbox.find(call.path("id"));
  if (!life) co_return house::refuse(call, life.error());
  if (!*life) co_return call.refuse(404, "there is no such email");
  JsonObjectWriter answer(call.answer_json());
  write_email(answer, (*life)->email);
  write_history(answer.key("history"), (*life)->history);
  if ((*life)->message) write_message(answer.key("message"), *(*life)->message);
  write_attempts(answer.key("attempts"), (*life)->attempts);
}

awaitable<void> Api::attempts(Call& call) {
  const auto life = co_await parts_.outbox.find(call.path("id"));
  if (!life) co_return house::refuse(call, life.error());
  if (!*life) co_return call.refuse(404, "there is no such email");
  JsonObjectWriter answer(call.answer_json());
  write_attempts(answer.key("attempts"), (*life)->attempts);
}

awaitable<void> Api::raw(Call& call) {
  const auto message = co_await parts_.outbox.find_message(call.path("id"));
  if (!message) co_return house::refuse(call, message.error());
  if (!*message) co_return call.refuse(404, "there is no such email");
  if (!call.count_memory(2 * (*message)->size)) co_return;
  auto content = co_await parts_.outbox.content(call.path("id"));
  if (!content) co_return house::refuse(call, content.error());
  if (!*content) co_return call.refuse(404, "its message is not here: it is not composed yet, or in a file");
  call.response.status = 200;
  call.response.content_type = "message/rfc822";
  call.response.add_header("X-Content-Type-Options", "nosniff");
  call.response.add_header("Content-Disposition",
                           fmt::format("attachment; filename=\"{}.eml\"", call.path("id")));
  call.response.body = std::move(**content);
}

awaitable<void> Api::counts(Call& call) {
  const auto counts = co_await parts_.outbox.backend().counts();
  if (!counts) co_return house::refuse(call, counts.error());
  JsonObjectWriter answer(call.answer_json());
  for (const auto state : kStates) {
    const auto found = counts->find(state);
    answer.number(name_of(state), found == counts->end() ? 0 : found->second);
  }
}

awaitable<void> Api::events(Call& call) {
  net::answer_events(call, [&live = parts_.live, last = net::last_event_id(call)](net::EventStream& stream) {
    return live.tell(stream, last);
  });
  co_return;
}

awaitable<void> Api::health(Call& call) {
  const auto found = co_await parts_.outbox.backend().find("health-check");
  if (!found) co_return call.refuse(503, found.error().message);
  JsonObjectWriter(call.answer_json()).string("status", "ok");
}

awaitable<void> Api::requeue(Call& call) {
  answer_stepped(call, co_await parts_.outbox.requeue(call.path("id")),
                 "only emails that failed or were invalid can be requeued");
}

awaitable<void> Api::cancel(Call& call) {
  answer_stepped(call, co_await parts_.outbox.cancel(call.path("id")),
                 "it is being sent, or was: it cannot be cancelled any more");
}

awaitable<void> Api::replay_callback(Call& call) {
  const auto replayed = co_await parts_.callbacks.replay(call.path("id"));
  if (!replayed) co_return house::refuse(call, replayed.error());
  if (!*replayed)
    co_return call.refuse(409, "there is no such email, it is not done yet, or it has no callback");
  call.answer_json(202) = "{}";
}

awaitable<void> Api::list_suppressed(Call& call) {
  const auto limit = static_cast<size_t>(call.number("limit", 50, 1, 1000));
  if (call.answered()) co_return;
  const auto page = co_await parts_.outbox.suppressions().list(limit, call.text("from"));
  if (!page && page.error().code == store::ErrorCode::validation)
    co_return call.refuse(400, page.error().message);
  if (!page) co_return house::refuse(call, page.error());
  JsonObjectWriter answer(call.answer_json());
  {
    JsonArrayWriter list(answer.key("addresses"));
    for (const auto& suppressed : page->addresses) {
      JsonObjectWriter one(list.element());
      one.string("address", suppressed.address);
      one.string("reason", suppressed.reason);
      one.string("at", time_text(suppressed.at));
      if (!suppressed.email.empty()) one.string("email", suppressed.email);
      if (!suppressed.diagnostic.empty()) one.string("diagnostic", suppressed.diagnostic);
    }
  }
  if (!page->next.empty()) answer.string("next", page->next);
}

awaitable<void> Api::add_suppressed(Call& call) {
  auto body = call.json(R"({"address": "ann@example.com", "reason": "MANUAL"})");
  if (!body) co_return;
  const auto address = body->text("address");
  const auto reason = body->text("reason", "MANUAL");
  body->no_others();
  if (call.answered()) co_return;
  if (!smtp::is_address(address) || domain_of(address).empty())
    co_return call.refuse(400, fmt::format("'{}' is no address", address));
  if (reason != "MANUAL" && reason != "BOUNCE" && reason != "COMPLAINT")
    co_return call.refuse(400, "a reason is MANUAL, BOUNCE or COMPLAINT");
  const auto added = co_await parts_.outbox.suppressions().add({.address = address, .reason = reason});
  if (!added) co_return house::refuse(call, added.error());
  call.answer_json(201) = "{}";
}

awaitable<void> Api::remove_suppressed(Call& call) {
  const auto removed = co_await parts_.outbox.suppressions().remove(call.path("address"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return call.refuse(404, "this address is not on the suppression list");
  call.answer_json() = "{}";
}

awaitable<void> Api::list_pauses(Call& call) {
  const auto pauses = co_await parts_.outbox.pauses().all();
  if (!pauses) co_return house::refuse(call, pauses.error());
  JsonObjectWriter answer(call.answer_json());
  JsonArrayWriter list(answer.key("pauses"));
  for (const auto& [destination, pause] : *pauses) {
    JsonObjectWriter one(list.element());
    one.string("destination", destination);
    one.string("since", time_text(pause.since));
    one.string("reason", pause.reason);
    one.boolean("resuming", pause.resuming);
  }
}

awaitable<void> Api::pause(Call& call) {
  std::string reason;
  if (!call.request.body.empty()) {
    auto body = call.json(R"({"reason": "…"})");
    if (!body) co_return;
    reason = body->text("reason", "");
    body->no_others();
    if (call.answered()) co_return;
  }
  const auto paused = co_await parts_.outbox.pauses().pause(call.path("destination"), reason);
  if (!paused) co_return house::refuse(call, paused.error());
  call.answer_json() = "{}";
}

awaitable<void> Api::resume(Call& call) {
  const auto resumed = co_await parts_.outbox.pauses().resume(call.path("destination"));
  if (!resumed) co_return house::refuse(call, resumed.error());
  if (!*resumed) co_return call.refuse(404, "this destination is not paused");
  parts_.outbox.look();
  call.answer_json() = "{}";
}

}  // namespace tabella::outbox

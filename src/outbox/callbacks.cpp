#include "outbox/callbacks.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "base/time_text.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kCallbackKind = "outbox-callback";

std::string callback_timer(const std::string& id) { return fmt::format("outbox-callback:{}", id); }

bool is_calling(State state) {
  return state == State::calling_sent_callback || state == State::calling_failed_callback;
}

bool is_of_sent(State state) {
  return state == State::sent || state == State::calling_sent_callback || state == State::sent_acknowledged;
}

bool can_be_called(State state) {
  switch (state) {
    case State::sent:
    case State::failed:
    case State::calling_sent_callback:
    case State::calling_failed_callback:
    case State::sent_acknowledged:
    case State::failed_acknowledged: return true;
    case State::accepted:
    case State::intaking:
    case State::ready:
    case State::processing:
    case State::invalid: return false;
  }
  return false;
}

}  // namespace

Callbacks::Callbacks(Outbox& outbox, schedule::Schedule& schedule, net::Outbound& outbound, Options options)
    : outbox_(outbox), schedule_(schedule), outbound_(outbound), options_(std::move(options)) {
  schedule.on(kCallbackKind, [this](const schedule::Firing& firing) { return fire(firing); });
}

Async<void> Callbacks::arm(const std::string& id) {
  return schedule_.put(
      {.id = callback_timer(id), .kind = kCallbackKind, .at = outbox_.clock().now(), .payload = id});
}

Async<bool> Callbacks::replay(const std::string& id) {
  TABELLA_CO_ASSIGN(const auto email, co_await outbox_.backend().find(id));
  TABELLA_CO_ASSIGN(const auto message, co_await outbox_.find_message(id));
  const bool wanted = message ? outbox_.wants_callback(*message) : !options_.url.empty();
  if (!email || !wanted || !can_be_called(email->status)) co_return false;
  TABELLA_CO_TRY(co_await schedule_.put({.id = callback_timer(id),
                                         .kind = kCallbackKind,
                                         .at = outbox_.clock().now(),
                                         .payload = fmt::format("{} {}", id, outbox_.now())}));
  co_return true;
}

// What it throws has the timer tried again. A call that was asked for says since when it is tried.
awaitable<void> Callbacks::fire(const schedule::Firing& firing) {
  const auto& payload = firing.timer.payload;
  const auto blank = payload.find(' ');
  std::optional<TimePoint> asked;
  if (blank != std::string::npos) asked = time_at(std::atoll(payload.c_str() + blank + 1));
  const auto called = co_await call(payload.substr(0, blank), asked);
  if (!called) throw std::runtime_error(called.error().message);
}

// The email as it was when it was sent, or had failed.
Async<Email> Callbacks::reached(Email email) {
  TABELLA_CO_ASSIGN(const auto history, co_await outbox_.backend().history(email.id));
  const auto state = is_of_sent(email.status) ? State::sent : State::failed;
  for (const auto& step : history)
    if (step.status == state) {
      email.updated_at = step.at;
      email.reason = step.reason;
    }
  co_return email;
}

Async<void> Callbacks::call(const std::string& id, std::optional<TimePoint> asked) {
  TABELLA_CO_ASSIGN(auto email, co_await outbox_.backend().find(id));
  TABELLA_CO_ASSIGN(const auto message, co_await outbox_.find_message(id));
  if (!email || !can_be_called(email->status)) co_return store::Result<>{};
  const bool acknowledged =
      email->status == State::sent_acknowledged || email->status == State::failed_acknowledged;
  if (acknowledged && !asked) co_return store::Result<>{};
  TABELLA_CO_ASSIGN(const auto told, co_await reached(*email));
  if (email->status == State::sent || email->status == State::failed) {
    const auto calling =
        is_of_sent(email->status) ? State::calling_sent_callback : State::calling_failed_callback;
    // The reason stays that of the delivery: it is what there is to tell.
    TABELLA_CO_ASSIGN(auto moved, co_await outbox_.backend().move(*email, calling, email->reason));
    // Another program calls.
    if (!moved) co_return store::Result<>{};
    email = std::move(moved);
  }
  const auto refused = co_await post(told, message);
  if (!refused) {
    ++acknowledged_;
    if (is_calling(email->status))
      TABELLA_CO_TRY(co_await outbox_.backend().move(
          *email, is_of_sent(email->status) ? State::sent_acknowledged : State::failed_acknowledged,
          email->reason));
    co_return store::Result<>{};
  }
  ++refused_;
  const auto tried_for = outbox_.clock().now() - asked.value_or(told.updated_at);
  if (refused->final || tried_for > options_.give_up) {
    log::warning("the callback of email {} is given up: {}", id, refused->why);
    co_return store::Result<>{};
  }
  co_return store::fail(store::ErrorCode::unavailable,
                        fmt::format("the callback of email {} was not taken: {}", id, refused->why));
}

std::string Callbacks::body_of(const Email& email, const std::optional<Message>& message) const {
  std::string body;
  {
    JsonObjectWriter object(body);
    object.string("code", is_of_sent(email.status) ? "TRAVELING" : "DISPATCH-ERROR");
    object.string("reached_at", time_text(email.updated_at));
    {
      JsonArrayWriter ids(object.key("message_ids"));
      append_json_string(ids.element(), email.id);
    }
    object.string("reason", email.reason);
    if (message) {
      JsonArrayWriter recipients(object.key("recipients"));
      for (const auto& recipient : message->recipients) {
        JsonObjectWriter one(recipients.element());
        one.string("address", recipient.address);
        one.string("result", name_of(recipient.result));
        one.string("reply", recipient.reply);
      }
    }
  }
  return body;
}

awaitable<std::optional<webhook::Failure>> Callbacks::post(const Email& email,
                                                           const std::optional<Message>& message) {
  const bool own = message && !message->callback.empty();
  const auto id = fmt::format("{}-{}", email.id, is_of_sent(email.status) ? "sent" : "failed");
  co_return co_await webhook::call(outbound_,
                                   {.url = own ? message->callback : options_.url,
                                    .body = body_of(email, message),
                                    .timeout = options_.timeout,
                                    .trusted = !own},
                                   options_.secret, id, outbox_.clock().now());
}

void Callbacks::write_metrics(metrics::Exposition& out) const {
  const auto count = [&](std::string_view result, const metrics::Counter& counter) {
    out.counter("tabella_outbox_callbacks_total", "Calls of callbacks", static_cast<double>(counter),
                {{"outcome", result}});
  };
  count("acknowledged", acknowledged_);
  count("refused", refused_);
}

}  // namespace tabella::outbox

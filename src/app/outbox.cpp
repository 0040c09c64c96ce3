#include "app/outbox.h"

#include <cstdio>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "app/open_store.h"
#include "base/text.h"
#include "base/time_text.h"
#include "outbox/mysql_backend.h"
#include "outbox/service.h"
#include "outbox/store_backend.h"

namespace tabella::app {
namespace {

using outbox::Outbox;
using outbox::State;
using store::Async;

int fail_with(std::string_view sentence) {
  fmt::print(stderr, "{}\n", sentence);
  return 1;
}

// Much of what is shown was written by strangers, and a terminal obeys control characters.
template <class... Args>
void print_line(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}\n", printable(fmt::format(format, std::forward<Args>(args)...)));
}

// One line for each email.
Async<int> list_emails(Outbox& outbox, const OutboxOptions& options) {
  std::vector<State> states(outbox::kStates.begin(), outbox::kStates.end());
  if (!options.status.empty()) {
    const auto state = outbox::state_named(options.status);
    if (!state) co_return fail_with(fmt::format("'{}' is no state; one is READY", options.status));
    states = {*state};
  }
  size_t shown = 0;
  for (const auto state : states) {
    outbox::EmailPage page;
    do {
      if (shown >= options.limit) co_return 0;
      TABELLA_CO_ASSIGN(page, co_await outbox.backend().list(state, options.limit - shown, page.next));
      for (const auto& email : page.emails)
        print_line("{:<36}  {:<23}  {}  {}", email.id, name_of(email.status), time_text(email.updated_at),
                   email.reason);
      shown += page.emails.size();
    } while (!page.next.empty());
  }
  if (shown == 0) fmt::print(stderr, "There are no such emails.\n");
  co_return 0;
}

void print_message(const outbox::Message& message) {
  print_line("from        {}", message.from);
  print_line("subject     {}", message.subject);
  print_line("message-id  {}", message.message_id);
  print_line("came by     {}, {}", message.door, time_text(message.created));
  if (!message.shard.empty() && message.owner.empty())
    print_line("due         {}", time_text(time_at(message.due)));
  for (const auto& recipient : message.recipients)
    print_line("to          {}: {}{}{}", recipient.address, name_of(recipient.result),
               recipient.reply.empty() ? "" : ", ", recipient.reply);
}

Async<int> show_email(Outbox& outbox, const OutboxOptions& options) {
  TABELLA_CO_ASSIGN(const auto life, co_await outbox.find(options.id));
  if (!life) co_return fail_with(fmt::format("There is no email {}.", options.id));
  print_line("id          {}", life->email.id);
  print_line("status      {}", name_of(life->email.status));
  if (!life->email.reason.empty()) print_line("reason      {}", life->email.reason);
  if (life->message) print_message(*life->message);
  fmt::print("\nstates\n");
  for (const auto& step : life->history)
    print_line("  {}  {:<23}  {}", time_text(step.at), name_of(step.status), step.reason);
  if (!life->attempts.empty()) fmt::print("\nattempts\n");
  for (const auto& attempt : life->attempts) {
    print_line("  {}  {} {}{}", time_text(attempt.began), attempt.number, attempt.outcome,
               attempt.repeated ? " (repeated)" : "");
    for (const auto& result : attempt.results)
      print_line("      {}: {} by {} at {}: {}", result.address, result.outcome, result.host, result.step,
                 result.reply);
  }
  co_return 0;
}

int tell(outbox::Stepped stepped, const std::string& id, std::string_view done, std::string_view too_late) {
  switch (stepped) {
    case outbox::Stepped::done: fmt::print(stderr, "Email {} {}.\n", id, done); return 0;
    case outbox::Stepped::not_found: return fail_with(fmt::format("There is no email {}.", id));
    case outbox::Stepped::too_late: return fail_with(too_late);
  }
  return 1;
}

Async<int> print_counts(Outbox& outbox) {
  TABELLA_CO_ASSIGN(const auto counts, co_await outbox.backend().counts());
  for (const auto state : outbox::kStates) {
    const auto found = counts.find(state);
    fmt::print("{:<23}  {}\n", name_of(state), found == counts.end() ? 0 : found->second);
  }
  co_return 0;
}

Async<int> print_pauses(Outbox& outbox) {
  TABELLA_CO_ASSIGN(const auto pauses, co_await outbox.pauses().all());
  for (const auto& [destination, pause] : pauses)
    print_line("{}  since {}{}  {}", destination, time_text(pause.since), pause.resuming ? ", resuming" : "",
               pause.reason);
  if (pauses.empty()) fmt::print(stderr, "Nothing is paused.\n");
  co_return 0;
}

Async<int> run(Outbox& outbox, const OutboxOptions& options) {
  const auto& action = options.action;
  if (action == "show") co_return co_await show_email(outbox, options);
  if (action == "counts") co_return co_await print_counts(outbox);
  if (action == "pauses") co_return co_await print_pauses(outbox);
  if (action == "requeue") {
    TABELLA_CO_ASSIGN(const auto stepped, co_await outbox.requeue(options.id));
    co_return tell(stepped, options.id, "will be tried once more",
                   "Only emails that failed or were invalid can be requeued.");
  }
  if (action == "cancel") {
    TABELLA_CO_ASSIGN(const auto stepped, co_await outbox.cancel(options.id));
    co_return tell(stepped, options.id, "will not be sent",
                   "It is being sent, or was: it cannot be cancelled any more.");
  }
  if (action == "pause") {
    TABELLA_CO_TRY(co_await outbox.pauses().pause(options.destination, options.reason));
    fmt::print(stderr, "Within two seconds nothing is sent to {} any more.\n", options.destination);
    co_return 0;
  }
  if (action == "resume") {
    TABELLA_CO_ASSIGN(const auto resumed, co_await outbox.pauses().resume(options.destination));
    if (!resumed) co_return fail_with(fmt::format("{} is not paused.", options.destination));
    fmt::print(stderr, "Mail to {} is sent again.\n", options.destination);
    co_return 0;
  }
  co_return co_await list_emails(outbox, options);
}

Async<int> act_on_outbox(store::Store& store, const Clock& clock, const OutboxOptions& options) {
  const auto& prefix = options.store.table_prefix;
  const outbox::ServiceOptions service{.messages = outbox::messages_table(prefix), .worker = "command line"};
  std::unique_ptr<outbox::Backend> backend;
  if (options.database.empty()) {
    // Like another program's: whoever serves notices what was changed, and tells its callback.
    backend =
        std::make_unique<outbox::StoreBackend>(store, clock, prefix + options.table, service.messages, "");
  } else {
    const auto url = outbox::parse_mysql_url(options.database);
    if (!url) co_return fail_with("--outbox-database: " + url.error());
    backend = std::make_unique<outbox::MysqlBackend>(store, *url);
  }
  Outbox outbox(store, clock, *backend, service);
  co_return co_await run(outbox, options);
}

}  // namespace

int outbox(const OutboxOptions& options) {
  return run_on_store(options.store, [&options](store::Store& store, const Clock& clock) {
    return act_on_outbox(store, clock, options);
  });
}

}  // namespace tabella::app

#include "manhunt/heartbeats.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time_text.h"
#include "store/batches.h"
#include "store/conditional.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using store::Async;
using store::Row;

namespace {

constexpr const char* kHeartbeatTimer = "manhunt-heartbeat";

// Not in the domain's own partition: that is read whole, and there may be many of these.
std::string heartbeats_partition(std::string_view domain) { return fmt::format("heartbeats#{}", domain); }

store::Item heartbeat_key(std::string_view domain, std::string_view name) {
  return Row().set(kPartition, heartbeats_partition(domain)).set(kSort, name);
}

Heartbeat to_heartbeat(item::ItemView row, const std::string& domain) {
  return {.domain = domain,
          .name = store::text_of(row, kSort),
          .every = std::chrono::milliseconds(store::number_of(row, "every")),
          .contact = store::text_of(row, "contact"),
          .policy = store::text_of(row, "policy"),
          .last = time_at(store::number_of(row, "beat")),
          .late = store::flag_of(row, "late")};
}

std::string heartbeat_timer(const Heartbeat& heartbeat) {
  return fmt::format("manhunt|heartbeat|{}|{}", heartbeat.domain, heartbeat.name);
}

schedule::Timer timer_of(const Heartbeat& heartbeat) {
  return {.id = heartbeat_timer(heartbeat),
          .kind = kHeartbeatTimer,
          .at = heartbeat.last + heartbeat.every,
          .payload = fmt::format("{}|{}", heartbeat.domain, heartbeat.name)};
}

std::string search_key_of(const Heartbeat& heartbeat) { return fmt::format("heartbeat {}", heartbeat.name); }

}  // namespace

Heartbeats::Heartbeats(Parts parts, std::string table) : parts_(parts), table_(std::move(table)) {
  parts_.schedule.on(kHeartbeatTimer, [this](const schedule::Firing& firing) { return fire(firing); });
}

Async<void> Heartbeats::put(Heartbeat heartbeat) {
  TABELLA_CO_ASSIGN(const auto before, co_await find(heartbeat.domain, heartbeat.name));
  heartbeat.last = parts_.clock.now();
  store::Update update(table_, heartbeat_key(heartbeat.domain, heartbeat.name));
  update.set("entityType", "heartbeat")
      .set("every", heartbeat.every.count())
      .set("contact", heartbeat.contact)
      .set("policy", heartbeat.policy)
      .set("beat", epoch_milliseconds(heartbeat.last))
      .remove("late");
  if (before && before->late) TABELLA_CO_TRY(co_await resolve(*before));
  const auto timer = timer_of(heartbeat);
  std::vector<store::TransactWrite> writes;
  writes.push_back(std::move(update));
  writes.push_back(parts_.schedule.put_write(timer));
  TABELLA_CO_TRY(
      co_await parts_.store.transact_write_items({.writes = std::move(writes), .token = make_uuid()}));
  parts_.schedule.was_set(timer);
  co_return store::Result<void>();
}

Async<Heartbeats::Page> Heartbeats::list(std::string domain, int64_t limit, std::string from) {
  store::QueryRequest request =
      store::Query(table_).partition(kPartition, heartbeats_partition(domain)).limit(limit).consistent();
  TABELLA_CO_ASSIGN(request.options.start_key, parse_cursor(from));
  TABELLA_CO_ASSIGN(const auto found, co_await parts_.store.query(std::move(request)));
  Page page{.next = cursor_text(found.last_key)};
  for (const auto& row : found.items) page.heartbeats.push_back(to_heartbeat(row, domain));
  co_return page;
}

Async<std::optional<Heartbeat>> Heartbeats::find(std::string domain, std::string name) {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await parts_.store.get_item(
                        {.table = table_, .key = heartbeat_key(domain, name), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return to_heartbeat(*found.item, domain);
}

Async<std::string> Heartbeats::first_that_asks(std::string domain, std::string contact, std::string policy) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          parts_.store,
          store::Query(table_).partition(kPartition, heartbeats_partition(domain)).consistent()));
  for (const auto& row : rows) {
    const auto heartbeat = to_heartbeat(row, domain);
    if (!contact.empty() && heartbeat.contact == contact) co_return heartbeat.name;
    if (!policy.empty() && heartbeat.policy == policy) co_return heartbeat.name;
  }
  co_return std::string();
}

Async<bool> Heartbeats::remove(std::string domain, std::string name) {
  TABELLA_CO_ASSIGN(const auto heartbeat, co_await find(domain, name));
  if (!heartbeat) co_return false;
  if (heartbeat->late) TABELLA_CO_TRY(co_await resolve(*heartbeat));
  // Its timer finds nothing, and ends: somebody may be setting it anew.
  TABELLA_CO_TRY(co_await parts_.store.delete_item(store::Delete(table_, heartbeat_key(domain, name))));
  co_return true;
}

// One write, while all is well: the timer finds out by itself. Where it was late, that is taken back last: a
// crash before leaves it to the next beat.
Async<bool> Heartbeats::beat(std::string domain, std::string name) {
  const auto now = parts_.clock.now();
  store::Update update(table_, heartbeat_key(domain, name));
  update.set("beat", epoch_milliseconds(now))
      .when(store::exists(kPartition))
      .returning(store::ReturnValues::all_new);
  const auto beaten = co_await parts_.store.update_item(std::move(update));
  if (!beaten && store::failed_its_condition(beaten.error())) co_return false;
  TABELLA_CO_TRY(beaten);
  const auto heartbeat = to_heartbeat(*beaten->attributes, domain);
  if (heartbeat.late) TABELLA_CO_TRY(co_await recover(heartbeat));
  co_return true;
}

// It was heard of again.
Async<void> Heartbeats::recover(const Heartbeat& heartbeat) {
  TABELLA_CO_TRY(co_await resolve(heartbeat));
  TABELLA_CO_TRY(co_await parts_.schedule.put(timer_of(heartbeat)));
  store::Update update(table_, heartbeat_key(heartbeat.domain, heartbeat.name));
  update.remove("late").when(store::equals("beat", epoch_milliseconds(heartbeat.last)));
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(std::move(update))));
  co_return store::Result<void>();
}

Async<void> Heartbeats::resolve(const Heartbeat& heartbeat) {
  co_return co_await parts_.searches.resolve(
      heartbeat.contact.empty() ? policy_list(heartbeat.domain, heartbeat.policy) : heartbeat.contact,
      search_key_of(heartbeat), "heartbeat");
}

awaitable<void> Heartbeats::fire(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '|');
  if (parts.size() != 2) co_return;
  const auto checked = co_await check(firing, std::string(parts[0]), std::string(parts[1]));
  if (!checked) throw std::runtime_error(checked.error().message);
}

// When nobody could be told: the maintenance may be over sooner than it would be missed again.
Async<TimePoint> Heartbeats::next_look(const Heartbeat& heartbeat) {
  const auto now = parts_.clock.now();
  auto next = now + heartbeat.every;
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(heartbeat.domain));
  const auto window = domain->maintenance.find(domain->under_maintenance(heartbeat.policy, now));
  if (window != domain->maintenance.end()) next = std::min(next, window->second.to);
  co_return next;
}

Async<void> Heartbeats::check(const schedule::Firing& firing, const std::string& domain,
                              const std::string& name) {
  TABELLA_CO_ASSIGN(const auto heartbeat, co_await find(domain, name));
  if (!heartbeat) co_return store::Result<void>();
  const auto due = heartbeat->last + heartbeat->every;
  if (due > parts_.clock.now()) {
    TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, due));
    co_return store::Result<void>();
  }
  store::Update update(table_, heartbeat_key(domain, name));
  update.set("late", true).when(store::equals("beat", epoch_milliseconds(heartbeat->last)));
  TABELLA_CO_ASSIGN(const bool late, store::was_made(co_await parts_.store.update_item(std::move(update))));
  if (!late) co_return store::fail(store::ErrorCode::unavailable, "it was heard of just now");
  std::string metadata;
  {
    JsonObjectWriter object(metadata);
    object.string("summary",
                  fmt::format("{} has not been heard of for {}", name, duration_text(heartbeat->every)));
    object.string("heartbeat", name);
    object.string("last", time_text(heartbeat->last));
  }
  const auto opened = co_await parts_.searches.open({.domain = domain,
                                                     .contact = heartbeat->contact,
                                                     .policy = heartbeat->policy,
                                                     .metadata = std::move(metadata),
                                                     .key = search_key_of(*heartbeat)});
  const bool is_wrong = !opened && opened.error().code == store::ErrorCode::validation;
  if (is_wrong)
    log::warning("manhunt: heartbeat {} of {} was missed, and nobody can be searched for: {}", name, domain,
                 opened.error().message);
  // Nobody knows of it, as during maintenance: while nothing is heard of it, it is looked at again.
  if (is_wrong || (opened && opened->search.status == Status::canceled)) {
    TABELLA_CO_ASSIGN(const auto again, co_await next_look(*heartbeat));
    TABELLA_CO_TRY(co_await parts_.schedule.reschedule(firing.timer.id, again));
    co_return store::Result<void>();
  }
  TABELLA_CO_TRY(opened);
  // A beat that has come in the meantime, or whoever has set it anew, has found nothing to end.
  TABELLA_CO_ASSIGN(const auto now, co_await find(domain, name));
  const bool is_as_it_was = now && now->contact == heartbeat->contact && now->policy == heartbeat->policy;
  if (!is_as_it_was) TABELLA_CO_TRY(co_await resolve(*heartbeat));
  if (now && now->last != heartbeat->last) TABELLA_CO_TRY(co_await recover(*now));
  co_return store::Result<void>();
}

}  // namespace tabella::manhunt

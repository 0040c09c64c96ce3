#include "journal/consumers.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/ids.h"
#include "store/batches.h"
#include "store/conditional.h"

namespace tabella::journal {

using store::Async;
using store::Row;

namespace {

constexpr const char* kConsumerId = "id";
constexpr const char* kConsumerPart = "part";
constexpr const char* kConsumerTag = "tag";
constexpr const char* kConsumerParts = "parts";
constexpr const char* kConsumerCreated = "created";
constexpr const char* kConsumerToken = "token";  // tells one of a name from the next
constexpr const char* kPartCheckpoint = "checkpoint";
constexpr const char* kPartHolder = "holder";
constexpr const char* kPartLease = "lease";
constexpr const char* kPartUntil = "until";
constexpr const char* kPartDelivered = "delivered";
// Slices of others are passed over in pages; so many at most, and the next read goes on from there.
constexpr int kPagesPerPart = 8;

// Neither the names of journals nor, behind the first '#', anything else is mistaken for another.
std::string parts_id(const std::string& journal, const std::string& name) {
  return fmt::format("{}#{}", journal, name);
}

item::Item consumer_key(const std::string& journal, const std::string& name) {
  return Row().set(kConsumerId, journal + "#").set(kConsumerPart, name);
}

Row part_row(const std::string& journal, const std::string& name, int part) {
  return Row().set(kConsumerId, parts_id(journal, name)).set(kConsumerPart, fmt::format("{:04}", part));
}
item::Item part_key(const std::string& journal, const std::string& name, int part) {
  return part_row(journal, name, part);
}

Consumer consumer_of(item::ItemView row, const std::string& journal) {
  return {.journal = journal,
          .name = store::text_of(row, kConsumerPart),
          .tag = store::text_of(row, kConsumerTag),
          .parts = static_cast<int>(store::number_of(row, kConsumerParts)),
          .created = time_at(store::number_of(row, kConsumerCreated))};
}

// A lease begins with its part.
std::string make_lease(int part) { return fmt::format("{:04}-{}", part, make_uuid()); }

std::optional<int> part_of_lease(std::string_view lease) {
  int part = 0;
  if (lease.size() < 5 || lease[4] != '-') return std::nullopt;
  const auto [end, problem] = std::from_chars(lease.data(), lease.data() + 4, part);
  return problem == std::errc() && end == lease.data() + 4 && part >= 0 ? std::optional(part) : std::nullopt;
}

store::Update given_back(store::Update update) {
  return std::move(update).remove(kPartHolder).remove(kPartUntil);
}
store::Update end_of_lease(store::Update update) {
  return given_back(std::move(update)).remove(kPartLease).remove(kPartDelivered);
}

}  // namespace

struct Consumers::PartRow {
  int part = 0;
  uint64_t checkpoint = 0;
  std::string holder;
  std::string lease;
  TimePoint until;
  uint64_t delivered = 0;  // under this lease, up to here

  bool is_held(TimePoint now) const { return !holder.empty() && now < until; }
  bool can_be_had(const std::string& by, TimePoint now) const { return holder == by || !is_held(now); }
};

struct Consumers::Found {
  Consumer consumer;
  std::string token;
};

store::TablePlan Consumers::plan(const std::string& table) {
  return store::plan_table(table, {{kConsumerId, item::Type::S}, {kConsumerPart, item::Type::S}});
}

Async<bool> Consumers::create(Consumer consumer, uint64_t from) {
  if (consumer.name.empty()) co_return store::refuse("a consumer needs a name");
  if (consumer.parts < 1 || consumer.parts > kMostParts)
    co_return store::refuse(fmt::format("a consumer has 1 to {} parts", kMostParts));
  TABELLA_CO_ASSIGN(const auto last, co_await order_.last(consumer.journal));
  from = std::min(from, last);
  const auto token = make_uuid();
  Row row;
  row.set(kConsumerId, consumer.journal + "#")
      .set(kConsumerPart, consumer.name)
      .set(kConsumerParts, consumer.parts)
      .set(kConsumerCreated, epoch_milliseconds(clock_.now()))
      .set(kConsumerToken, token);
  if (!consumer.tag.empty()) row.set(kConsumerTag, consumer.tag);
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, row).when(store::absent(kConsumerId)));
  for (int part = 0; part < consumer.parts; ++part)
    writes.push_back(
        store::Put(table_, part_row(consumer.journal, consumer.name, part).set(kPartCheckpoint, from)));
  const auto written = co_await store_.transact_write_items({.writes = std::move(writes)});
  if (written) co_return true;
  if (!store::failed_its_conditions(written.error())) co_return std::unexpected(written.error());
  if (!written.error().unsure) co_return false;
  // The one that is there may be ours, of which the answer was lost.
  TABELLA_CO_ASSIGN(const auto found, co_await look(consumer.journal, consumer.name));
  co_return found && found->token == token;
}

Async<bool> Consumers::remove(std::string journal, std::string name) {
  TABELLA_CO_ASSIGN(const auto found, co_await look(journal, name));
  if (!found) co_return false;
  std::vector<store::TransactWrite> writes;
  writes.push_back(
      store::Delete(table_, consumer_key(journal, name)).when(store::equals(kConsumerToken, found->token)));
  for (int part = 0; part < found->consumer.parts; ++part)
    writes.push_back(store::Delete(table_, part_key(journal, name, part)));
  const auto written = co_await store_.transact_write_items({.writes = std::move(writes)});
  if (written) co_return true;
  if (!store::failed_its_conditions(written.error())) co_return std::unexpected(written.error());
  co_return written.error().unsure;  // by us, before the answer was lost; or by somebody else
}

Async<std::optional<Consumers::Found>> Consumers::look(std::string journal, std::string name) const {
  if (name.empty()) co_return std::nullopt;
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = consumer_key(journal, name), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return Found{.consumer = consumer_of(*found.item, journal),
                  .token = store::text_of(*found.item, kConsumerToken)};
}

Async<std::optional<Consumer>> Consumers::find(std::string journal, std::string name) const {
  TABELLA_CO_ASSIGN(auto found, co_await look(std::move(journal), std::move(name)));
  co_return found ? std::optional(std::move(found->consumer)) : std::nullopt;
}

Async<std::vector<Consumer>> Consumers::list(std::string journal) const {
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::query_all(
                        store_, store::Query(table_).partition(kConsumerId, journal + "#").consistent()));
  std::vector<Consumer> consumers;
  for (const auto& row : rows) consumers.push_back(consumer_of(row, journal));
  co_return consumers;
}

Async<std::vector<Consumers::PartRow>> Consumers::part_rows(std::string journal, std::string name) const {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          store_, store::Query(table_).partition(kConsumerId, parts_id(journal, name)).consistent()));
  std::vector<PartRow> parts;
  for (const auto& row : rows)
    parts.push_back({.part = static_cast<int>(parts.size()),
                     .checkpoint = static_cast<uint64_t>(store::number_of(row, kPartCheckpoint)),
                     .holder = store::text_of(row, kPartHolder),
                     .lease = store::text_of(row, kPartLease),
                     .until = time_at(store::number_of(row, kPartUntil)),
                     .delivered = static_cast<uint64_t>(store::number_of(row, kPartDelivered))});
  co_return parts;
}

Async<std::vector<ConsumerPart>> Consumers::parts(Consumer consumer) const {
  TABELLA_CO_ASSIGN(const auto rows, co_await part_rows(consumer.journal, consumer.name));
  TABELLA_CO_ASSIGN(const auto last, co_await order_.last(consumer.journal));
  std::vector<ConsumerPart> parts;
  for (const auto& row : rows) {
    ConsumerPart part{
        .part = row.part, .checkpoint = row.checkpoint, .lag = last - std::min(last, row.checkpoint)};
    if (row.is_held(clock_.now())) {
      part.holder = row.holder;
      part.until = row.until;
    }
    parts.push_back(std::move(part));
  }
  co_return parts;
}

// Nobody has read, acknowledged or moved it meanwhile.
store::Condition Consumers::unchanged(const PartRow& part) {
  auto same_lease = part.lease.empty() ? store::absent(kPartLease) : store::equals(kPartLease, part.lease);
  return store::equals(kPartCheckpoint, part.checkpoint) && std::move(same_lease) &&
         is_still(kPartUntil, static_cast<uint64_t>(epoch_milliseconds(part.until))) &&
         is_still(kPartDelivered, part.delivered);
}

// The first events behind the checkpoint of a part, or how far there are none.
Async<OrderPage> Consumers::news(const Consumer& consumer, const PartRow& part, size_t limit) const {
  const Filter filter{.tag = consumer.tag,
                      .first_slice = part.part * kSlices / consumer.parts,
                      .last_slice = (part.part + 1) * kSlices / consumer.parts - 1};
  OrderPage page{.position = part.checkpoint};
  for (int pages = 0; pages < kPagesPerPart; ++pages) {
    TABELLA_CO_ASSIGN(page, co_await order_.read(consumer.journal, page.position, limit, filter, kMostBytes));
    if (!page.events.empty() || page.position >= page.last) break;
  }
  co_return page;
}

Async<std::variant<Delivery, Refused>> Consumers::read(std::string journal, std::string name,
                                                       std::string holder, size_t limit,
                                                       std::chrono::milliseconds lease) {
  TABELLA_CO_ASSIGN(const auto found, co_await find(journal, name));
  if (!found) co_return Refused::no_consumer;
  TABELLA_CO_ASSIGN(auto rows, co_await part_rows(journal, name));
  const auto now = clock_.now();
  std::erase_if(rows,
                [&](const PartRow& row) { return row.part >= found->parts || !row.can_be_had(holder, now); });
  if (rows.empty()) co_return Refused::all_held;
  const bool some_held = rows.size() < static_cast<size_t>(found->parts);
  // Those that it has first; of the others each begins elsewhere, so that they do not all want the same.
  const auto shift = static_cast<int>(random_bits() % static_cast<uint64_t>(found->parts));
  std::ranges::sort(rows, {}, [&](const PartRow& row) {
    return std::pair(row.holder != holder, (row.part + shift) % found->parts);
  });
  Delivery delivery{.part = rows.front().part, .position = rows.front().checkpoint};
  size_t lost = 0;
  for (const auto& row : rows) {
    TABELLA_CO_ASSIGN(auto page, co_await news(*found, row, std::max<size_t>(limit, 1)));
    delivery.last = page.last;
    if (page.events.empty()) {
      TABELLA_CO_TRY(co_await pass_over(*found, row, page.position));
      continue;
    }
    TABELLA_CO_ASSIGN(auto taken, co_await take(*found, row, holder, lease, page.position));
    if (!taken) {
      ++lost;
      continue;
    }
    co_return Delivery{.part = row.part,
                       .lease = std::move(*taken),
                       .events = std::move(page.events),
                       .position = page.position,
                       .last = page.last};
  }
  if (lost == rows.size()) co_return Refused::all_held;
  delivery.some_held = some_held || lost > 0;
  co_return delivery;
}

Async<std::optional<std::string>> Consumers::take(const Consumer& consumer, const PartRow& part,
                                                  std::string holder, std::chrono::milliseconds lease,
                                                  uint64_t position) {
  const bool again = part.holder == holder && !part.lease.empty();
  const auto token = again ? part.lease : make_lease(part.part);
  auto update = store::Update(table_, part_key(consumer.journal, consumer.name, part.part))
                    .set(kPartHolder, holder)
                    .set(kPartLease, token)
                    .set(kPartUntil, epoch_milliseconds(clock_.now() + lease))
                    .set(kPartDelivered, again ? std::max(part.delivered, position) : position)
                    .when(unchanged(part));
  const auto taken = co_await store_.update_item(std::move(update));
  if (taken) co_return token;
  if (!store::failed_its_condition(taken.error())) co_return std::unexpected(taken.error());
  if (!taken.error().unsure) co_return std::nullopt;
  // The answer was lost: whether it is ours the row says.
  TABELLA_CO_ASSIGN(const auto rows, co_await part_rows(consumer.journal, consumer.name));
  const auto same = std::ranges::find(rows, part.part, &PartRow::part);
  const bool ours = same != rows.end() && same->lease == token && same->checkpoint == part.checkpoint;
  co_return ours ? std::optional(token) : std::nullopt;
}

// Positions without an event for this part need not be looked at again. If somebody was faster, he has moved
// it himself.
Async<void> Consumers::pass_over(const Consumer& consumer, const PartRow& part, uint64_t position) {
  if (position <= part.checkpoint) co_return store::Result<void>();
  TABELLA_CO_TRY(store::was_made(
      co_await store_.update_item(store::Update(table_, part_key(consumer.journal, consumer.name, part.part))
                                      .set(kPartCheckpoint, position)
                                      .when(unchanged(part)))));
  co_return store::Result<void>();
}

Async<std::optional<Refused>> Consumers::with_lease(std::string journal, std::string name, std::string lease,
                                                    store::Update change,
                                                    std::function<bool(const PartRow&)> made_before) {
  auto changed = co_await store_.update_item(std::move(change).when(store::equals(kPartLease, lease)));
  if (changed) co_return std::nullopt;
  if (!store::failed_its_condition(changed.error())) co_return store::error_of(changed);
  TABELLA_CO_ASSIGN(const auto rows, co_await part_rows(journal, name));
  if (rows.empty()) co_return Refused::no_consumer;
  const auto row = std::ranges::find(rows, part_of_lease(lease).value_or(-1), &PartRow::part);
  if (row == rows.end()) co_return Refused::lease_lost;
  if (row->lease == lease || changed.error().unsure)
    if (made_before(*row)) co_return std::nullopt;
  co_return row->lease == lease ? Refused::beyond : Refused::lease_lost;
}

Async<std::optional<Refused>> Consumers::acknowledge(std::string journal, std::string name, std::string lease,
                                                     uint64_t position, bool keep) {
  auto change = store::Update(table_, part_key(journal, name, part_of_lease(lease).value_or(0)))
                    .set(kPartCheckpoint, position);
  if (!keep) {
    TABELLA_CO_ASSIGN(const bool was_all,
                      store::was_made(co_await store_.update_item(given_back(change).when(
                          store::equals(kPartLease, lease) && store::equals(kPartDelivered, position) &&
                          store::at_most(kPartCheckpoint, position)))));
    if (was_all) co_return std::nullopt;
  }
  auto some = std::move(change).when(store::less(kPartCheckpoint, position) &&
                                     store::at_least(kPartDelivered, position));
  co_return co_await with_lease(
      std::move(journal), std::move(name), lease, std::move(some),
      [position, lease](const PartRow& row) { return row.lease == lease && row.checkpoint >= position; });
}

Async<std::optional<Refused>> Consumers::release(std::string journal, std::string name, std::string lease) {
  auto change =
      end_of_lease(store::Update(table_, part_key(journal, name, part_of_lease(lease).value_or(0))));
  co_return co_await with_lease(std::move(journal), std::move(name), lease, std::move(change),
                                [](const PartRow& row) { return row.lease.empty(); });
}

Async<bool> Consumers::move_to(std::string journal, std::string name, uint64_t position) {
  TABELLA_CO_ASSIGN(const auto found, co_await look(journal, name));
  if (!found) co_return false;
  TABELLA_CO_ASSIGN(const auto last, co_await order_.last(journal));
  std::vector<store::TransactWrite> writes;
  writes.push_back(
      store::Check(table_, consumer_key(journal, name)).when(store::equals(kConsumerToken, found->token)));
  for (int part = 0; part < found->consumer.parts; ++part)
    writes.push_back(end_of_lease(
        store::Update(table_, part_key(journal, name, part)).set(kPartCheckpoint, std::min(position, last))));
  const auto written = co_await store_.transact_write_items({.writes = std::move(writes)});
  if (written) co_return true;
  if (store::failed_its_conditions(written.error())) co_return false;
  co_return std::unexpected(written.error());
}

}  // namespace tabella::journal

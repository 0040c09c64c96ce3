#include "journal/snapshots.h"

#include <algorithm>

#include <fmt/format.h>

#include "journal/event_attributes.h"
#include "journal/persistent_message.h"
#include "journal/row_numbers.h"
#include "store/batches.h"
#include "store/rows.h"
#include "store/time_slice.h"

namespace tabella::journal {

using store::Async;

namespace {

constexpr std::string_view kSnapshotPartition = "par";
constexpr std::string_view kSnapshotNumber = "seq";
constexpr std::string_view kSnapshotTime = "ts";  // milliseconds
constexpr std::string_view kSnapshotSerializer = "ser_id";
constexpr std::string_view kSnapshotManifest = "ser_manifest";
constexpr std::string_view kSnapshotPayload = "pay_data";
constexpr std::string_view kWrappedPayload = "pay";  // instead of the three before: Akka's old form
constexpr const char* kSnapshotTimeIndex = "ts-idx";
constexpr size_t kLargestRow = 400 * 1024;
constexpr size_t kSnapshotsPerPage = 1000;

std::string snapshot_partition(const Entity& entity) {
  return fmt::format("{}-P-{}", entity.journal, entity.pid);
}

bool is_in_time(const SnapshotRange& range, TimePoint time) {
  return (!range.not_before || time >= *range.not_before) && (!range.not_after || time <= *range.not_after);
}

// The newest first. Times are not asked for: a limit counts what a filter leaves out as well.
store::Query snapshot_query(const std::string& table, const Entity& entity, const SnapshotRange& range) {
  constexpr uint64_t kHighest = INT64_MAX;
  return store::Query(table)
      .partition(kSnapshotPartition, snapshot_partition(entity))
      .where(store::between(kSnapshotNumber, std::min(range.from, kHighest), std::min(range.to, kHighest)))
      .consistent()
      .descending();
}

// Without its payload. Nothing where the number is none that an event can have.
std::optional<Snapshot> describe_snapshot(item::ItemView row) {
  const auto number = count_in(row, kSnapshotNumber);
  if (!number) return std::nullopt;
  Snapshot snapshot{.number = *number,
                    .time = time_at(store::number_of(row, kSnapshotTime)),
                    .payload = {},
                    .is_json = store::flag_of(row, event_attributes::kIsJson),
                    .serializer = integer_in(row, kSnapshotSerializer).value_or(kByteArraySerializer),
                    .manifest = store::text_of(row, kSnapshotManifest)};
  if (const auto wrapped = row.find(kWrappedPayload); wrapped && wrapped->type() == item::Type::B) {
    if (const auto old = read_wrapped_snapshot(wrapped->content())) {
      snapshot.serializer = old->serializer;
      snapshot.manifest = old->serializer_manifest;
    }
  }
  return snapshot;
}

std::optional<std::string> payload_of_snapshot(item::ItemView row) {
  const auto payload = row.find(kSnapshotPayload);
  if (payload && payload->type() == item::Type::B) return std::string(payload->content());
  const auto wrapped = row.find(kWrappedPayload);
  if (!wrapped || wrapped->type() != item::Type::B) return std::nullopt;
  const auto old = read_wrapped_snapshot(wrapped->content());
  return old ? std::optional(std::string(old->payload)) : std::nullopt;
}

}  // namespace

store::TablePlan Snapshots::plan(const std::string& table) {
  const std::string partition(kSnapshotPartition);
  auto plan =
      store::plan_table(table, {{partition, item::Type::S}, {std::string(kSnapshotNumber), item::Type::N}});
  auto& definition = plan.definition;
  definition.attributes.push_back({std::string(kSnapshotTime), item::Type::N});
  store::IndexDefinition by_time{
      .name = kSnapshotTimeIndex,
      .key_schema = {{partition, store::KeyRole::hash}, {std::string(kSnapshotTime), store::KeyRole::range}},
      .projection = store::ProjectionType::all};
  definition.local_indexes.emplace().push_back(std::move(by_time));
  return plan;
}

// Pekko takes the snapshot with the newest time, whatever its number. So times do not go back, also where
// clocks do: each is later than the newest there is. Two that are saved at once may get the same time, and
// Pekko takes either of them, from which it recovers to the same state: they differ only in how many events
// are behind them.
Async<void> Snapshots::save(Entity entity, Snapshot snapshot) {
  const auto partition = snapshot_partition(entity);
  TABELLA_CO_ASSIGN(const auto newest, co_await store_.query(store::Query(table_)
                                                                 .index(kSnapshotTimeIndex)
                                                                 .partition(kSnapshotPartition, partition)
                                                                 .only({std::string(kSnapshotTime)})
                                                                 .consistent()
                                                                 .descending()
                                                                 .limit(1)));
  auto time = epoch_milliseconds(snapshot.time);
  if (!newest.items.empty()) {
    const auto last = store::number_of(newest.items.front(), kSnapshotTime);
    time = std::max(time, std::min(last, INT64_MAX - 1) + 1);
  }
  store::Row row;
  row.set(kSnapshotPartition, partition)
      .set(kSnapshotNumber, snapshot.number)
      .set(kSnapshotTime, time)
      .set(kSnapshotSerializer, snapshot.serializer)
      .set(kSnapshotPayload, store::Binary{snapshot.payload});
  if (!snapshot.manifest.empty()) row.set(kSnapshotManifest, snapshot.manifest);
  if (snapshot.is_json) row.set(event_attributes::kIsJson, true);
  item::Item item = row;
  if (item.size() > kLargestRow)
    co_return store::refuse(fmt::format(
        "a snapshot may take {} bytes in its table, its keys included, and this one takes {}: keep "
        "less in it, or compress it",
        kLargestRow, item.size()));
  TABELLA_CO_TRY(co_await store_.put_item(store::Put(table_, std::move(item))));
  co_return store::Result<void>();
}

Async<std::optional<Snapshot>> Snapshots::newest(Entity entity, SnapshotRange range) const {
  if (range.from > range.to) co_return std::nullopt;
  // One row where the first is the one, as it is unless times are asked for; else as many as a page takes.
  store::QueryRequest query = snapshot_query(table_, entity, range).limit(1);
  store::TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(query));
    for (const auto& row : page.items) {
      auto snapshot = describe_snapshot(row);
      if (!snapshot || !is_in_time(range, snapshot->time)) continue;
      auto payload = payload_of_snapshot(row);
      if (!payload)
        co_return store::fail(store::ErrorCode::internal,
                              fmt::format("the snapshot at number {} of {} has no payload that can be read: "
                                          "delete it to go on from an older one",
                                          snapshot->number, entity.pid));
      snapshot->payload = std::move(*payload);
      co_return snapshot;
    }
    if (!page.last_key) co_return std::nullopt;
    query.options.start_key = std::move(page.last_key);
    query.options.limit.reset();
    co_await slice.yield_if_over();
  }
}

Async<std::vector<Snapshot>> Snapshots::list(Entity entity, SnapshotRange range, size_t limit) const {
  std::vector<Snapshot> snapshots;
  if (range.from > range.to) co_return snapshots;
  std::vector<std::string> attributes;
  for (const auto name : {kSnapshotNumber, kSnapshotTime, kSnapshotSerializer, kSnapshotManifest,
                          kWrappedPayload, event_attributes::kIsJson})
    attributes.emplace_back(name);
  store::QueryRequest query =
      snapshot_query(table_, entity, range)
          .only(attributes)
          .limit(static_cast<int64_t>(std::clamp<size_t>(limit, 1, kSnapshotsPerPage)));
  store::TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(query));
    for (const auto& row : page.items) {
      if (snapshots.size() == limit) co_return snapshots;
      auto snapshot = describe_snapshot(row);
      if (snapshot && is_in_time(range, snapshot->time)) snapshots.push_back(std::move(*snapshot));
    }
    if (!page.last_key) co_return snapshots;
    query.options.start_key = std::move(page.last_key);
    co_await slice.yield_if_over();
  }
}

Async<size_t> Snapshots::remove(Entity entity, SnapshotRange range) {
  TABELLA_CO_ASSIGN(const auto found, co_await list(entity, range, SIZE_MAX));
  std::vector<store::BatchWrite> deletions;
  for (const auto& snapshot : found)
    deletions.push_back({.put = false,
                         .item = store::Row()
                                     .set(kSnapshotPartition, snapshot_partition(entity))
                                     .set(kSnapshotNumber, snapshot.number)});
  TABELLA_CO_TRY(co_await store::write_all(store_, table_, std::move(deletions)));
  co_return found.size();
}

}  // namespace tabella::journal

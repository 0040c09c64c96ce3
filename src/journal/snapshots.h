// Snapshots of entities, in a table of their own, laid out as Pekko's and Akka's plugins do, which can share
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "journal/event.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::journal {

struct Snapshot {
  uint64_t number = 0;  // of the last event that is in it
  TimePoint time;
  std::string payload;
  bool is_json = false;
  int64_t serializer = kByteArraySerializer;
  std::string manifest;
};

// Which of an entity's snapshots: by the number of their last event, and by when they were taken.
struct SnapshotRange {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  std::optional<TimePoint> not_before = {};
  std::optional<TimePoint> not_after = {};
};

// Thread-safe.
class Snapshots {
 public:
  Snapshots(store::Store& store, std::string table) : store_(store), table_(std::move(table)) {}
  static store::TablePlan plan(const std::string& table);

  // Replaces one of the same number.
  store::Async<void> save(Entity entity, Snapshot snapshot);
  store::Async<std::optional<Snapshot>> newest(Entity entity, SnapshotRange range) const;
  // The newest first, without their payloads.
  store::Async<std::vector<Snapshot>> list(Entity entity, SnapshotRange range, size_t limit) const;
  // How many were deleted.
  store::Async<size_t> remove(Entity entity, SnapshotRange range);

 private:
  store::Store& store_;
  const std::string table_;
};

}  // namespace tabella::journal

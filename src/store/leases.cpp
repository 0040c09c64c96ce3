#include "store/leases.h"

#include "base/ids.h"
#include "store/batches.h"

namespace tabella::store {
namespace {

constexpr const char* kName = "consumer";
constexpr const char* kShard = "shard";

Lease to_lease(item::ItemView row) {
  return {.shard = text_of(row, kShard),
          .owner = text_of(row, "owner"),
          .wanted_by = text_of(row, "wanted_by"),
          .checkpoint = text_of(row, "checkpoint"),
          .finished = row.find("finished").has_value(),
          .beat = text_of(row, "beat")};
}

}  // namespace

Leases::Leases(Store& store, const Clock& clock, std::string table, const std::string& consumer,
               const std::string& stream, std::string worker, std::chrono::milliseconds length)
    : store_(store),
      clock_(clock),
      table_(std::move(table)),
      name_(consumer + "#" + stream),
      worker_(std::move(worker)),
      length_(length) {}

TablePlan Leases::plan(const std::string& table) {
  return plan_table(table, {{kName, item::Type::S}, {kShard, item::Type::S}});
}

Item Leases::key_of(const std::string& shard) const { return Row().set(kName, name_).set(kShard, shard); }

Async<std::vector<Lease>> Leases::list() {
  auto rows = co_await query_all(store_, Query(table_).partition(kName, name_).consistent());
  if (!rows) co_return error_of(rows);
  std::vector<Lease> leases;
  for (const auto& row : *rows) leases.push_back(to_lease(row));
  for (const auto& lease : leases) {
    auto& seen = seen_[lease.shard];
    if (seen.beat == lease.beat && !lease.beat.empty()) continue;
    seen = {.beat = lease.beat, .since = clock_.elapsed()};
  }
  co_return leases;
}

bool Leases::can_be_taken(const Lease& lease) const {
  if (lease.finished) return false;
  if (lease.owner.empty())
    return lease.wanted_by.empty() || lease.wanted_by == worker_ || seen_long_enough(lease);
  return seen_long_enough(lease);
}

bool Leases::seen_long_enough(const Lease& lease) const {
  const auto at = seen_.find(lease.shard);
  return at != seen_.end() && clock_.elapsed() - at->second.since >= length_;
}

Async<std::optional<Lease>> Leases::change(std::string shard, std::string beat, Update update) {
  auto changed = co_await store_.update_item(std::move(update).returning(ReturnValues::all_new));
  if (changed && !changed->attributes)
    co_return fail(ErrorCode::internal, "the store did not return the row that it changed");
  if (changed) co_return std::optional(to_lease(*changed->attributes));
  auto& error = changed.error();
  if (error.code != ErrorCode::conditional_check_failed) co_return std::unexpected(std::move(error));
  if (!error.unsure) co_return std::optional<Lease>();
  // An answer that was lost may have been to a change that was made.
  auto found = co_await store_.get_item({.table = table_, .key = key_of(shard), .consistent = true});
  if (!found) co_return std::unexpected(std::move(found).error());
  if (found->item && text_of(*found->item, "beat") == beat) co_return std::optional(to_lease(*found->item));
  co_return std::optional<Lease>();
}

Async<std::optional<Lease>> Leases::take(const Lease& lease) {
  const auto beat = make_uuid();
  auto update = Update(table_, key_of(lease.shard))
                    .set("beat", beat)
                    .set("owner", worker_)
                    .remove("wanted_by")
                    .when(lease.beat.empty() ? absent("beat") : equals("beat", lease.beat))
                    .when(absent("finished"));
  return change(lease.shard, beat, std::move(update));
}

// An update that only the holder can make.
Update Leases::own(const Lease& lease, const std::string& beat) const {
  return Update(table_, key_of(lease.shard)).set("beat", beat).when(equals("owner", worker_));
}

Async<std::optional<Lease>> Leases::renew(const Lease& lease) {
  const auto beat = make_uuid();
  return change(lease.shard, beat, own(lease, beat));
}

Async<std::optional<Lease>> Leases::checkpoint(const Lease& lease, std::string sequence, bool finished) {
  const auto beat = make_uuid();
  auto update = own(lease, beat).set("checkpoint", sequence);
  if (finished) update.set("finished", beat).remove("owner").remove("wanted_by");
  return change(lease.shard, beat, std::move(update));
}

Async<std::optional<Lease>> Leases::release(const Lease& lease) {
  const auto beat = make_uuid();
  return change(lease.shard, beat, own(lease, beat).remove("owner"));
}

Async<std::optional<Lease>> Leases::ask_for(const Lease& lease) {
  // Leaves the beat as it is: that is the holder's, and shows whether he lives.
  return change(lease.shard, make_uuid(),
                Update(table_, key_of(lease.shard))
                    .set("wanted_by", worker_)
                    .when(equals("owner", lease.owner) && absent("wanted_by")));
}

Async<void> Leases::forget(const Lease& lease) {
  seen_.erase(lease.shard);
  auto removed = co_await store_.delete_item({.table = table_, .key = key_of(lease.shard), .options = {}});
  if (!removed) co_return std::unexpected(std::move(removed).error());
  co_return Result<>{};
}

}  // namespace tabella::store

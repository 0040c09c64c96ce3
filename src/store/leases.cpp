#include "store/leases.h"

#include "base/ids.h"
#include "store/rows.h"

namespace tabella::store {
namespace {

constexpr const char* kName = "consumer";
constexpr const char* kShard = "shard";

Item key_of(const std::string& name, const std::string& shard) {
  auto key = item::Value::map();
  key.set_member(kName, item::Value::string(name));
  key.set_member(kShard, item::Value::string(shard));
  return item::encode_item(key);
}

Lease to_lease(item::ItemView row) {
  return {.shard = text_of(row, kShard),
          .owner = text_of(row, "owner"),
          .wanted_by = text_of(row, "wanted_by"),
          .checkpoint = text_of(row, "checkpoint"),
          .finished = row.find("finished").has_value(),
          .beat = text_of(row, "beat")};
}

}  // namespace

// An update, the condition under which it holds, and what both mean by their references.
struct Leases::Change {
  std::string update;
  std::string condition;
  std::optional<std::string> owner;
  std::optional<std::string> seen;
  std::optional<std::string> checkpoint;
};

Leases::Leases(Store& store, const Clock& clock, std::string table, const std::string& consumer,
               const std::string& stream, std::string worker, std::chrono::milliseconds length)
    : store_(store),
      clock_(clock),
      table_(std::move(table)),
      name_(consumer + "#" + stream),
      worker_(std::move(worker)),
      length_(length) {}

TablePlan Leases::plan(const std::string& table) {
  TableDefinition definition{.name = table};
  definition.billing_mode = BillingMode::pay_per_request;
  definition.attributes = {{kName, item::Type::S}, {kShard, item::Type::S}};
  definition.key_schema = {{kName, KeyRole::hash}, {kShard, KeyRole::range}};
  return {.definition = std::move(definition), .time_to_live = {}};
}

Async<std::vector<Lease>> Leases::list() {
  QueryRequest request;
  request.options.table = table_;
  request.options.consistent = true;
  request.options.attributes.names = Names{{"#c", kName}};
  auto values = item::Value::map();
  values.set_member(":c", item::Value::string(name_));
  request.options.attributes.values = item::encode_item(values);
  request.key_condition = "#c = :c";
  std::vector<Lease> leases;
  while (true) {
    auto page = co_await store_.query(request);
    if (!page) co_return std::unexpected(std::move(page).error());
    for (const auto& row : page->items) leases.push_back(to_lease(row));
    if (!page->last_key) break;
    request.options.start_key = std::move(page->last_key);
  }
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

Async<std::optional<Lease>> Leases::change(std::string shard, Change what) {
  const auto beat = make_uuid();
  UpdateItemRequest request{.table = table_, .key = key_of(name_, shard)};
  request.update = std::move(what.update);
  request.options.condition = std::move(what.condition);
  request.options.return_values = ReturnValues::all_new;
  request.options.attributes.names = Names{{"#owner", "owner"}};
  auto values = item::Value::map();
  if (request.update->contains(":beat")) values.set_member(":beat", item::Value::string(beat));
  if (what.owner) values.set_member(":owner", item::Value::string(*what.owner));
  if (what.seen) values.set_member(":seen", item::Value::string(*what.seen));
  if (what.checkpoint) values.set_member(":checkpoint", item::Value::string(*what.checkpoint));
  request.options.attributes.values = item::encode_item(values);
  auto changed = co_await store_.update_item(std::move(request));
  if (changed && !changed->attributes)
    co_return fail(ErrorCode::internal, "the store did not return the row that it changed");
  if (changed) co_return std::optional(to_lease(*changed->attributes));
  auto& error = changed.error();
  if (error.code != ErrorCode::conditional_check_failed) co_return std::unexpected(std::move(error));
  if (!error.unsure) co_return std::optional<Lease>();
  // An answer that was lost may have been to a change that was made.
  auto found = co_await store_.get_item({.table = table_, .key = key_of(name_, shard), .consistent = true});
  if (!found) co_return std::unexpected(std::move(found).error());
  if (found->item && text_of(*found->item, "beat") == beat) co_return std::optional(to_lease(*found->item));
  co_return std::optional<Lease>();
}

Async<std::optional<Lease>> Leases::take(const Lease& lease) {
  Change what{.update = "SET beat = :beat, #owner = :owner REMOVE wanted_by", .owner = worker_};
  if (lease.beat.empty()) {
    what.condition = "attribute_not_exists(beat) AND attribute_not_exists(finished)";
  } else {
    what.condition = "beat = :seen AND attribute_not_exists(finished)";
    what.seen = lease.beat;
  }
  return change(lease.shard, std::move(what));
}

Async<std::optional<Lease>> Leases::renew(const Lease& lease) {
  return change(lease.shard,
                {.update = "SET beat = :beat", .condition = "#owner = :owner", .owner = worker_});
}

Async<std::optional<Lease>> Leases::checkpoint(const Lease& lease, std::string sequence, bool finished) {
  return change(lease.shard,
                {.update = finished ? "SET beat = :beat, checkpoint = :checkpoint, finished = :beat "
                                      "REMOVE #owner, wanted_by"
                                    : "SET beat = :beat, checkpoint = :checkpoint",
                 .condition = "#owner = :owner",
                 .owner = worker_,
                 .checkpoint = std::move(sequence)});
}

Async<std::optional<Lease>> Leases::release(const Lease& lease) {
  return change(
      lease.shard,
      {.update = "SET beat = :beat REMOVE #owner", .condition = "#owner = :owner", .owner = worker_});
}

Async<std::optional<Lease>> Leases::ask_for(const Lease& lease) {
  // Leaves the beat as it is: that is the holder's, and shows whether he lives.
  return change(lease.shard, {.update = "SET wanted_by = :owner",
                              .condition = "#owner = :seen AND attribute_not_exists(wanted_by)",
                              .owner = worker_,
                              .seen = lease.owner});
}

Async<void> Leases::forget(const Lease& lease) {
  seen_.erase(lease.shard);
  auto removed =
      co_await store_.delete_item({.table = table_, .key = key_of(name_, lease.shard), .options = {}});
  if (!removed) co_return std::unexpected(std::move(removed).error());
  co_return Result<>{};
}

}  // namespace tabella::store

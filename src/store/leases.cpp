#include "store/leases.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "item/number.h"

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

std::string text_of(item::ItemView row, std::string_view attribute) {
  const auto value = row.find(attribute);
  return value ? std::string(value->content()) : std::string();
}

Lease to_lease(item::ItemView row) {
  const auto renewals = row.find("renewals");
  return {.shard = text_of(row, kShard),
          .owner = text_of(row, "owner"),
          .wanted_by = text_of(row, "wanted_by"),
          .checkpoint = text_of(row, "checkpoint"),
          .finished = row.find("finished").has_value(),
          .renewals = renewals ? item::number_to_int(renewals->content()).value_or(0) : 0};
}

}  // namespace

// An update, the condition under which it holds, and what both mean by their references.
struct Leases::Change {
  std::string update;
  std::string condition;
  std::optional<std::string> owner;
  std::optional<int64_t> renewals;
  std::optional<std::string> checkpoint;
  bool one = true;  // whether it counts up
};

Leases::Leases(Store& store, const Clock& clock, std::string table, std::string consumer, std::string stream,
               std::string worker, std::chrono::milliseconds length)
    : store_(store),
      clock_(clock),
      table_(std::move(table)),
      name_(consumer + "#" + stream),
      worker_(std::move(worker)),
      length_(length) {}

Async<void> Leases::make_table(Store& store, const std::string& table) {
  CreateTableRequest request;
  request.definition.name = table;
  request.definition.billing_mode = BillingMode::pay_per_request;
  request.definition.attributes = {{kName, item::Type::S}, {kShard, item::Type::S}};
  request.definition.key_schema = {{kName, KeyRole::hash}, {kShard, KeyRole::range}};
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  while (true) {
    auto described = co_await store.describe_table(table);
    if (described && described->status == Status::active) co_return Result<>{};
    if (!described && described.error().code != ErrorCode::resource_not_found)
      co_return std::unexpected(std::move(described).error());
    if (!described) {
      auto made = co_await store.create_table(request);
      if (!made && made.error().code != ErrorCode::resource_in_use)
        co_return std::unexpected(std::move(made).error());
    }
    timer.expires_after(std::chrono::milliseconds{20});
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
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
    if (seen.renewals == lease.renewals && seen.owner == lease.owner) continue;
    seen = {.renewals = lease.renewals, .owner = lease.owner, .since = clock_.now()};
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
  return at != seen_.end() && clock_.now() - at->second.since >= length_;
}

Async<std::optional<Lease>> Leases::change(std::string shard, Change what) {
  UpdateItemRequest request{.table = table_, .key = key_of(name_, shard)};
  request.update = std::move(what.update);
  request.options.condition = std::move(what.condition);
  request.options.return_values = ReturnValues::all_new;
  request.options.attributes.names = Names{{"#owner", "owner"}};
  auto values = item::Value::map();
  if (what.one) values.set_member(":one", item::Value::integer(1));
  if (what.owner) values.set_member(":owner", item::Value::string(*what.owner));
  if (what.renewals) values.set_member(":seen", item::Value::integer(*what.renewals));
  if (what.checkpoint) values.set_member(":checkpoint", item::Value::string(*what.checkpoint));
  request.options.attributes.values = item::encode_item(values);
  auto changed = co_await store_.update_item(std::move(request));
  if (changed) co_return std::optional(to_lease(*changed->attributes));
  if (changed.error().code == ErrorCode::conditional_check_failed) co_return std::optional<Lease>();
  co_return std::unexpected(std::move(changed).error());
}

Async<std::optional<Lease>> Leases::create(std::string shard) {
  return change(std::move(shard), {.update = "SET #owner = :owner ADD renewals :one",
                                   .condition = "attribute_not_exists(renewals)",
                                   .owner = worker_});
}

Async<std::optional<Lease>> Leases::take(const Lease& lease) {
  return change(lease.shard, {.update = "SET #owner = :owner REMOVE wanted_by ADD renewals :one",
                              .condition = "renewals = :seen AND attribute_not_exists(finished)",
                              .owner = worker_,
                              .renewals = lease.renewals});
}

Async<std::optional<Lease>> Leases::renew(const Lease& lease) {
  return change(lease.shard,
                {.update = "ADD renewals :one", .condition = "#owner = :owner", .owner = worker_});
}

Async<std::optional<Lease>> Leases::checkpoint(const Lease& lease, std::string sequence, bool finished) {
  return change(lease.shard,
                {.update = finished ? "SET checkpoint = :checkpoint, finished = :one REMOVE #owner, "
                                      "wanted_by ADD renewals :one"
                                    : "SET checkpoint = :checkpoint ADD renewals :one",
                 .condition = "#owner = :owner",
                 .owner = worker_,
                 .checkpoint = std::move(sequence)});
}

Async<std::optional<Lease>> Leases::release(const Lease& lease) {
  return change(
      lease.shard,
      {.update = "REMOVE #owner ADD renewals :one", .condition = "#owner = :owner", .owner = worker_});
}

Async<std::optional<Lease>> Leases::ask_for(const Lease& lease) {
  return change(lease.shard, {.update = "SET wanted_by = :owner",
                              .condition = "attribute_exists(#owner) AND attribute_not_exists(wanted_by)",
                              .owner = worker_,
                              .one = false});
}

Async<void> Leases::forget(const Lease& lease) {
  seen_.erase(lease.shard);
  auto removed =
      co_await store_.delete_item({.table = table_, .key = key_of(name_, lease.shard), .options = {}});
  if (!removed) co_return std::unexpected(std::move(removed).error());
  co_return Result<>{};
}

}  // namespace tabella::store

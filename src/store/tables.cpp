#include "store/tables.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "base/log.h"
#include "store/pause.h"

namespace tabella::store {

namespace {

// How long a step may fail that somebody else may have taken, or that a description does not show yet.
constexpr std::chrono::seconds kForgiven{10};
constexpr std::chrono::milliseconds kAfterFailure{200};
constexpr std::chrono::milliseconds kFirstPoll{20};
constexpr std::chrono::milliseconds kLongestPoll{1000};
constexpr std::chrono::seconds kBetweenNews{10};
constexpr std::chrono::minutes kPatience{30};  // an index over a large table takes its time

// Nothing if there is no such table.
Async<std::optional<TableDescription>> find_table(Store& store, const std::string& name) {
  auto described = co_await store.describe_table(name);
  if (described) co_return std::optional(std::move(*described));
  if (described.error().code == ErrorCode::resource_not_found) co_return std::optional<TableDescription>();
  co_return std::unexpected(std::move(described).error());
}

bool is_settled(const TableDescription& table) {
  return table.status == Status::active && std::ranges::all_of(table.global_indexes, [](const auto& index) {
           return index.status == Status::active;
         });
}

const IndexDescription* find_index(const std::vector<IndexDescription>& indexes, std::string_view name) {
  const auto at = std::ranges::find(indexes, name, [](const auto& index) { return index.definition.name; });
  return at == indexes.end() ? nullptr : &*at;
}

bool same_types(const TableDefinition& planned, const TableDefinition& found) {
  return std::ranges::all_of(planned.attributes, [&](const auto& attribute) {
    const auto at = std::ranges::find(found.attributes, attribute.name, &AttributeDefinition::name);
    return at == found.attributes.end() || at->type == attribute.type;
  });
}

// Whether an index holds what another would.
bool shows(const IndexDefinition& found, const IndexDefinition& planned) {
  if (found.projection == ProjectionType::all || planned.projection == ProjectionType::keys_only) return true;
  if (planned.projection == ProjectionType::all) return false;
  const auto held = found.non_key_attributes.value_or(std::vector<std::string>());
  return std::ranges::all_of(planned.non_key_attributes.value_or(std::vector<std::string>()),
                             [&](const auto& name) { return std::ranges::find(held, name) != held.end(); });
}

// Whether a stream tells what another would.
bool shows(StreamView found, StreamView planned) {
  return found == planned || planned == StreamView::keys_only || found == StreamView::new_and_old_images;
}

// What stands between a plan and a table and cannot be changed by us; empty: nothing.
std::string conflict(const TablePlan& plan, const TableDescription& table) {
  const auto& planned = plan.definition;
  const auto& found = table.definition;
  if (planned.key_schema != found.key_schema || !same_types(planned, found))
    return fmt::format("the table {} is there, with other keys", planned.name);
  for (const auto& index : planned.global_indexes.value_or(std::vector<IndexDefinition>())) {
    const auto* there = find_index(table.global_indexes, index.name);
    if (there && there->definition.key_schema != index.key_schema)
      return fmt::format("the index {} of the table {} is there, with other keys", index.name, planned.name);
    if (there && !shows(there->definition, index))
      return fmt::format("the index {} of the table {} is there, and lacks attributes that it should hold",
                         index.name, planned.name);
  }
  for (const auto& index : planned.local_indexes.value_or(std::vector<IndexDefinition>()))
    if (!find_index(table.local_indexes, index.name))
      return fmt::format("the table {} is there, without its local index {}", planned.name, index.name);
  if (planned.stream && found.stream && !shows(*found.stream, *planned.stream))
    return fmt::format("the stream of the table {} shows something else", planned.name);
  return {};
}

std::vector<IndexDefinition> missing_indexes(const TablePlan& plan, const TableDescription& table) {
  std::vector<IndexDefinition> missing;
  for (const auto& index : plan.definition.global_indexes.value_or(std::vector<IndexDefinition>()))
    if (!find_index(table.global_indexes, index.name)) missing.push_back(index);
  return missing;
}

Async<bool> lacks_time_to_live(Store& store, const TablePlan& plan) {
  if (!plan.time_to_live) co_return false;
  TABELLA_CO_ASSIGN(auto found, co_await store.describe_time_to_live(plan.definition.name));
  if (found.status == TimeToLiveStatus::disabled) co_return true;
  if (found.attribute != plan.time_to_live)
    co_return fail(ErrorCode::resource_in_use,
                   fmt::format("the time to live of the table {} is in the attribute {}, not {}",
                               plan.definition.name, found.attribute.value_or(""), *plan.time_to_live));
  co_return false;
}

template <class T>
Result<> without_value(Result<T> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return {};
}

Async<void> add_index(Store& store, const TablePlan& plan, IndexDefinition index) {
  UpdateTableRequest request{.table = plan.definition.name};
  // Only those of the index: the others are the table's already.
  for (const auto& key : index.key_schema)
    for (const auto& attribute : plan.definition.attributes)
      if (attribute.name == key.name) request.attributes.push_back(attribute);
  log::info("adding the index {} to the table {}", index.name, plan.definition.name);
  request.global_index_updates.push_back({.create = std::move(index)});
  co_return without_value(co_await store.update_table(std::move(request)));
}

// Takes the next step towards the plan. True if there was none left to take.
Async<bool> take_step(Store& store, const TablePlan& plan, const std::optional<TableDescription>& table) {
  const auto& name = plan.definition.name;
  Result<> taken;
  if (!table) {
    log::info("creating the table {}", name);
    taken = without_value(co_await store.create_table({.definition = plan.definition, .tags = {}}));
  } else if (auto indexes = missing_indexes(plan, *table); !indexes.empty()) {
    taken = co_await add_index(store, plan, std::move(indexes.front()));
  } else if (plan.definition.stream && !table->definition.stream) {
    log::info("enabling the stream of the table {}", name);
    taken = without_value(co_await store.update_table(
        {.table = name,
         .stream = UpdateTableRequest::Stream{.enabled = true, .view = plan.definition.stream}}));
  } else {
    TABELLA_CO_ASSIGN(const auto lacks, co_await lacks_time_to_live(store, plan));
    if (!lacks) co_return true;
    log::info("enabling time to live on the table {}", name);
    taken = without_value(co_await store.update_time_to_live(
        {.table = name, .enabled = true, .attribute = *plan.time_to_live}));
  }
  if (!taken) co_return std::unexpected(std::move(taken).error());
  co_return false;
}

// Whether it may be right after all to have failed: a table that is there already, an index that is being
// made.
bool may_pass(ErrorCode code) {
  return code != ErrorCode::access_denied && code != ErrorCode::unauthenticated;
}

// Step by step, looking at the table as it is before each: somebody else may take the same steps at the same
// time, answers get lost, and descriptions lag behind. So a step that fails is no failure yet.
Async<void> create(Store& store, const TablePlan& plan, const std::function<bool()>& stopped) {
  using SteadyClock = std::chrono::steady_clock;
  const auto begun = SteadyClock::now();
  auto news = begun + kBetweenNews;
  std::optional<SteadyClock::time_point> failing_since;
  for (auto length = kFirstPoll;; length = std::min(length * 2, kLongestPoll)) {
    TABELLA_CO_ASSIGN(auto table, co_await find_table(store, plan.definition.name));
    const auto now = SteadyClock::now();
    if (!table || is_settled(*table)) {
      if (auto wrong = table ? conflict(plan, *table) : ""; !wrong.empty())
        co_return fail(ErrorCode::resource_in_use, std::move(wrong));
      auto done = co_await take_step(store, plan, table);
      if (done && *done) co_return Result<>{};
      if (done) {
        failing_since.reset();
      } else {
        if (!failing_since) failing_since = now;
        const bool forgiven =
            done.error().code == ErrorCode::resource_in_use || now - *failing_since < kForgiven;
        if (!may_pass(done.error().code) || !forgiven) co_return std::unexpected(std::move(done).error());
        length = std::max(length, kAfterFailure);
      }
    }
    if (now - begun > kPatience)
      co_return fail(ErrorCode::unavailable,
                     fmt::format("the table {} does not become active", plan.definition.name));
    if (stopped && stopped()) co_return fail(ErrorCode::unavailable, "it was stopped");
    if (now > news) {
      log::info("waiting for the table {} to become active", plan.definition.name);
      news = now + kBetweenNews;
    }
    co_await pause_for(length);
  }
}

// What a table lacks, in words.
Async<std::vector<std::string>> lacking(Store& store, const TablePlan& plan) {
  const auto& name = plan.definition.name;
  TABELLA_CO_ASSIGN(auto table, co_await find_table(store, name));
  std::vector<std::string> lacks;
  if (!table) {
    lacks.push_back(fmt::format("the table {}", name));
    co_return lacks;
  }
  if (auto wrong = conflict(plan, *table); !wrong.empty())
    co_return fail(ErrorCode::resource_in_use, std::move(wrong));
  for (const auto& index : missing_indexes(plan, *table))
    lacks.push_back(fmt::format("the index {} of the table {}", index.name, name));
  if (plan.definition.stream && !(*table).definition.stream)
    lacks.push_back(fmt::format("the stream of the table {}", name));
  TABELLA_CO_ASSIGN(const auto lacks_ttl, co_await lacks_time_to_live(store, plan));
  if (lacks_ttl)
    lacks.push_back(fmt::format("the time to live of the table {} (attribute {})", name, *plan.time_to_live));
  co_return lacks;
}

}  // namespace

TablePlan plan_table(std::string name, std::vector<AttributeDefinition> keys,
                     std::optional<std::string> time_to_live) {
  TableDefinition definition{.name = std::move(name)};
  definition.billing_mode = BillingMode::pay_per_request;
  for (const auto& key : keys)
    definition.key_schema.push_back(
        {.name = key.name, .role = definition.key_schema.empty() ? KeyRole::hash : KeyRole::range});
  definition.attributes = std::move(keys);
  return {.definition = std::move(definition), .time_to_live = std::move(time_to_live)};
}

Async<void> prepare_tables(Store& store, std::vector<TablePlan> plans, Missing missing,
                           std::function<bool()> stopped) {
  std::vector<std::string> lacks;
  for (const auto& plan : plans) {
    if (missing == Missing::create) {
      if (auto made = co_await create(store, plan, stopped); !made) co_return made;
      continue;
    }
    TABELLA_CO_ASSIGN(auto some, co_await lacking(store, plan));
    std::ranges::move(some, std::back_inserter(lacks));
  }
  if (lacks.empty()) co_return Result<>{};
  co_return fail(ErrorCode::resource_not_found, fmt::format("not there: {}", fmt::join(lacks, ", ")));
}

}  // namespace tabella::store

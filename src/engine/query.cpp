#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/key_range.h"
#include "engine/read_page.h"
#include "item/attribute_json.h"

namespace tabella::engine {

using expression::KeyPredicate;
using item::ItemView;
using item::ValueView;
using store::QueryRequest;
using store::refuse;
using store::Result;
using Op = KeyPredicate::Operator;

namespace {

constexpr const char* kNotSupported = "Query key condition not supported";

using Predicates = std::vector<KeyPredicate>;

Result<> check_values(const KeyPredicate& predicate, const KeyAttribute& key, store::KeyRole role) {
  if (predicate.op == Op::unindexable)
    return refuse("Attempted conditional constraint is not an indexable operation");
  for (const auto& value : predicate.values) {
    if (value.type() != key.type)
      return refuse(
          "One or more parameter values were invalid: Condition parameter type does not match schema type");
    // A range may be asked for by any string; an empty one can only not be equal to a key.
    if (predicate.op == Op::equal) TABELLA_TRY(check_key_value(key, value, role));
  }
  return {};
}

// One partition attribute and at most one sort attribute: every table, every local index, most global ones.
Result<> check_simple(const Predicates& predicates, const KeyAttribute& partition, const KeyAttribute* sort) {
  const auto missed = [](std::string_view attribute) {
    return refuse(fmt::format("Query condition missed key schema element: {}", attribute));
  };
  if (!sort && predicates.size() > 1) return refuse(kNotSupported);
  const auto* on_partition = find_predicate(predicates, partition.name);
  if (!on_partition) return missed(partition.name);
  TABELLA_TRY(check_values(*on_partition, partition, store::KeyRole::hash));
  if (on_partition->op != Op::equal) return refuse(kNotSupported);
  if (predicates.size() < 2) return {};
  const auto* on_sort = find_predicate(predicates, sort->name);
  if (!on_sort) return missed(sort->name);
  return check_values(*on_sort, *sort, store::KeyRole::range);
}

// Up to four of each: all of the partition by equality; of the sort attributes a run from the left, only the
// last of which may be a range.
Result<> check_composite(const Predicates& predicates, std::span<const KeyAttribute> partition,
                         std::span<const KeyAttribute> sort) {
  size_t used = 0;
  for (const auto& key : partition) {
    const auto* predicate = find_predicate(predicates, key.name);
    if (!predicate || predicate->op != Op::equal)
      return refuse(fmt::format(
          "{}: every HASH key attribute of the index needs an equality condition; HASH key attribute: {}",
          kNotSupported, key.name));
    TABELLA_TRY(check_values(*predicate, key, store::KeyRole::hash));
    ++used;
  }
  bool open = true;
  for (const auto& key : sort) {
    const auto* predicate = find_predicate(predicates, key.name);
    if (predicate && !open)
      return refuse(
          fmt::format("{}: RANGE key attributes are used from left to right without gaps, all but the last "
                      "with an equality condition; RANGE key attribute: {}",
                      kNotSupported, key.name));
    if (predicate) {
      TABELLA_TRY(check_values(*predicate, key, store::KeyRole::range));
      ++used;
    }
    open = open && predicate && predicate->op == Op::equal;
  }
  if (used < predicates.size()) return refuse(kNotSupported);
  return {};
}

Result<> check_predicates(const Predicates& predicates, const ReadPlan& plan) {
  const auto partition = partition_of(plan);
  const auto sort = sort_of(plan);
  if (partition.size() > 1 || sort.size() > 1) return check_composite(predicates, partition, sort);
  if (predicates.size() > 2) return refuse("Conditions can be of length 1 or 2 only");
  return check_simple(predicates, partition[0], sort.empty() ? nullptr : sort.data());
}

// A partition of one item has no place to go on from.
Result<> check_restartable(const ReadPlan& plan, ItemView start) {
  if (plan.index || plan.table->sort) return {};
  return refuse(
      fmt::format("The provided exclusive start key is invalid: ExclusiveStartKey: {{{}=AttributeValue: {}}}",
                  plan.table->partition.name, item::describe_value(*start.find(plan.table->partition.name))));
}

bool matches(const KeyPredicate& predicate, ValueView value) {
  const auto& values = predicate.values;
  const int order = item::compare(value, values[0]).value_or(0);
  switch (predicate.op) {
    case Op::equal: return order == 0;
    case Op::less: return order < 0;
    case Op::less_equal: return order <= 0;
    case Op::greater: return order > 0;
    case Op::greater_equal: return order >= 0;
    case Op::between: return order >= 0 && item::compare(value, values[1]).value_or(0) <= 0;
    case Op::begins_with: return value.content().starts_with(values[0].content());
    case Op::unindexable: break;
  }
  return false;
}

Result<> check_start_within(const ReadPlan& plan, const Predicates& predicates, ItemView start) {
  bool same_partition = true;
  for (const auto& key : partition_of(plan))
    same_partition = same_partition && matches(*find_predicate(predicates, key.name), *start.find(key.name));
  bool any_sort = false;
  for (const auto& key : sort_of(plan)) {
    const auto* predicate = find_predicate(predicates, key.name);
    if (!predicate) continue;
    any_sort = true;
    if (!matches(*predicate, *start.find(key.name)))
      return refuse("The provided starting key does not match the range key predicate");
  }
  if (same_partition) return {};
  return refuse(any_sort
                    ? "The query can return at most one row and cannot be restarted"
                    : "The provided starting key is outside query boundaries based on provided conditions");
}

// A filter is for what the key condition cannot say.
Result<> check_filter_attributes(const QueryRequest& request, const ReadPlan& plan) {
  if (!plan.filter) return {};
  std::vector<expression::Path> paths;
  collect_paths(*plan.filter, paths);
  for (const auto keys : {partition_of(plan), sort_of(plan)})
    for (const auto& key : keys)
      if (std::ranges::any_of(paths, [&](const expression::Path& p) { return p[0].name == key.name; }))
        return refuse(fmt::format("{} can only contain non-primary key attributes: Primary key attribute: {}",
                                  request.options.filter ? "Filter Expression" : "QueryFilter", key.name));
  return {};
}

}  // namespace

Result<store::Page> Engine::query_now(const QueryRequest& request) {
  const auto& options = request.options;
  TABELLA_TRY(check_read_parameters(options, Reading::query, &request));
  TABELLA_ASSIGN(auto expressions, prepare_read_expressions(options, Reading::query, &request, caches_));
  const Predicates predicates = std::move(*expressions.key);
  if (predicates.empty() || (predicates.size() > 2 && !options.index))
    return refuse("Conditions can be of length 1 or 2 only");
  TABELLA_TRY(check_select(options, Reading::query));
  TABELLA_ASSIGN(auto plan, plan_read(options, expressions, catalogue_));
  if (options.start_key) {
    TABELLA_TRY(check_start_key(plan, *options.start_key, Reading::query));
    TABELLA_TRY(check_restartable(plan, *options.start_key));
  }
  TABELLA_TRY(check_predicates(predicates, plan));
  if (options.start_key) TABELLA_TRY(check_start_within(plan, predicates, *options.start_key));
  if (plan.projection) TABELLA_TRY(check_key_paths(*plan.table, *plan.projection));
  TABELLA_TRY(check_filter_attributes(request, plan));
  TABELLA_TRY(check_projected(options, plan));
  if (plan.filter) {
    std::vector<expression::Path> paths;
    collect_paths(*plan.filter, paths);
    TABELLA_TRY(check_key_paths(*plan.table, paths));
  }

  auto [from, to] = range_of(predicates, plan);
  if (options.start_key) {
    const auto start = start_position(plan, *options.start_key);
    if (request.forward)
      from = std::max(from, start + '\0');
    else
      to = std::min(to, start);
  }
  const auto direction = request.forward ? Database::Direction::forward : Database::Direction::backward;
  auto page =
      read_page(database_, plan, options, database_.range(std::move(from), std::move(to), direction, true));
  if (!plan.index && !plan.table->sort) page.last_key.reset();  // there was one item at most
  return page;
}

store::Async<store::Page> Engine::query(QueryRequest request) {
  if (!takes_long(request.options)) co_return query_now(request);
  co_return co_await long_work_.run([&] { return query_now(request); });
}

}  // namespace tabella::engine

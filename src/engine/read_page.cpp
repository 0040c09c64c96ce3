#include "engine/read_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/capacity.h"
#include "engine/item_keys.h"
#include "engine/keys.h"
#include "expression/evaluate.h"
#include "expression/legacy.h"

namespace tabella::engine {

using expression::Condition;
using item::ItemView;
using store::ReadOptions;
using store::refuse;
using store::Result;
using store::Select;

namespace {

Result<> check_start_values(const ReadOptions& options) {
  if (options.conditional_operator && (!options.legacy_filter || options.legacy_filter->empty()))
    return refuse(
        "One or more parameter values were invalid: ConditionalOperator cannot be used without Filter or "
        "Expected");
  return {};
}

}  // namespace

Result<> check_read_parameters(const ReadOptions& options, Reading reading,
                               const store::QueryRequest* query) {
  const bool key_expression = query && query->key_condition;
  // KeyConditions may stand beside other expressions, as long as KeyConditionExpression is not one of them.
  const bool legacy_keys = query && query->key_conditions && key_expression;
  const Parameter filter{"FilterExpression", options.filter.has_value()};
  const Parameter projection{"ProjectionExpression", options.projection.has_value()};
  const Parameter to_get{"AttributesToGet", options.attributes_to_get.has_value()};
  const Parameter combine{"ConditionalOperator", options.conditional_operator.has_value()};
  const bool legacy_filter = options.legacy_filter.has_value();
  if (reading == Reading::query)
    return check_parameters({projection, filter, {"KeyConditionExpression", key_expression}},
                            {to_get, {"QueryFilter", legacy_filter}, combine, {"KeyConditions", legacy_keys}},
                            options.attributes);
  return check_parameters({projection, filter}, {to_get, {"ScanFilter", legacy_filter}, combine},
                          options.attributes);
}

Result<ReadExpressions> prepare_read_expressions(const ReadOptions& options, Reading reading,
                                                 const store::QueryRequest* query,
                                                 expression::Caches& caches) {
  ReadExpressions out;
  TABELLA_TRY(check_start_values(options));
  if (options.legacy_filter && !options.legacy_filter->empty()) {
    TABELLA_ASSIGN(out.filter,
                   expression::from_filter(*options.legacy_filter,
                                           options.conditional_operator.value_or(store::Combine::all)));
  }
  if (options.attributes_to_get) {
    TABELLA_ASSIGN(out.projection, expression::from_attributes_to_get(*options.attributes_to_get));
  }
  if (reading == Reading::query && !query->key_condition && !query->key_conditions)
    return refuse(
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.");
  TABELLA_TRY(check_attributes(options.attributes));
  expression::Bindings bindings(options.attributes.names_or_none(), options.attributes.values_or_none());
  std::optional<Condition> key;
  if (query) {
    TABELLA_ASSIGN(key, prepare(caches.conditions, query->key_condition, bindings, "KeyConditionExpression"));
  }
  if (options.filter) {
    TABELLA_ASSIGN(out.filter, prepare(caches.conditions, options.filter, bindings, "FilterExpression"));
  }
  if (options.projection) {
    TABELLA_ASSIGN(out.projection,
                   prepare(caches.projections, options.projection, bindings, "ProjectionExpression"));
  }
  TABELLA_TRY(bindings.check_all_used());
  if (key) {
    TABELLA_ASSIGN(out.key, expression::to_key_predicates(*key));
  } else if (query) {
    TABELLA_ASSIGN(out.key, expression::from_key_conditions(*query->key_conditions));
  }
  if (out.key) TABELLA_TRY(expression::check_key_predicates(*out.key));
  return out;
}

Result<> check_select(const ReadOptions& options, Reading reading) {
  if (!options.select) return {};
  const Select select = *options.select;
  const bool projects = options.projection || options.attributes_to_get;
  if (select == Select::specific_attributes && !projects)
    return refuse(fmt::format(
        "{}Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
        reading == Reading::query ? "1 validation error detected: " : ""));
  if (select != Select::specific_attributes && projects) {
    const auto what = select == Select::all_attributes             ? "ALL_ATTRIBUTES"
                      : select == Select::all_projected_attributes ? "ALL_PROJECTED_ATTRIBUTES"
                                                                   : "only the Count";
    return refuse(fmt::format("Cannot specify the {} when choosing to get {}",
                              options.projection ? "ProjectionExpression" : "AttributesToGet", what));
  }
  if (select == Select::all_projected_attributes && !options.index)
    return refuse("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName");
  return {};
}

Result<ReadPlan> plan_read(const ReadOptions& options, ReadExpressions& expressions,
                           const Catalogue& catalogue) {
  ReadPlan plan;
  TABELLA_ASSIGN(plan.table, find_table(catalogue, options.table));
  plan.filter = std::move(expressions.filter);
  plan.projection = std::move(expressions.projection);
  if (!options.index) return plan;
  plan.index = plan.table->index(*options.index);
  if (!plan.index)
    return refuse(fmt::format("The table does not have the specified index: {}", *options.index));
  if (!plan.index->local && options.consistent)
    return refuse("Consistent reads are not supported on global secondary indexes");
  if (plan.index->status == store::Status::creating)
    return refuse(fmt::format("Cannot read from backfilling global secondary index: {}", *options.index));
  return plan;
}

Result<> check_projected(const ReadOptions& options, ReadPlan& plan) {
  if (!plan.index || plan.index->projects_all()) return {};
  if (options.select == Select::all_attributes) {
    if (!plan.index->local)
      return refuse(fmt::format(
          "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for "
          "global secondary index {} because its projection type is not ALL",
          plan.index->name()));
    plan.fetch = true;
  }
  if (!plan.projection) return {};
  std::string missing;
  for (const auto& path : *plan.projection) {
    if (is_projected(*plan.table, *plan.index, path[0].name)) continue;
    if (!missing.empty()) missing.append(", ");
    missing.append(path[0].name);
  }
  if (missing.empty()) return {};
  if (!plan.index->local)
    return refuse(fmt::format(
        "One or more parameter values were invalid: Global secondary index {} does not project [{}]",
        plan.index->name(), missing));
  plan.fetch = true;
  return {};
}

std::span<const KeyAttribute> partition_of(const ReadPlan& plan) {
  if (plan.index) return plan.index->partition;
  return {&plan.table->partition, 1};
}

std::span<const KeyAttribute> sort_of(const ReadPlan& plan) {
  if (plan.index) return plan.index->sort;
  if (!plan.table->sort) return {};
  return {&*plan.table->sort, 1};
}

Result<> check_start_key(const ReadPlan& plan, ItemView start, Reading reading) {
  constexpr const char* kBadStart = "The provided starting key is invalid";
  size_t expected = plan.table->sort ? 2 : 1;
  for (const auto keys : {partition_of(plan), sort_of(plan)})
    for (const auto& key : keys) expected += plan.table->is_key(key.name) ? 0 : 1;
  const bool brief = reading == Reading::query || plan.index;
  if (start.count() != expected)
    return refuse(brief ? std::string(kBadStart) : fmt::format("{}: {}", kBadStart, kKeyMismatch));
  if (brief) {
    for (const auto keys : {partition_of(plan), sort_of(plan)})
      for (const auto& key : keys) {
        const auto value = start.find(key.name);
        if (!value) return refuse(kBadStart);
        if (value->type() != key.type) return refuse(kKeyMismatch);
      }
  }
  const auto base = key_of(*plan.table, nullptr, start);
  if (auto fits = check_key(*plan.table, base); !fits)
    return refuse(fmt::format("{}: {}", kBadStart, fits.error().message));
  if (plan.index && !index_entry(*plan.table, *plan.index, start)) return refuse(kBadStart);
  return {};
}

std::string start_position(const ReadPlan& plan, ItemView start_key) {
  if (!plan.index) return item_key(*plan.table, start_key);
  return index_entry(*plan.table, *plan.index, start_key)->key;
}

bool takes_long(const ReadOptions& options) {
  // An expression of this length has a handful of operands.
  constexpr size_t kShort = 64;
  constexpr size_t kFew = 4;
  const auto is_long = [](const auto& text) { return text && text->size() > kShort; };
  const auto is_many = [](const auto& list) { return list && list->size() > kFew; };
  const auto has_many_values = [](const expression::LegacyCondition& c) {
    return c.values && c.values->size() > kFew;
  };
  return is_long(options.filter) || is_long(options.projection) || is_many(options.legacy_filter) ||
         is_many(options.attributes_to_get) ||
         (options.legacy_filter && std::ranges::any_of(*options.legacy_filter, has_many_values)) ||
         (options.attributes.values && options.attributes.values->size() > (64u << 10));
}

store::Page read_page(const Database& database, const ReadPlan& plan, const ReadOptions& options,
                      Cursor cursor) {
  size_t bytes_read = 0;
  return read_page(database, plan, options, std::move(cursor), bytes_read);
}

store::Page read_page(const Database& database, const ReadPlan& plan, const ReadOptions& options,
                      Cursor cursor, size_t& bytes_read) {
  store::Page page;
  page.count_only = options.select == Select::count;
  size_t bytes = 0;
  size_t fetched_bytes = 0;
  double fetched_units = 0;
  std::string last;
  bool more = false;
  const auto limit = options.limit.value_or(INT64_MAX);
  for (; cursor.valid(); cursor.next()) {
    const ItemView entry(cursor.value());
    ++page.scanned;
    bytes += entry.size();
    std::optional<std::string> fetched;
    if (plan.fetch) {
      fetched = database.get(item_key(*plan.table, entry));
      // Deleted since the walk began: it is not there, and the walk goes on.
      if (!fetched) continue;
    }
    const ItemView item = fetched ? ItemView(*fetched) : entry;
    if (fetched) {
      fetched_units += read_units(item.size(), options.consistent);
      fetched_bytes += item.size();
    }
    if (!plan.filter || expression::evaluate(*plan.filter, &item)) {
      ++page.count;
      if (!page.count_only)
        page.items.push_back(plan.projection ? expression::project(item, *plan.projection)
                                             : item::Item(std::string(item.bytes())));
    }
    if (page.scanned >= limit || bytes_read + bytes + fetched_bytes >= kPageBytes) {
      last = cursor.value();
      more = true;
      break;
    }
  }
  bytes_read += bytes + fetched_bytes;
  if (more) page.last_key = key_of(*plan.table, plan.index, ItemView(last));
  page.capacity = account(plan.table->name(), options.capacity);
  if (page.capacity) {
    const double units = read_units(bytes, options.consistent);
    page.capacity->table_units = plan.index ? fetched_units : units;
    if (plan.index) charge_index(*page.capacity, *plan.index, units);
  }
  return page;
}

}  // namespace tabella::engine

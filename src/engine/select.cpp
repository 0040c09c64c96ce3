#include "engine/select.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "engine/capacity.h"
#include "engine/item_keys.h"
#include "engine/key_range.h"
#include "engine/keys.h"
#include "engine/prepare.h"
#include "engine/read_page.h"
#include "expression/evaluate.h"
#include "item/attribute_json.h"

namespace tabella::engine {

using expression::Comparator;
using expression::Condition;
using expression::KeyPredicate;
using expression::Operand;
using expression::Statement;
using item::ItemView;
using store::ExecuteStatementRequest;
using store::ExecuteStatementResult;
using store::refuse;
using store::Result;

namespace {

constexpr size_t kMaxPartitions = 50;

// --- what WHERE says of the keys

bool is_about(const Condition& test, std::string_view attribute) {
  const auto named = [&](const Operand& o) {
    return o.kind == Operand::Kind::path && o.path.size() == 1 && o.path[0].name == attribute;
  };
  return !test.operands.empty() && std::ranges::any_of(test.operands, named) &&
         std::ranges::count_if(test.operands, [](const Operand& o) {
           return o.kind == Operand::Kind::value;
         }) == static_cast<ptrdiff_t>(test.operands.size()) - 1;
}

// The conjuncts of `where` that compare the attribute with values.
void collect_tests(const Condition& where, std::string_view attribute, std::vector<const Condition*>& tests) {
  if (where.kind == Condition::Kind::all_of)
    for (const auto& child : where.children) collect_tests(child, attribute, tests);
  else if (is_about(where, attribute))
    tests.push_back(&where);
}

std::vector<item::ValueView> values_of(const Condition& test) {
  std::vector<item::ValueView> values;
  for (const auto& operand : test.operands)
    if (operand.kind == Operand::Kind::value) values.push_back(operand.value);
  return values;
}

bool all_of_type(const std::vector<item::ValueView>& values, item::Type type) {
  return std::ranges::all_of(values, [&](item::ValueView v) { return v.type() == type; });
}

Result<> check_key_types(const std::vector<item::ValueView>& values, const KeyAttribute& key) {
  if (all_of_type(values, key.type)) return {};
  return refuse("Key attribute's data type should match its data type in table's schema");
}

// The values that WHERE allows the partition attribute: by equality or IN.
Result<std::optional<std::vector<item::ValueView>>> partition_values(const Condition& where,
                                                                     const KeyAttribute& key) {
  std::vector<const Condition*> tests;
  collect_tests(where, key.name, tests);
  for (const auto* test : tests) {
    const bool equality = test->kind == Condition::Kind::comparison && test->comparator == Comparator::equal;
    const bool in = test->kind == Condition::Kind::in && test->operands[0].kind == Operand::Kind::path;
    if (!equality && !in) continue;
    auto values = values_of(*test);
    TABELLA_TRY(check_key_types(values, key));
    if (values.size() > kMaxPartitions)
      return refuse(fmt::format("IN on a partition key takes at most {} values", kMaxPartitions));
    return std::optional(std::move(values));
  }
  return std::nullopt;
}

// A test of the sort attribute that bounds the range; the whole WHERE is evaluated on each item anyway.
Result<std::optional<KeyPredicate>> sort_predicate(const Condition& where, const KeyAttribute& key) {
  std::vector<const Condition*> tests;
  collect_tests(where, key.name, tests);
  for (const auto* test : tests) {
    if (test->kind == Condition::Kind::in || test->kind == Condition::Kind::negation) continue;
    if (test->kind == Condition::Kind::function && test->function != "begins_with") continue;
    TABELLA_TRY(check_key_types(values_of(*test), key));
    auto predicates = expression::to_key_predicates(*test);
    if (predicates && predicates->size() == 1 && (*predicates)[0].op != KeyPredicate::Operator::unindexable)
      return std::optional(std::move((*predicates)[0]));
  }
  return std::nullopt;
}

// A range of keys, and the partition it is in.
struct PartitionRange {
  item::ValueView partition;
  KeyRange range;
};

using Ranges = std::vector<PartitionRange>;

// The ranges in which all that one branch of WHERE allows must be.
Result<std::optional<Ranges>> ranges_of_branch(const ReadPlan& plan, const Condition& branch) {
  const auto partition = partition_of(plan)[0];
  const auto sort = sort_of(plan);
  TABELLA_ASSIGN(const auto values, partition_values(branch, partition));
  if (!values) return std::nullopt;
  std::optional<KeyPredicate> on_sort;
  if (!sort.empty()) {
    TABELLA_ASSIGN(on_sort, sort_predicate(branch, sort[0]));
  }
  Ranges ranges;
  for (const auto& value : *values) {
    std::vector<KeyPredicate> predicates = {{.attribute = partition.name, .values = {value}}};
    if (on_sort) predicates.push_back(*on_sort);
    ranges.push_back({value, range_of(predicates, plan)});
  }
  return std::optional(std::move(ranges));
}

// Whether a branch says what the sort key is not: AWS takes the union of such branches.
bool excludes(const Condition& branch, std::string_view attribute) {
  if (branch.kind == Condition::Kind::negation)
    return std::ranges::any_of(branch.children,
                               [&](const auto& child) { return is_about(child, attribute); });
  if (branch.kind == Condition::Kind::comparison)
    return branch.comparator == Comparator::not_equal && is_about(branch, attribute);
  return std::ranges::any_of(branch.children, [&](const auto& child) { return excludes(child, attribute); });
}

// Ranges that overlap become one, so that nothing comes twice.
Result<> join_overlaps(Ranges& ranges, const ReadPlan& plan, const Condition& where) {
  const auto sort = sort_of(plan);
  std::ranges::sort(ranges, {}, [](const PartitionRange& r) { return r.range.from; });
  Ranges joined;
  for (auto& range : ranges) {
    if (joined.empty() || range.range.from >= joined.back().range.to) {
      joined.push_back(std::move(range));
      continue;
    }
    const bool same =
        range.range.from == joined.back().range.from && range.range.to == joined.back().range.to;
    const bool of_branches = where.kind == Condition::Kind::any_of && !sort.empty();
    if (of_branches && !same && !excludes(where, sort[0].name))
      return refuse("Overlapping conditions with range keys are not supported in where clause");
    joined.back().range.to = std::max(joined.back().range.to, range.range.to);
  }
  ranges = std::move(joined);
  return {};
}

// The ranges of keys in which all that WHERE allows must be; nothing if it does not name the partitions.
Result<std::optional<Ranges>> ranges_of(const ReadPlan& plan, const Statement& statement) {
  if (!statement.where) return std::nullopt;
  const auto& where = *statement.where;
  Ranges ranges;
  const auto add = [&](const Condition& branch) -> Result<bool> {
    TABELLA_ASSIGN(auto more, ranges_of_branch(plan, branch));
    if (more) std::ranges::move(*more, std::back_inserter(ranges));
    return more.has_value();
  };
  if (where.kind == Condition::Kind::any_of) {
    for (const auto& branch : where.children) {
      TABELLA_ASSIGN(const bool keyed, add(branch));
      if (!keyed) return std::nullopt;
    }
  } else {
    TABELLA_ASSIGN(const bool keyed, add(where));
    if (!keyed) return std::nullopt;
  }
  TABELLA_TRY(join_overlaps(ranges, plan, where));
  return std::optional(std::move(ranges));
}

// --- where a page ended

uint64_t statement_fingerprint(const store::Statement& statement) {
  std::string all = statement.text;
  if (statement.parameters)
    for (const auto& parameter : *statement.parameters) put_sized(all, parameter);
  return keys::hash64(all);
}

// The statement's fingerprint, and the key as JSON: what comes back may be anything.
std::string next_token(const store::Statement& statement, const item::Item& last) {
  std::string bytes;
  put_u64(bytes, statement_fingerprint(statement));
  item::append_item_json(bytes, last);
  return to_base64(bytes);
}

Result<item::Item> start_of(const std::string& token, const store::Statement& statement) {
  const auto bad = [] { return refuse("Invalid NextToken"); };
  const auto bytes = from_base64(token);
  if (!bytes || bytes->size() <= 8) return bad();
  JsonDocument document;
  const auto json = document.parse(std::string_view(*bytes).substr(8));
  if (!json || json->kind() != JsonValue::Kind::object) return bad();
  auto key = item::read_item(*json);
  if (!key) return bad();
  if (get_u64(*bytes) != statement_fingerprint(statement)) return refuse("NextToken does not match request");
  return std::move(*key);
}

// --- the three ways

Result<ReadPlan> plan_select(const Statement& statement, bool consistent, const Catalogue& catalogue) {
  ReadPlan plan;
  TABELLA_ASSIGN(plan.table, find_table(catalogue, statement.table));
  plan.filter = statement.where;
  if (!statement.index) return plan;
  plan.index = plan.table->index(*statement.index);
  if (!plan.index) return refuse("The table does not have the specified index");
  if (!plan.index->local && consistent)
    return refuse("Strongly consistent read is not supported on Global Secondary Indexes");
  if (plan.index->partition.size() > 1 || plan.index->sort.size() > 1)
    return refuse(
        "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute "
        "RANGE "
        "keys.");
  if (plan.index->status == store::Status::creating)
    return refuse(fmt::format("Cannot read from backfilling global secondary index: {}", *statement.index));
  return plan;
}

// An index that does not carry all the columns has them fetched, or refuses.
Result<> check_columns(const Statement& statement, const store::ReadOptions& options, ReadPlan& plan) {
  if (statement.columns.empty()) return {};
  expression::Projection paths;
  for (const auto& column : statement.columns) paths.push_back(column.path);
  plan.projection = std::move(paths);
  TABELLA_TRY(check_projected(options, plan));
  plan.projection.reset();
  return {};
}

// Which way the partitions come, and the items in each.
struct Direction {
  std::optional<bool> partitions_descending;  // nothing: in whatever order
  bool items_descending = false;
};

Result<Direction> direction_of(const Statement& statement, const ReadPlan& plan, bool by_partition) {
  Direction direction;
  if (statement.order_by.empty()) return direction;
  if (!by_partition)
    return refuse(
        "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.");
  std::optional<bool> items;
  for (const auto& [attribute, descending] : statement.order_by) {
    const auto named = [&](const KeyAttribute& key) { return key.name == attribute; };
    if (std::ranges::any_of(partition_of(plan), named))
      direction.partitions_descending = descending;
    else if (std::ranges::any_of(sort_of(plan), named))
      items = descending;
    else
      return refuse(
          fmt::format("Variable reference {} in ORDER BY clause must be part of the primary key", attribute));
  }
  direction.items_descending = items.value_or(direction.partitions_descending.value_or(false));
  return direction;
}

void put_in_order(Ranges& ranges, const Direction& direction) {
  std::ranges::sort(ranges, [&](const PartitionRange& a, const PartitionRange& b) {
    const auto& down = direction.partitions_descending;
    if (const int order = down ? item::compare(a.partition, b.partition).value_or(0) : 0; order != 0)
      return *down ? order > 0 : order < 0;
    return direction.items_descending ? a.range.from > b.range.from : a.range.from < b.range.from;
  });
}

// A filter on what an index does not carry would be wrong about every item.
Result<> check_filter_projected(const Statement& statement, const ReadPlan& plan) {
  if (!plan.index || plan.index->projects_all() || statement.where->kind == Condition::Kind::any_of)
    return {};
  std::vector<expression::Path> paths;
  collect_paths(*statement.where, paths);
  std::string missing;
  for (const auto& path : paths) {
    if (is_projected(*plan.table, *plan.index, path[0].name)) continue;
    missing.append(missing.empty() ? "" : ", ").append(path[0].name);
  }
  if (missing.empty()) return {};
  return store::wrong(fmt::format("Secondary index {} does not project one or more filter attributes: [{}]",
                                  plan.index->name(), missing));
}

ExecuteStatementResult get(const PreparedStatement& statement, const ExecuteStatementRequest& request,
                           const TableSchema& table, const item::Item& key, ItemCache& items) {
  ExecuteStatementResult result;
  auto stored = items.get(item_key(table, key));
  result.capacity = account(table.name(), request.capacity);
  if (result.capacity)
    result.capacity->table_units =
        read_units(stored ? ItemView(*stored).size() : 0, request.statement.consistent);
  if (!stored) return result;
  item::Item item(std::move(*stored));
  const auto view = item.view();
  if (expression::evaluate(*statement.tree().where, &view))
    result.items.push_back(shown(statement.tree(), std::move(item)));
  return result;
}

// One range after the other until the page is full.
store::Page read_ranges(const Database& database, const ReadPlan& plan, store::ReadOptions options,
                        Ranges ranges, bool keyed, bool backward, const std::optional<std::string>& after) {
  const auto direction = backward ? Database::Direction::backward : Database::Direction::forward;
  const auto limit = options.limit;
  store::Page all;
  Accounts accounts(store::CapacityKind::plain);
  bool begun = !after;
  size_t bytes_read = 0;
  for (auto& [partition, range] : ranges) {
    auto& [from, to] = range;
    if (!begun) {
      if (*after < from || *after >= to) continue;  // read before
      begun = true;
      (backward ? to : from) = backward ? *after : *after + '\0';
    }
    if (limit) options.limit = *limit - all.scanned;
    if (limit && *options.limit <= 0) break;
    auto page = read_page(database, plan, options, database.range(from, to, direction, keyed), bytes_read);
    std::ranges::move(page.items, std::back_inserter(all.items));
    all.scanned += page.scanned;
    all.last_key = std::move(page.last_key);
    if (page.capacity) accounts.add(*page.capacity);
    if (all.last_key) break;
  }
  if (!accounts.all.empty()) all.capacity = std::move(accounts.all[0]);
  return all;
}

}  // namespace

Result<ExecuteStatementResult> select(const PreparedStatement& statement,
                                      const ExecuteStatementRequest& request, const Catalogue& catalogue,
                                      const Database& database, ItemCache& items) {
  const auto& tree = statement.tree();
  TABELLA_ASSIGN(auto plan, plan_select(tree, request.statement.consistent, catalogue));
  std::optional<item::Item> start;
  if (request.next_token) {
    TABELLA_ASSIGN(start, start_of(*request.next_token, request.statement));
    if (!check_start_key(plan, *start, Reading::scan)) return refuse("Invalid NextToken");
  }
  if (!plan.index)
    if (const auto key = key_in_where(*plan.table, tree); key && !start) {
      TABELLA_TRY(check_key(*plan.table, *key));
      TABELLA_TRY(direction_of(tree, plan, true));
      return get(statement, request, *plan.table, *key, items);
    }
  store::ReadOptions options{.table = tree.table,
                             .index = tree.index,
                             .limit = request.limit,
                             .consistent = request.statement.consistent,
                             .capacity = request.capacity};
  TABELLA_ASSIGN(auto ranges, ranges_of(plan, tree));
  TABELLA_TRY(check_columns(tree, options, plan));
  const bool keyed = ranges.has_value();
  if (keyed) TABELLA_TRY(check_filter_projected(tree, plan));
  TABELLA_ASSIGN(const auto direction, direction_of(tree, plan, keyed));
  if (keyed) put_in_order(*ranges, direction);
  if (!keyed) {
    const auto prefix = plan.index ? keys::entries_of(plan.index->id) : keys::items_of(plan.table->id);
    ranges = {{{}, {prefix, keys::end_of(prefix)}}};
  }
  const auto after = start ? std::optional(start_position(plan, *start)) : std::nullopt;
  auto page =
      read_ranges(database, plan, options, std::move(*ranges), keyed, direction.items_descending, after);

  ExecuteStatementResult result;
  for (auto& item : page.items) result.items.push_back(shown(tree, std::move(item)));
  result.capacity = page.capacity ? std::move(page.capacity) : account(plan.table->name(), request.capacity);
  if (page.last_key) {
    result.next_token = next_token(request.statement, *page.last_key);
    result.last_key = std::move(page.last_key);
  }
  return result;
}

}  // namespace tabella::engine

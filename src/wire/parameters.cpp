#include "wire/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tabella::wire {

using store::CapacityDetail;
using store::LegacyCondition;
using store::ReturnValues;
using store::Select;

namespace {

// In AWS's order, which is that of its error messages.
constexpr std::array<protocol::Name<std::string_view>, 13> kComparisons = {{{"IN", "IN"},
                                                                            {"NULL", "NULL"},
                                                                            {"BETWEEN", "BETWEEN"},
                                                                            {"LT", "LT"},
                                                                            {"NOT_CONTAINS", "NOT_CONTAINS"},
                                                                            {"EQ", "EQ"},
                                                                            {"GT", "GT"},
                                                                            {"NOT_NULL", "NOT_NULL"},
                                                                            {"NE", "NE"},
                                                                            {"LE", "LE"},
                                                                            {"BEGINS_WITH", "BEGINS_WITH"},
                                                                            {"GE", "GE"},
                                                                            {"CONTAINS", "CONTAINS"}}};

constexpr size_t kMaxName = 255;

std::optional<std::string> read_comparison(const Reader& reader) {
  const auto op = reader.choice<std::string_view>("ComparisonOperator", kComparisons);
  return op ? std::optional<std::string>(*op) : std::nullopt;
}

// The flat form; a faulty value is noted and left out.
std::optional<std::string> read_flat(JsonValue json, Problems& problems) {
  std::string flat;
  auto read = item::read_value(flat, json);
  if (read) return flat;
  problems.add(std::move(read).error());
  return std::nullopt;
}

std::optional<std::vector<std::string>> read_value_list(const Reader& reader) {
  const auto list = reader.list("AttributeValueList");
  if (!list) return std::nullopt;
  std::vector<std::string> values;
  for (JsonElements e(*list); e.next();)
    if (auto flat = read_flat(e.value(), reader.problems())) values.push_back(std::move(*flat));
  return values;
}

std::optional<std::vector<LegacyCondition>> read_expected(const Reader& reader) {
  const auto map = reader.map("Expected", "ExpectedAttributeValue");
  if (!map) return std::nullopt;
  std::vector<LegacyCondition> conditions;
  for (JsonElements e(*map); e.next();) {
    if (!is_structure(e.value(), "ExpectedAttributeValue", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(), fmt::format("expected.{}.member", e.key()));
    LegacyCondition condition{.attribute = std::string(e.key())};
    condition.comparison = read_comparison(entry);
    condition.values = read_value_list(entry);
    condition.exists = entry.boolean("Exists");
    if (const auto value = entry.structure("Value", "AttributeValue"))
      condition.value = read_flat(*value, reader.problems());
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

// AWS says that the starting key is invalid, except where the fault is in a number or a set.
std::optional<item::Item> read_start_key(const Reader& reader) {
  const auto json = reader.map("ExclusiveStartKey", "AttributeValue");
  if (!json) return std::nullopt;
  auto key = item::read_item(*json);
  if (key) return std::move(*key);
  auto fault = std::move(key).error();
  constexpr std::array<std::string_view, 5> kBare = {"contains duplicates", "number set", "numeric value",
                                                     "significant digits", "number with magnitude"};
  const bool bare =
      std::ranges::any_of(kBare, [&](auto words) { return fault.message.find(words) != std::string::npos; });
  if (fault.kind == item::JsonFault::Kind::validation && !bare)
    fault.message = "The provided starting key is invalid: " + fault.message;
  reader.problems().add(std::move(fault));
  return item::Item();
}

}  // namespace

void check_table_name(std::string_view name, Problems& problems) {
  const auto alone = [&](std::string_view constraint) {
    problems.first(
        fmt::format("1 validation error detected: Value '{}' at 'tableName' failed to satisfy constraint: {}",
                    name, constraint));
  };
  if (store::is_table_arn(name)) name = store::bare_table_name(name);
  if (name.empty())
    alone("Member must have length greater than or equal to 1");
  else if (!matches_name_pattern(name))
    alone("Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+");
  else if (name.size() > kMaxName)
    alone("Member must have length less than or equal to 255");
}

std::string read_table_name(const Reader& reader) {
  const auto name = reader.string("TableName");
  if (name)
    check_table_name(*name, reader.problems());
  else
    reader.problems().first(
        "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must "
        "not be null");
  return name.value_or("");
}

std::string read_required_table_name(const Reader& reader) {
  const auto name = reader.string("TableName");
  if (!name)
    reader.problems().first("The parameter 'TableName' is required but was not present in the request");
  else if (const auto bare = store::bare_table_name(*name); bare.size() < 3 || bare.size() > kMaxName)
    reader.problems().first("TableName must be at least 3 characters long and at most 255 characters long");
  else
    reader.pattern("TableName", std::string(bare));
  return name.value_or("");
}

Result<std::string> read_table_only(JsonValue body) {
  Problems problems;
  auto name = read_required_table_name(Reader(body, problems));
  TABELLA_TRY(problems.result());
  return name;
}

CapacityDetail read_capacity_detail(const Reader& reader) {
  return reader.choice<CapacityDetail>("ReturnConsumedCapacity", protocol::kCapacityDetails)
      .value_or(CapacityDetail::none);
}

bool read_collection_metrics(const Reader& reader) {
  return reader.choice<bool>("ReturnItemCollectionMetrics", protocol::kCollectionMetrics).value_or(false);
}

ReturnValues read_return_values(const Reader& reader) {
  return reader.choice<ReturnValues>("ReturnValues", protocol::kReturnValues).value_or(ReturnValues::none);
}

bool read_return_on_failure(const Reader& reader) {
  return reader.choice<bool>("ReturnValuesOnConditionCheckFailure", protocol::kReturnOnFailure)
      .value_or(false);
}

std::optional<store::Combine> read_conditional_operator(const Reader& reader) {
  return reader.choice<store::Combine>("ConditionalOperator", protocol::kCombines);
}

store::ExpressionAttributes read_expression_attributes(const Reader& reader) {
  store::ExpressionAttributes out;
  if (const auto names = reader.map("ExpressionAttributeNames", "java.lang.String")) {
    out.names.emplace();
    for (JsonElements e(*names); e.next();) {
      if (e.value().kind() == JsonValue::Kind::string)
        out.names->emplace_back(e.key(), e.value().string());
      else
        reader.problems().serialization(not_a("String", e.value()));
    }
  }
  if (const auto values = reader.map("ExpressionAttributeValues", "AttributeValue")) {
    item::ItemBuilder builder;
    std::string flat;
    for (JsonElements e(*values); e.next();) {
      flat.clear();
      if (auto read = item::read_value(flat, e.value()); read) {
        builder.add(e.key(), item::ValueView(flat));
      } else if (read.error().kind == item::JsonFault::Kind::validation) {
        reader.problems().late(fmt::format("ExpressionAttributeValues contains invalid value: {} for key {}",
                                           read.error().message, e.key()));
      } else {
        reader.problems().add(std::move(read).error());
      }
    }
    out.values = builder.finish();
  }
  return out;
}

std::optional<std::vector<std::string>> read_attributes_to_get(const Reader& reader) {
  auto names = reader.strings("AttributesToGet");
  if (!names) return names;
  if (names->empty())
    reader.violation("AttributesToGet", "[]", "Member must have length greater than or equal to 1");
  if (names->size() > 255)
    reader.violation("AttributesToGet", "[...]", "Member must have length less than or equal to 255");
  for (const auto& name : *names) {
    if (name.empty())
      reader.problems().late("One or more parameter values were invalid: Empty attribute name");
    if (name.size() > 65535)
      reader.problems().late(
          "One or more parameter values were invalid: Attribute name is too large, must be less than 65536 "
          "bytes");
  }
  return names;
}

std::optional<std::vector<LegacyCondition>> read_conditions(const Reader& reader, std::string_view name) {
  const auto map = reader.map(name, "Condition");
  if (!map) return std::nullopt;
  std::vector<LegacyCondition> conditions;
  for (JsonElements e(*map); e.next();) {
    if (!is_structure(e.value(), "Condition", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(),
                       fmt::format("{}.{}.member", reader.path_of(name), e.key()));
    LegacyCondition condition{.attribute = std::string(e.key())};
    if (const auto given = entry.string("ComparisonOperator"))
      condition.comparison = read_comparison(entry);
    else
      entry.missing("ComparisonOperator");
    condition.values = read_value_list(entry);
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

std::optional<std::string> read_token(const Reader& reader) {
  auto token = reader.string("ClientRequestToken");
  reader.length("ClientRequestToken", token, 1, 36);
  return token;
}

store::WriteOptions read_write_options(const Reader& reader) {
  store::WriteOptions options;
  options.capacity = read_capacity_detail(reader);
  options.return_values = read_return_values(reader);
  options.collection_metrics = read_collection_metrics(reader);
  options.conditional_operator = read_conditional_operator(reader);
  options.return_old_on_failure = read_return_on_failure(reader);
  options.expected = read_expected(reader);
  options.condition = reader.string("ConditionExpression");
  options.attributes = read_expression_attributes(reader);
  return options;
}

store::ReadOptions read_read_options(const Reader& reader, std::string_view filter_name) {
  store::ReadOptions options;
  options.table = read_table_name(reader);
  options.capacity = read_capacity_detail(reader);
  options.select = reader.choice<Select>("Select", protocol::kSelects);
  options.index = reader.string("IndexName");
  reader.pattern("IndexName", options.index);
  reader.length("IndexName", options.index, 3, kMaxName);
  options.limit = reader.integer("Limit");
  options.attributes_to_get = read_attributes_to_get(reader);
  options.conditional_operator = read_conditional_operator(reader);
  options.legacy_filter = read_conditions(reader, filter_name);
  options.start_key = read_start_key(reader);
  options.consistent = reader.boolean("ConsistentRead").value_or(false);
  options.filter = reader.string("FilterExpression");
  options.projection = reader.string("ProjectionExpression");
  options.attributes = read_expression_attributes(reader);
  return options;
}

namespace {

void write_units(JsonObjectWriter& json, double units, store::CapacityKind kind) {
  json.number("CapacityUnits", units);
  if (kind == store::CapacityKind::read) json.number("ReadCapacityUnits", units);
  if (kind == store::CapacityKind::write) json.number("WriteCapacityUnits", units);
}

void append_units(std::string& out, double units, store::CapacityKind kind) {
  JsonObjectWriter json(out);
  write_units(json, units, kind);
}

void append_index_units(JsonObjectWriter& json, std::string_view name,
                        const std::map<std::string, double>& units, store::CapacityKind kind) {
  if (units.empty()) return;
  JsonObjectWriter indexes(json.key(name));
  for (const auto& [index, value] : units) append_units(indexes.key(index), value, kind);
}

}  // namespace

void append_capacity(std::string& out, const store::ConsumedCapacity& capacity) {
  JsonObjectWriter json(out);
  json.string("TableName", capacity.table);
  write_units(json, capacity.total(), capacity.kind);
  if (capacity.detail != CapacityDetail::indexes) return;
  append_units(json.key("Table"), capacity.table_units, capacity.kind);
  append_index_units(json, "GlobalSecondaryIndexes", capacity.global_indexes, capacity.kind);
  append_index_units(json, "LocalSecondaryIndexes", capacity.local_indexes, capacity.kind);
}

void append_responses(std::string& out, const std::vector<std::optional<store::Item>>& items) {
  JsonArrayWriter array(out);
  for (const auto& item : items) {
    JsonObjectWriter json(array.element());
    if (item) item::append_item_json(json.key("Item"), *item);
  }
}

void append_capacities(JsonObjectWriter& json, const std::vector<store::ConsumedCapacity>& capacities) {
  JsonArrayWriter array(json.key("ConsumedCapacity"));
  for (const auto& capacity : capacities) append_capacity(array.element(), capacity);
}

void append_table_metrics(
    JsonObjectWriter& json,
    const std::vector<std::pair<std::string, std::vector<store::ItemCollectionMetrics>>>& tables) {
  if (tables.empty()) return;
  JsonObjectWriter metrics(json.key("ItemCollectionMetrics"));
  for (const auto& [table, list] : tables) {
    JsonArrayWriter array(metrics.key(table));
    for (const auto& one : list) append_metrics(array.element(), one);
  }
}

void append_metrics(std::string& out, const store::ItemCollectionMetrics& metrics) {
  JsonObjectWriter json(out);
  item::append_item_json(json.key("ItemCollectionKey"), metrics.key);
  const double low = std::floor(metrics.size_gb);
  fmt::format_to(std::back_inserter(json.key("SizeEstimateRangeGB")), "[{:.1f},{:.1f}]", low, low + 1);
}

void append_write_result(std::string& out, const store::WriteResult& result) {
  JsonObjectWriter json(out);
  if (result.attributes) item::append_item_json(json.key("Attributes"), *result.attributes);
  if (result.capacity) append_capacity(json.key("ConsumedCapacity"), *result.capacity);
  if (result.collection_metrics)
    append_metrics(json.key("ItemCollectionMetrics"), *result.collection_metrics);
}

void append_page(std::string& out, const store::Page& page) {
  size_t bytes = 256;
  for (const auto& item : page.items) bytes += item.bytes().size() * 3 / 2 + 64;
  out.reserve(bytes);  // one allocation for a page, or nearly
  JsonObjectWriter json(out);
  json.number("Count", page.count);
  if (!page.count_only) {
    JsonArrayWriter items(json.key("Items"));
    for (const auto& item : page.items) item::append_item_json(items.element(), item);
  }
  if (page.last_key) item::append_item_json(json.key("LastEvaluatedKey"), *page.last_key);
  json.number("ScannedCount", page.scanned);
  if (page.capacity) append_capacity(json.key("ConsumedCapacity"), *page.capacity);
}

}  // namespace tabella::wire

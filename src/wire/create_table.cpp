#include <fmt/format.h>

#include "wire/answer.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

std::string read_new_name(const Reader& reader) {
  const auto name = reader.string("TableName");
  if (!name) {
    reader.problems().first("The parameter 'TableName' is required but was not present in the request");
    return {};
  }
  // Its faults stand alone, before those of the other members.
  Problems own;
  const Reader alone(JsonValue{}, own);
  alone.pattern("TableName", name);
  alone.length("TableName", name, 3, 255);
  if (const auto checked = own.result(); !checked) reader.problems().first(*checked.error().message);
  return *name;
}

std::optional<std::vector<store::IndexDefinition>> read_indexes(const Reader& reader, std::string_view member,
                                                                std::string_view type, bool global) {
  const auto list = reader.list(member);
  if (!list) return std::nullopt;
  std::vector<store::IndexDefinition> indexes;
  size_t number = 0;
  for (JsonElements e(*list); e.next();) {
    ++number;
    if (!is_structure(e.value(), type, reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(),
                       fmt::format("{}.{}.member", reader.path_of(member), number));
    indexes.push_back(read_index(entry, global));
  }
  return indexes;
}

std::optional<store::StreamView> read_new_stream(const Reader& reader) {
  const auto stream = read_stream(reader);
  if (!stream) return std::nullopt;
  if (stream->enabled && !stream->view)
    reader.problems().late(
        "One or more parameter values were invalid: Table is being created with a stream enabled, "
        "UpdateViewType is required");
  if (!stream->enabled && stream->view)
    reader.problems().late(
        "One or more parameter values were invalid: Table is being created with a stream disabled, "
        "UpdateViewType should not be specified");
  return stream->view;
}

Result<store::CreateTableRequest> read_create_table(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  reader.unsupported(
      {"ResourcePolicy", "VectorIndexes", "GlobalTableSourceArn", "GlobalTableSettingsReplicationMode"});
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = read_new_name(reader);
  d.billing_mode = read_billing_mode(reader);
  d.throughput = read_throughput(reader);
  d.key_schema = read_key_schema(reader, 2);
  d.attributes = read_attribute_definitions(reader, true);
  d.local_indexes = read_indexes(reader, "LocalSecondaryIndexes", "LocalSecondaryIndex", false);
  d.global_indexes = read_indexes(reader, "GlobalSecondaryIndexes", "GlobalSecondaryIndex", true);
  d.on_demand_throughput = read_on_demand(reader);
  d.warm_throughput = read_warm(reader);
  d.table_class = read_table_class(reader);
  d.encryption = read_encryption(reader);
  d.deletion_protection = reader.boolean("DeletionProtectionEnabled").value_or(false);
  d.stream = read_new_stream(reader);
  request.tags = read_tags(reader);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(create_table) {
  return answer(read_create_table(body), context, &store::Store::create_table, out, append_changed_table);
}

}  // namespace tabella::wire

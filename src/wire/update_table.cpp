#include <fmt/format.h>

#include "wire/answer.h"
#include "wire/parameters.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

std::string read_index_name(const Reader& reader) {
  const auto name = reader.string("IndexName");
  reader.require("IndexName", name);
  reader.pattern("IndexName", name);
  reader.length("IndexName", name, 3, 255);
  return name.value_or("");
}

store::GlobalIndexUpdate read_index_update(const Reader& entry) {
  store::GlobalIndexUpdate update;
  const auto inner = [&](std::string_view member, std::string_view type) -> std::optional<Reader> {
    const auto json = entry.structure(member, type);
    if (!json) return std::nullopt;
    return Reader(*json, entry.problems(), entry.path_of(member));
  };
  if (const auto reader = inner("Update", "UpdateGlobalSecondaryIndexAction")) {
    store::GlobalIndexUpdate::Update change{.name = read_index_name(*reader)};
    change.throughput = read_throughput(*reader);
    change.on_demand_throughput = read_on_demand(*reader);
    change.warm_throughput = read_warm(*reader);
    if (!change.on_demand_throughput && !change.warm_throughput)
      reader->require("ProvisionedThroughput", change.throughput);
    update.update = std::move(change);
  }
  if (const auto reader = inner("Create", "CreateGlobalSecondaryIndexAction"))
    update.create = read_index(*reader, true);
  if (const auto reader = inner("Delete", "DeleteGlobalSecondaryIndexAction"))
    update.remove = read_index_name(*reader);
  return update;
}

Result<store::UpdateTableRequest> read_update_table(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  reader.unsupported({"ReplicaUpdates", "MultiRegionConsistency", "GlobalTableWitnessUpdates",
                      "GlobalTableSettingsReplicationMode", "DisassociationProtectionEnabled",
                      "VectorIndexUpdates"});
  store::UpdateTableRequest request;
  request.table = read_required_table_name(reader);
  request.throughput = read_throughput(reader);
  if (const auto list = reader.list("GlobalSecondaryIndexUpdates")) {
    size_t number = 0;
    for (JsonElements e(*list); e.next();) {
      ++number;
      if (!is_structure(e.value(), "GlobalSecondaryIndexUpdate", problems)) continue;
      request.global_index_updates.push_back(read_index_update(
          Reader(e.value(), problems, fmt::format("globalSecondaryIndexUpdates.{}.member", number))));
    }
  }
  request.attributes = read_attribute_definitions(reader, false);
  request.billing_mode = read_billing_mode(reader);
  request.on_demand_throughput = read_on_demand(reader);
  request.warm_throughput = read_warm(reader);
  request.table_class = read_table_class(reader);
  request.encryption = read_encryption(reader);
  request.deletion_protection = reader.boolean("DeletionProtectionEnabled");
  request.stream = read_stream(reader);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(update_table) {
  return answer(read_update_table(body), context, &store::Store::update_table, out, append_changed_table);
}

}  // namespace tabella::wire

#include <algorithm>

#include <fmt/format.h>

#include "engine/change.h"
#include "engine/describe_table.h"
#include "engine/engine.h"
#include "engine/stream_record.h"
#include "engine/table_checks.h"

namespace tabella::engine {

using store::BillingMode;
using store::ErrorCode;
using store::GlobalIndexUpdate;
using store::refuse;
using store::Result;
using store::Status;
using store::TableDescription;
using store::Throughput;
using store::UpdateTableRequest;
using store::wrong;

namespace {

std::string index_of(const GlobalIndexUpdate& update) {
  if (update.create) return update.create->name;
  return update.remove ? *update.remove : update.update->name;
}

Result<> check_stream_request(const UpdateTableRequest& r) {
  if (!r.stream) return {};
  if (r.stream->enabled && !r.stream->view)
    return wrong("If stream is being enabled then UpdateViewType is required");
  if (!r.stream->enabled && r.stream->view)
    return wrong("If stream is being disabled, then UpdateViewType must not be specified");
  if (r.throughput) return wrong("You cannot modify stream status while updating table IOPS");
  if (std::ranges::any_of(r.global_index_updates, [](const auto& u) { return u.create || u.remove; }))
    return wrong("You cannot create or delete index while changing stream status");
  return {};
}

Result<> check_table_update(const UpdateTableRequest& r) {
  const bool nothing = r.global_index_updates.empty() && !r.billing_mode && !r.throughput &&
                       !r.on_demand_throughput && !r.warm_throughput && !r.table_class && !r.encryption &&
                       !r.stream && !r.deletion_protection;
  if (nothing)
    return refuse(
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
        "GlobalSecondaryIndexUpdates or "
        "SSESpecification or ReplicaUpdates is required for UpdateTable");
  if (r.billing_mode == BillingMode::provisioned && !r.throughput)
    return wrong("ProvisionedThroughput must be specified when BillingMode is PROVISIONED");
  TABELLA_TRY(check_throughput(r.throughput));
  TABELLA_TRY(check_stream_request(r));
  std::set<std::string> seen;
  for (const auto& update : r.global_index_updates) {
    const int actions = static_cast<int>(update.create.has_value()) +
                        static_cast<int>(update.remove.has_value()) +
                        static_cast<int>(update.update.has_value());
    if (actions == 0)
      return wrong(
          "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
          "GlobalSecondaryIndexUpdate.Delete must not be null");
    if (actions > 1)
      return wrong(
          "Only one of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
          "GlobalSecondaryIndexUpdate.Delete may be given in one element");
    if (update.create) TABELLA_TRY(check_index_names(*update.create));
    if (const auto name = index_of(update); !seen.insert(name).second)
      return wrong(fmt::format(
          "Only one global secondary index update per index is allowed simultaneously. Index: {}", name));
  }
  return {};
}

Result<> check_new_throughput(const TableSchema& table, const UpdateTableRequest& r) {
  const auto& d = table.definition;
  const bool on_demand = r.billing_mode.value_or(d.billing_mode.value_or(BillingMode::provisioned)) ==
                         BillingMode::pay_per_request;
  if (on_demand && r.throughput)
    return wrong(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST");
  if (!on_demand && r.on_demand_throughput)
    return wrong(
        "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is "
        "PROVISIONED");
  const bool stays_provisioned =
      !on_demand && d.billing_mode.value_or(BillingMode::provisioned) == BillingMode::provisioned;
  if (stays_provisioned && r.throughput && d.throughput && *r.throughput == *d.throughput)
    return refuse(fmt::format(
        "The provisioned throughput for the table will not change. The requested value equals the current "
        "value. "
        "Current ReadCapacityUnits provisioned for the table: {}. Requested ReadCapacityUnits: {}. Current "
        "WriteCapacityUnits provisioned for the table: {}. Requested WriteCapacityUnits: {}. Refer to the "
        "Amazon "
        "DynamoDB Developer Guide for current limits and how to request higher limits.",
        d.throughput->read, r.throughput->read, d.throughput->write, r.throughput->write));
  return {};
}

Result<> check_stream(const TableSchema& table, const UpdateTableRequest& r) {
  if (!r.stream) return {};
  const bool has = table.definition.stream.has_value();
  if (r.stream->enabled && has)
    return refuse(fmt::format("Table already has an enabled stream: TableName: {}", table.name()));
  if (!r.stream->enabled && !has)
    return refuse(fmt::format("Table has no stream to disable: TableName: {}", table.name()));
  return {};
}

Result<> check_one_online_index(const UpdateTableRequest& r) {
  const auto online = std::ranges::count_if(r.global_index_updates,
                                            [](const GlobalIndexUpdate& u) { return u.create || u.remove; });
  if (online <= 1) return {};
  return store::fail(
      ErrorCode::limit_exceeded,
      "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per "
      "table");
}

// A definition in the request may add attributes; those that the table has keep their types.
Result<> merge_attributes(TableSchema& table, const UpdateTableRequest& r,
                          const store::IndexDefinition& index) {
  auto& known = table.definition.attributes;
  for (const auto& key : index.key_schema) {
    const auto given = std::ranges::find_if(r.attributes, [&](const auto& a) { return a.name == key.name; });
    const auto old = std::ranges::find_if(known, [&](const auto& a) { return a.name == key.name; });
    if (old == known.end()) {
      known.push_back(*given);
      continue;
    }
    if (old->type == given->type) continue;
    const auto role = key.role == store::KeyRole::hash ? "HASH" : "RANGE";
    return wrong(fmt::format(
        "Attributes cannot be redefined. Please check that your attribute has the same type as previously "
        "defined. "
        "Existing schema: Schema:[SchemaElement: key{{{}:{}:{}}}] New schema: Schema:[SchemaElement: "
        "key{{{}:{}:{}}}]",
        key.name, item::type_name(old->type), role, key.name, item::type_name(given->type), role));
  }
  return {};
}

// Definitions that no key uses any more go with the index that used them.
void prune_attributes(TableSchema& table) {
  const auto used = [&](const std::string& name) {
    const auto named = [&](const store::KeyElement& key) { return key.name == name; };
    return std::ranges::any_of(table.definition.key_schema, named) ||
           std::ranges::any_of(table.indexes, [&](const IndexSchema& index) {
             return std::ranges::any_of(index.definition.key_schema, named);
           });
  };
  std::erase_if(table.definition.attributes, [&](const auto& a) { return !used(a.name); });
}

IndexSchema* find_global(TableSchema& table, std::string_view name) {
  const auto at =
      std::ranges::find_if(table.indexes, [&](const auto& i) { return !i.local && i.name() == name; });
  return at == table.indexes.end() ? nullptr : &*at;
}

// Takes the index out of the schema; what it held is the caller's to remove, once nothing can fail any more.
Result<IndexSchema> remove_index(TableSchema& table, const std::string& name) {
  const auto* index = table.index(name);
  if (!index)
    return store::fail(
        ErrorCode::resource_not_found,
        fmt::format("Requested resource not found: Index: {} for table: {} not found", name, table.name()));
  if (index->local) return wrong(fmt::format("Local secondary indexes cannot be deleted: {}", name));
  auto removed = *index;
  std::erase_if(table.indexes, [&](const IndexSchema& i) { return i.name() == name; });
  prune_attributes(table);
  return removed;
}

// Warm throughput grows with what is provisioned and never shrinks: to be called before that changes.
template <class Definition>
void keep_warm(Definition& definition) {
  definition.warm_throughput = warm_throughput(definition.warm_throughput, definition.throughput);
}

void warm_up(std::optional<store::OptionalThroughput>& warm,
             const std::optional<store::OptionalThroughput>& asked) {
  if (!asked) return;
  if (!warm) warm.emplace();
  warm->read = std::max(warm->read, asked->read);
  warm->write = std::max(warm->write, asked->write);
}

Result<> change_index(TableSchema& table, const GlobalIndexUpdate::Update& change) {
  auto* index = find_global(table, change.name);
  if (!index)
    return refuse(
        "This operation cannot be performed with given input values. Please contact DynamoDB service team "
        "for more "
        "info: Action Blocked: IndexUpdate");
  keep_warm(index->definition);
  if (change.throughput) index->definition.throughput = change.throughput;
  if (change.on_demand_throughput) index->definition.on_demand_throughput = change.on_demand_throughput;
  warm_up(index->definition.warm_throughput, change.warm_throughput);
  return {};
}

void change_settings(TableSchema& table, const UpdateTableRequest& r, TimePoint now) {
  auto& d = table.definition;
  keep_warm(d);
  if (r.throughput && d.throughput) {
    const bool more = r.throughput->read > d.throughput->read || r.throughput->write > d.throughput->write;
    const bool less = r.throughput->read < d.throughput->read || r.throughput->write < d.throughput->write;
    if (more) table.last_increase = now;
    if (less) table.last_decrease = now;
  }
  if (r.throughput) d.throughput = r.throughput;
  if (r.billing_mode) {
    if (r.billing_mode == BillingMode::pay_per_request && d.billing_mode != BillingMode::pay_per_request) {
      table.on_demand_since = now;
      d.throughput.reset();
      for (auto& index : table.indexes) {
        if (!index.local) keep_warm(index.definition);
        index.definition.throughput.reset();
      }
    }
    d.billing_mode = r.billing_mode;
  }
  if (r.on_demand_throughput) d.on_demand_throughput = r.on_demand_throughput;
  warm_up(d.warm_throughput, r.warm_throughput);
  if (r.table_class) {
    if (d.table_class.value_or(store::TableClass::standard) != *r.table_class)
      table.table_class_changed = now;
    d.table_class = r.table_class;
  }
  if (r.encryption) d.encryption = r.encryption;
  if (r.deletion_protection) d.deletion_protection = *r.deletion_protection;
}

}  // namespace

store::Async<TableDescription> Engine::update_table(UpdateTableRequest request) {
  TABELLA_CO_TRY(check_table_update(request));

  const auto add_index = [&](TableSchema& table, WriteContext& context,
                             const store::IndexDefinition& definition) -> Result<> {
    if (table.index(definition.name)) return wrong(fmt::format("Index already exists: {}", definition.name));
    const bool on_demand = table.definition.billing_mode == BillingMode::pay_per_request;
    std::set<std::string> names;
    TABELLA_TRY(check_global_index(definition, request.attributes, on_demand, names));
    const auto globals = std::ranges::count_if(table.indexes, [](const auto& i) { return !i.local; });
    if (static_cast<size_t>(globals) >= kMaxGlobalIndexes)
      return store::fail(
          ErrorCode::limit_exceeded,
          fmt::format("GlobalSecondaryIndex count exceeds the per-table limit of {}", kMaxGlobalIndexes));
    TABELLA_TRY(merge_attributes(table, request, definition));
    auto index = make_index(take_id(context), false, table.definition, definition);
    index.status = Status::creating;
    index.filled_to = std::make_shared<std::string>();
    table.indexes.push_back(std::move(index));
    return {};
  };

  const auto update = [&](WriteContext& context) -> Result<TableDescription> {
    const auto old = context.table(request.table);
    if (!old) return table_not_found(request.table);
    TABELLA_TRY(check_new_throughput(*old, request));
    TABELLA_TRY(check_stream(*old, request));
    TABELLA_TRY(check_one_online_index(request));
    auto table = std::make_shared<TableSchema>(*old);
    change_settings(*table, request, clock_.now());
    std::optional<IndexSchema> removed;
    for (const auto& u : request.global_index_updates) {
      if (u.create) TABELLA_TRY(add_index(*table, context, *u.create));
      if (u.update) TABELLA_TRY(change_index(*table, *u.update));
      if (u.remove) {
        TABELLA_ASSIGN(removed, remove_index(*table, *u.remove));
      }
    }
    if (removed) remove_index_entries(context, *removed);
    if (request.stream && request.stream->enabled)
      open_stream(context, *table, take_id(context), *request.stream->view);
    else if (request.stream)
      close_stream(context, *table);
    context.put_table(table);
    for (const auto& u : request.global_index_updates)
      if (u.create) start_backfill(*table, *table->index(u.create->name));
    auto description = describe(*table);
    description.status = Status::updating;
    if (old->definition.throughput && table->definition.throughput)
      description.definition.throughput = old->definition.throughput;  // the new one is still being set up
    if (request.encryption) {
      description.encryption_changing = true;
      if (!request.encryption->enabled)
        description.definition.encryption = describe(*old).definition.encryption;
    }
    return description;
  };

  Result<TableDescription> result;
  const auto executed = co_await writer_.execute([&](WriteContext& context) { result = update(context); });
  if (!executed) co_return std::unexpected(executed.error());
  co_return result;
}

}  // namespace tabella::engine

// A table as the engine works with it: its key attributes with their types, its indexes, its counters.
//
// Schemas are immutable once published; a change makes a new one. What lives is shared by all versions of a
// table's schema: the counters, which the committer's thread writes and anyone reads, and where the filling
// of an index and the sweep of expired items stand, which are the writer's thread's alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "item/value.h"
#include "store/error.h"
#include "store/table.h"

namespace tabella::engine {

// Whose all tables are, as their ARNs say.
inline constexpr std::string_view kAccount = "123456789012";

std::string table_arn(std::string_view name);

struct KeyAttribute {
  std::string name;
  item::Type type;
};

struct Counters {
  std::atomic<int64_t> items{0};
  std::atomic<int64_t> bytes{0};
};

struct IndexSchema {
  uint32_t id = 0;
  bool local = false;
  store::IndexDefinition definition;
  store::Status status = store::Status::active;
  std::vector<KeyAttribute> partition;  // one; up to four in a global index
  std::vector<KeyAttribute> sort;       // none or one; up to four in a global index
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
  // While the index is being filled: items before this key are in it and counted. The writer's thread only.
  std::shared_ptr<std::string> filled_to;

  const std::string& name() const { return definition.name; }
  bool projects_all() const { return definition.projection == store::ProjectionType::all; }
};

// Time to live.
struct Expiry {
  uint32_t id = 0;
  std::string attribute;
  bool filled = false;  // whether the items that were there before have their entries
  // Where the next sweep begins: what is due before it is gone. The writer's thread only.
  std::shared_ptr<std::string> swept_to = std::make_shared<std::string>();
};

struct TableSchema {
  uint32_t id = 0;
  store::TableDefinition definition;  // its index lists stay empty: they are `indexes` below
  std::string uuid;
  TimePoint created;
  KeyAttribute partition;
  std::optional<KeyAttribute> sort;
  std::vector<IndexSchema> indexes;
  std::vector<store::Tag> tags;
  uint32_t stream_id = 0;    // of the latest stream,
  std::string stream_label;  // if there ever was one
  std::optional<Expiry> expiry;
  std::optional<TimePoint> on_demand_since;
  std::optional<TimePoint> last_increase;
  std::optional<TimePoint> last_decrease;
  std::optional<TimePoint> table_class_changed;
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();

  const std::string& name() const { return definition.name; }
  std::string arn() const;
  bool is_key(std::string_view attribute) const;
  bool has_local_index() const;
  const IndexSchema* index(std::string_view index_name) const;
};

// Works out the key attributes of a definition that has been checked.
KeyAttribute key_attribute(const store::TableDefinition& definition, const store::KeyElement& element);
IndexSchema make_index(uint32_t id, bool local, const store::TableDefinition& table,
                       store::IndexDefinition index);

// What a table or an index can serve at once, by what was asked for and what is provisioned. As on AWS, a
// provisioned one starts with its own figures and an on-demand one with 12000 and 4000.
store::OptionalThroughput warm_throughput(const std::optional<store::OptionalThroughput>& asked,
                                          const std::optional<store::Throughput>& provisioned);

// Whether an index carries this attribute.
bool is_projected(const TableSchema& table, const IndexSchema& index, std::string_view attribute);

store::TableDescription describe(const TableSchema& table);

// The bytes of a catalogue entry (docs/storage_format.md).
std::string encode_schema(const TableSchema& table);
TableSchema decode_schema(std::string_view bytes);

std::string encode_counters(const Counters& counters);
void decode_counters(std::string_view bytes, Counters& counters);

}  // namespace tabella::engine

// Tables as their users see them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "item/value.h"

namespace tabella::store {

// The name of the table that a name or an ARN (arn:aws:dynamodb:<region>:<account>:table/<name>) stands for:
// AWS takes either wherever a table is named.
constexpr bool is_table_arn(std::string_view text) {
  return text.starts_with("arn:aws:dynamodb:") && text.find(":table/") != std::string_view::npos;
}
constexpr std::string_view bare_table_name(std::string_view text) {
  return is_table_arn(text) ? text.substr(text.find(":table/") + 7) : text;
}

enum class KeyRole { hash, range };

struct KeyElement {
  std::string name;
  KeyRole role = KeyRole::hash;
  bool operator==(const KeyElement&) const = default;
};

struct AttributeDefinition {
  std::string name;
  item::Type type = item::Type::S;
  bool operator==(const AttributeDefinition&) const = default;
};

enum class ProjectionType { all, keys_only, include };

struct Throughput {
  int64_t read = 0;
  int64_t write = 0;
  bool operator==(const Throughput&) const = default;
};

// Maxima for on-demand tables and warm throughput: accepted and described; one machine has nothing to warm
// up. In a request warm throughput is what is asked for, in a description what there is.
struct OptionalThroughput {
  std::optional<int64_t> read;
  std::optional<int64_t> write;
};

struct IndexDefinition {
  std::string name;
  std::vector<KeyElement> key_schema;
  std::optional<ProjectionType> projection;
  std::optional<std::vector<std::string>> non_key_attributes;
  std::optional<Throughput> throughput;                    // global
  std::optional<OptionalThroughput> on_demand_throughput;  // global
  std::optional<OptionalThroughput> warm_throughput;       // global
};

enum class BillingMode { provisioned, pay_per_request };
enum class TableClass { standard, standard_infrequent_access };

struct Tag {
  std::string key;
  std::string value;
};

struct ServerSideEncryption {
  bool enabled = false;
  std::optional<std::string> kms_key;  // in a description: its ARN
};

// What a stream's records show of an item.
enum class StreamView { keys_only, new_image, old_image, new_and_old_images };

struct TableDefinition {
  std::string name;
  std::vector<AttributeDefinition> attributes;
  std::vector<KeyElement> key_schema;
  std::optional<std::vector<IndexDefinition>> local_indexes;
  std::optional<std::vector<IndexDefinition>> global_indexes;
  std::optional<BillingMode> billing_mode;
  std::optional<Throughput> throughput;
  std::optional<OptionalThroughput> on_demand_throughput;
  std::optional<OptionalThroughput> warm_throughput;
  std::optional<TableClass> table_class;
  std::optional<ServerSideEncryption> encryption;
  std::optional<StreamView> stream;  // nothing: no stream
  bool deletion_protection = false;
};

enum class Status { creating, active, updating, deleting };

struct IndexDescription {
  IndexDefinition definition;
  Status status = Status::active;
  bool backfilling = false;
  int64_t item_count = 0;
  int64_t size_bytes = 0;
};

struct TableDescription {
  TableDefinition definition;  // its indexes are in the lists below
  std::string id;
  std::string arn;
  Status status = Status::active;
  TimePoint created;
  int64_t item_count = 0;
  int64_t size_bytes = 0;
  std::vector<IndexDescription> local_indexes;
  std::vector<IndexDescription> global_indexes;
  std::optional<TimePoint> on_demand_since;
  std::optional<TimePoint> last_increase;
  std::optional<TimePoint> last_decrease;
  std::optional<TimePoint> table_class_changed;
  std::optional<std::string> stream_arn;  // of the latest stream, also once it is disabled
  std::optional<std::string> stream_label;
  bool encryption_changing = false;  // in the answer of the UpdateTable that changes it
  // DeleteTable's answer leaves out what is already gone.
  bool brief = false;
};

}  // namespace tabella::store

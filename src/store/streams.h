// The requests and results of streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/requests.h"

namespace tabella::store {

struct ListStreamsRequest {
  std::optional<std::string> table;
  std::optional<std::string> start;  // ExclusiveStartStreamArn
  int64_t limit = 100;
};

struct StreamSummary {
  std::string arn;
  std::string table;
  std::string label;
};

struct ListStreamsResult {
  std::vector<StreamSummary> streams;
  std::optional<std::string> last;
};

struct DescribeStreamRequest {
  std::string arn;
  std::optional<std::string> start;   // ExclusiveStartShardId
  std::optional<std::string> parent;  // ShardFilter CHILD_SHARDS: only the children of this shard
  int64_t limit = 100;
};

struct ShardDescription {
  std::string id;
  std::optional<std::string> parent;
  std::string first;                // sequence numbers
  std::optional<std::string> last;  // once the shard is closed
};

struct StreamDescription {
  std::string arn;
  std::string label;
  std::string table;
  bool enabled = true;
  StreamView view = StreamView::keys_only;
  TimePoint created;
  std::vector<KeyElement> key_schema;
  std::vector<ShardDescription> shards;
  std::optional<std::string> last_shard;  // where to go on from
};

enum class IteratorType { trim_horizon, latest, at_sequence_number, after_sequence_number };

struct GetShardIteratorRequest {
  std::string arn;
  std::string shard;
  IteratorType type = IteratorType::trim_horizon;
  std::optional<std::string> sequence;
};

struct GetRecordsRequest {
  std::string iterator;
  int64_t limit = 1000;
};

enum class StreamEvent { insert, modify, remove };

struct StreamRecord {
  std::string id;
  StreamEvent event = StreamEvent::insert;
  bool by_service = false;  // time to live ran out
  TimePoint created;
  std::string sequence;
  Item keys;
  std::optional<Item> old_image;
  std::optional<Item> new_image;
  StreamView view = StreamView::keys_only;

  size_t size() const {
    return keys.size() + (old_image ? old_image->size() : 0) + (new_image ? new_image->size() : 0);
  }
};

struct GetRecordsResult {
  std::vector<StreamRecord> records;
  std::optional<std::string> next;  // nothing: the shard is closed and read to its end
};

}  // namespace tabella::store

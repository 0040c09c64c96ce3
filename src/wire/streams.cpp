// ListStreams, DescribeStream, GetShardIterator and GetRecords.
#include <array>

#include "protocol/names.h"
#include "protocol/shapes.h"
#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

using store::IteratorType;

constexpr size_t kMinArn = 37;
constexpr size_t kMaxArn = 1024;
constexpr size_t kMinShardId = 28;
constexpr size_t kMaxShardId = 65;

constexpr std::array<std::pair<std::string_view, bool>, 1> kFilterTypes = {{{"CHILD_SHARDS", true}}};

std::string read_stream_arn(const Reader& reader) {
  const auto arn = reader.string("StreamArn");
  reader.require("StreamArn", arn);
  reader.length("StreamArn", arn, kMinArn, kMaxArn);
  return arn.value_or("");
}

int64_t read_limit(const Reader& reader, int64_t most) {
  const auto limit = reader.integer("Limit");
  reader.at_least("Limit", limit, 1);
  reader.at_most("Limit", limit, most);
  return limit.value_or(most);
}

Result<store::ListStreamsRequest> read_list_streams(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::ListStreamsRequest request;
  request.table = reader.string("TableName");
  reader.pattern("TableName", request.table);
  reader.length("TableName", request.table, 3, 255);
  request.start = reader.string("ExclusiveStartStreamArn");
  reader.length("ExclusiveStartStreamArn", request.start, kMinArn, kMaxArn);
  request.limit = read_limit(reader, 100);
  TABELLA_TRY(problems.result());
  return request;
}

void append_list_streams(std::string& out, const store::ListStreamsResult& result) {
  JsonObjectWriter json(out);
  {
    JsonArrayWriter streams(json.key("Streams"));
    for (const auto& stream : result.streams) {
      JsonObjectWriter inner(streams.element());
      inner.string("StreamArn", stream.arn);
      inner.string("TableName", stream.table);
      inner.string("StreamLabel", stream.label);
    }
  }
  if (result.last) json.string("LastEvaluatedStreamArn", *result.last);
}

std::optional<std::string> read_shard_filter(const Reader& reader) {
  const auto json = reader.structure("ShardFilter", "ShardFilter");
  if (!json) return std::nullopt;
  const Reader inner(*json, reader.problems(), reader.path_of("ShardFilter"));
  inner.require("Type", inner.string("Type"));
  static_cast<void>(inner.choice<bool>("Type", kFilterTypes));
  auto shard = inner.string("ShardId");
  inner.require("ShardId", shard);
  inner.length("ShardId", shard, kMinShardId, kMaxShardId);
  return shard;
}

Result<store::DescribeStreamRequest> read_describe_stream(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::DescribeStreamRequest request{.arn = read_stream_arn(reader)};
  request.limit = read_limit(reader, 100);
  request.start = reader.string("ExclusiveStartShardId");
  reader.length("ExclusiveStartShardId", request.start, kMinShardId, kMaxShardId);
  request.parent = read_shard_filter(reader);
  TABELLA_TRY(problems.result());
  return request;
}

void append_shard(std::string& out, const store::ShardDescription& shard) {
  JsonObjectWriter json(out);
  json.string("ShardId", shard.id);
  if (shard.parent) json.string("ParentShardId", *shard.parent);
  JsonObjectWriter range(json.key("SequenceNumberRange"));
  range.string("StartingSequenceNumber", shard.first);
  if (shard.last) range.string("EndingSequenceNumber", *shard.last);
}

void append_stream(std::string& out, const store::StreamDescription& stream) {
  JsonObjectWriter outer(out);
  JsonObjectWriter json(outer.key("StreamDescription"));
  json.string("StreamArn", stream.arn);
  json.string("StreamLabel", stream.label);
  json.string("StreamStatus", stream.enabled ? "ENABLED" : "DISABLED");
  json.string("StreamViewType", protocol::name_of(protocol::kStreamViews, stream.view));
  json.number("CreationRequestDateTime", epoch_seconds(stream.created));
  json.string("TableName", stream.table);
  protocol::append_keys(json.key("KeySchema"), stream.key_schema);
  {
    JsonArrayWriter shards(json.key("Shards"));
    for (const auto& shard : stream.shards) append_shard(shards.element(), shard);
  }
  if (stream.last_shard) json.string("LastEvaluatedShardId", *stream.last_shard);
}

Result<store::GetShardIteratorRequest> read_get_shard_iterator(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::GetShardIteratorRequest request{.arn = read_stream_arn(reader)};
  const auto shard = reader.string("ShardId");
  reader.require("ShardId", shard);
  reader.length("ShardId", shard, kMinShardId, kMaxShardId);
  request.shard = shard.value_or("");
  reader.require("ShardIteratorType", reader.string("ShardIteratorType"));
  request.type =
      reader.choice<IteratorType>("ShardIteratorType", protocol::kIteratorTypes).value_or(request.type);
  request.sequence = reader.string("SequenceNumber");
  reader.length("SequenceNumber", request.sequence, 21, 40);
  reader.unsupported({"Timestamp"});  // of AT_TIMESTAMP
  TABELLA_TRY(problems.result());
  return request;
}

Result<store::GetRecordsRequest> read_get_records(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  const auto iterator = reader.string("ShardIterator");
  reader.require("ShardIterator", iterator);
  reader.length("ShardIterator", iterator, 1, 2048);
  store::GetRecordsRequest request{.iterator = iterator.value_or("")};
  request.limit = read_limit(reader, 1000);
  TABELLA_TRY(problems.result());
  return request;
}

void append_record(std::string& out, const store::StreamRecord& record) {
  JsonObjectWriter json(out);
  json.string("eventID", record.id);
  json.string("eventName", protocol::name_of(protocol::kStreamEvents, record.event));
  json.string("eventVersion", "1.1");
  json.string("eventSource", "aws:dynamodb");
  json.string("awsRegion", "us-east-1");
  {
    JsonObjectWriter change(json.key("dynamodb"));
    change.number("ApproximateCreationDateTime", static_cast<int64_t>(epoch_seconds(record.created)));
    item::append_item_json(change.key("Keys"), record.keys);
    if (record.new_image) item::append_item_json(change.key("NewImage"), *record.new_image);
    if (record.old_image) item::append_item_json(change.key("OldImage"), *record.old_image);
    change.string("SequenceNumber", record.sequence);
    change.number("SizeBytes", static_cast<int64_t>(record.size()));
    change.string("StreamViewType", protocol::name_of(protocol::kStreamViews, record.view));
  }
  if (!record.by_service) return;
  JsonObjectWriter identity(json.key("userIdentity"));
  identity.string("Type", "Service");
  identity.string("PrincipalId", "dynamodb.amazonaws.com");
}

void append_records(std::string& out, const store::GetRecordsResult& result) {
  JsonObjectWriter json(out);
  {
    JsonArrayWriter records(json.key("Records"));
    for (const auto& record : result.records) append_record(records.element(), record);
  }
  if (result.next) json.string("NextShardIterator", *result.next);
}

void append_iterator(std::string& out, const std::string& iterator) {
  JsonObjectWriter json(out);
  json.string("ShardIterator", iterator);
}

}  // namespace

TABELLA_OPERATION(list_streams) {
  return answer(read_list_streams(body), context, &store::Store::list_streams, out, append_list_streams);
}

TABELLA_OPERATION(describe_stream) {
  return answer(read_describe_stream(body), context, &store::Store::describe_stream, out, append_stream);
}

TABELLA_OPERATION(get_shard_iterator) {
  return answer(read_get_shard_iterator(body), context, &store::Store::get_shard_iterator, out,
                append_iterator);
}

TABELLA_OPERATION(get_records) {
  return answer(read_get_records(body), context, &store::Store::get_records, out, append_records);
}

}  // namespace tabella::wire

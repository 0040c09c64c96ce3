// ListStreams and DescribeStream.
#include "engine/describe_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/engine.h"

namespace tabella::engine {

using store::Result;

namespace {

store::ShardDescription describe(const Shard& shard) {
  store::ShardDescription d{.id = shard.name(), .first = sequence_text(shard.first)};
  if (!shard.parent.empty()) d.parent = shard.parent;
  if (shard.closed) d.last = sequence_text(shard.last);
  return d;
}

}  // namespace

Result<StreamPtr> find_stream(const Streams& streams, std::string_view arn) {
  const auto at = arn.find("/stream/");
  if (!arn.starts_with("arn:aws:dynamodb:") || arn.find(":table/") == std::string_view::npos ||
      at == std::string_view::npos)
    return store::refuse("Invalid StreamArn");
  if (auto stream = streams.find(arn)) return stream;
  return store::fail(store::ErrorCode::resource_not_found,
                     fmt::format("Requested resource not found: Stream: {} not found", arn));
}

store::Async<store::ListStreamsResult> Engine::list_streams(store::ListStreamsRequest request) {
  if (request.start && !request.start->starts_with("arn:")) co_return store::refuse("Invalid StreamArn");
  store::ListStreamsResult result;
  for (const auto& stream : streams_.all()) {
    auto arn = stream->arn();
    if ((request.table && stream->table != *request.table) || (request.start && arn <= *request.start))
      continue;
    if (static_cast<int64_t>(result.streams.size()) == request.limit) {
      result.last = result.streams.back().arn;
      break;
    }
    result.streams.push_back({.arn = std::move(arn), .table = stream->table, .label = stream->label});
  }
  co_return result;
}

store::Async<store::StreamDescription> Engine::describe_stream(store::DescribeStreamRequest request) {
  TABELLA_CO_ASSIGN(const auto found, find_stream(streams_, request.arn));
  const auto& stream = *found;
  store::StreamDescription d{.arn = request.arn,
                             .label = stream.label,
                             .table = stream.table,
                             .enabled = stream.enabled,
                             .view = stream.view,
                             .created = stream.created,
                             .key_schema = stream.key_schema};
  bool started = !request.start;
  for (const auto& shard : stream.shards) {
    const auto name = shard.name();
    const bool wanted = started && (!request.parent || shard.parent == *request.parent);
    started = started || name == *request.start;
    if (!wanted) continue;
    if (static_cast<int64_t>(d.shards.size()) == request.limit) {
      d.last_shard = d.shards.back().id;
      break;
    }
    d.shards.push_back(describe(shard));
  }
  co_return d;
}

}  // namespace tabella::engine

// GetShardIterator, GetRecords, and waiting for more.
#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "engine/describe_stream.h"
#include "engine/engine.h"
#include "engine/keys.h"
#include "engine/shard_iterator.h"
#include "engine/stream_record.h"

namespace tabella::engine {

using store::ErrorCode;
using store::IteratorType;
using store::Result;

namespace {

constexpr std::chrono::minutes kIteratorLife{15};
constexpr size_t kMaxBytes = 1u << 20;
// Records past their day are stepped over, but not for ever in one call.
constexpr size_t kMaxSkipped = 10'000;
constexpr std::string_view kVersion = "|1|";
constexpr uint64_t kMaxTime = (uint64_t{1} << 42) - 1;  // milliseconds until the year 2109: no overflow

std::unexpected<store::Error> no_such_shard(std::string_view shard, std::string_view arn) {
  return store::fail(
      ErrorCode::resource_not_found,
      fmt::format("Requested resource not found: Shard: {} in Stream: {} not found", shard, arn));
}

std::unexpected<store::Error> trimmed() {
  return store::fail(ErrorCode::trimmed_data_access,
                     "The operation attempted to read past the oldest stream record in a shard");
}

const Shard* find_shard(const StreamSchema& stream, uint64_t first) {
  const auto at = std::ranges::find_if(stream.shards, [&](const Shard& s) { return s.first == first; });
  return at == stream.shards.end() ? nullptr : &*at;
}

Result<uint64_t> position_of(const store::GetShardIteratorRequest& request, const Shard& shard) {
  if (request.type == IteratorType::trim_horizon) return shard.first;
  if (request.type == IteratorType::latest) return shard.tail->last.load();
  const auto sequence = sequence_from(*request.sequence);
  if (!sequence || *sequence < shard.first || (shard.closed && *sequence > shard.last))
    return store::refuse(fmt::format("Invalid SequenceNumber: {} is not in the range of the shard {}",
                                     *request.sequence, shard.name()));
  if (request.type == IteratorType::after_sequence_number || *sequence == shard.first) return *sequence;
  return *sequence - 1;
}

Result<> check_sequence_given(const store::GetShardIteratorRequest& request) {
  const bool by_sequence =
      request.type == IteratorType::at_sequence_number || request.type == IteratorType::after_sequence_number;
  if (by_sequence && !request.sequence)
    return store::refuse(
        "One or more parameter values were invalid: SequenceNumber must be specified for ShardIteratorType "
        "AT_SEQUENCE_NUMBER and AFTER_SEQUENCE_NUMBER");
  if (!by_sequence && request.sequence)
    return store::refuse(
        "One or more parameter values were invalid: SequenceNumber must not be specified for "
        "ShardIteratorType TRIM_HORIZON and LATEST");
  return {};
}

store::StreamRecord to_record(const StreamSchema& stream, uint64_t sequence, RecordView view) {
  const auto copy = [](item::ItemView item) { return item::Item(std::string(item.bytes())); };
  store::StreamRecord record{.event = view.event,
                             .by_service = view.by_service,
                             .created = view.created,
                             .sequence = sequence_text(sequence),
                             .view = stream.view};
  std::string name;
  put_u64(name, stream.id);
  put_u64(name, sequence);
  record.id = to_hex(name);
  if (view.keys) {
    record.keys = copy(*view.keys);
  } else {
    item::ItemBuilder keys;
    const auto image = view.new_image ? *view.new_image : view.old_image->view();
    for (const auto& key : stream.key_schema)
      if (const auto value = image.find(key.name)) keys.add(key.name, *value);
    record.keys = keys.finish();
  }
  record.old_image = std::move(view.old_image);
  if (view.new_image) record.new_image = copy(*view.new_image);
  return record;
}

}  // namespace

std::string encode_iterator(const ShardIterator& iterator) {
  std::string bytes;
  put_u64(bytes, iterator.shard);
  put_u64(bytes, iterator.position);
  put_u64(bytes, static_cast<uint64_t>(epoch_milliseconds(iterator.issued)));
  return fmt::format("{}{}{}", iterator.arn, kVersion, to_base64(bytes));
}

Result<ShardIterator> decode_iterator(std::string_view text) {
  const auto bad = [] { return store::refuse("Invalid ShardIterator"); };
  const auto bar = text.find(kVersion);
  if (bar == std::string_view::npos) return bad();
  const auto bytes = from_base64(text.substr(bar + kVersion.size()));
  if (!bytes || bytes->size() != 24) return bad();
  const std::string_view in = *bytes;
  return ShardIterator{.arn = std::string(text.substr(0, bar)),
                       .shard = get_u64(in),
                       .position = get_u64(in.substr(8)),
                       .issued = TimePoint(std::chrono::milliseconds(get_u64(in.substr(16)) & kMaxTime))};
}

bool Engine::is_trimmed(TimePoint time) const {
  const bool is_in_grace = time < opened_at_ && clock_.elapsed() - opened_ < kStreamGrace;
  return time < clock_.now() - kStreamRetention && !is_in_grace;
}

store::Async<std::string> Engine::get_shard_iterator(store::GetShardIteratorRequest request) {
  TABELLA_CO_TRY(check_sequence_given(request));
  TABELLA_CO_ASSIGN(const auto stream, find_stream(streams_, request.arn));
  const auto* shard = stream->shard(request.shard);
  if (!shard) co_return no_such_shard(request.shard, request.arn);
  TABELLA_CO_ASSIGN(const auto position, position_of(request, *shard));
  if (request.sequence && position > shard->first) {
    const auto named =
        database_.get(keys::record(stream->id, shard->first, *sequence_from(*request.sequence)));
    if (named && is_trimmed(decode_record(*named).created)) co_return trimmed();
  }
  co_return encode_iterator(
      {.arn = request.arn, .shard = shard->first, .position = position, .issued = clock_.now()});
}

Result<store::GetRecordsResult> Engine::get_records_now(const store::GetRecordsRequest& request) {
  TABELLA_ASSIGN(auto iterator, decode_iterator(request.iterator));
  const auto now = clock_.now();
  if (now - iterator.issued > kIteratorLife)
    return store::fail(ErrorCode::expired_iterator,
                       "The shard iterator has expired: iterators are good for 15 minutes");
  TABELLA_ASSIGN(const auto stream, find_stream(streams_, iterator.arn));
  const auto* shard = find_shard(*stream, iterator.shard);
  if (!shard) return trimmed();

  store::GetRecordsResult result;
  size_t bytes = 0;
  size_t skipped = 0;
  auto cursor = database_.range(keys::record(stream->id, shard->first, iterator.position + 1),
                                keys::end_of(keys::records_of(stream->id, shard->first)),
                                Database::Direction::forward, true);
  for (; cursor.valid(); cursor.next()) {
    if (static_cast<int64_t>(result.records.size()) >= request.limit || bytes >= kMaxBytes ||
        skipped >= kMaxSkipped)
      break;
    iterator.position = keys::sequence_of(cursor.key());
    auto view = decode_record(cursor.value());
    if (is_trimmed(view.created)) {
      ++skipped;
      continue;
    }
    bytes += cursor.value().size();
    result.records.push_back(to_record(*stream, iterator.position, std::move(view)));
  }
  if (!result.records.empty()) record_ages_.observe(now - result.records.back().created);
  if (!shard->closed || cursor.valid()) {
    iterator.issued = now;
    result.next = encode_iterator(iterator);
  }
  return result;
}

store::Async<store::GetRecordsResult> Engine::get_records(store::GetRecordsRequest request) {
  co_return get_records_now(request);
}

boost::asio::awaitable<void> Engine::wait_for_records(std::string text, std::chrono::milliseconds at_most) {
  const auto iterator = decode_iterator(text);
  if (!iterator) co_return;
  const auto stream = streams_.find(iterator->arn);
  const auto* shard = stream ? find_shard(*stream, iterator->shard) : nullptr;
  if (!shard || shard->closed) co_return;
  const auto tail = shard->tail;
  co_await tail->waiters.wait([&] { return tail->last > iterator->position; }, at_most);
}

}  // namespace tabella::engine

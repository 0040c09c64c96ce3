#include "engine/stream_record.h"

#include <algorithm>

#include "base/bytes.h"
#include "engine/item_keys.h"
#include "engine/keys.h"
#include "item/check.h"

namespace tabella::engine {

using item::ItemView;
using store::StreamEvent;
using store::StreamView;

namespace {

constexpr std::chrono::hours kShardAge{4};
// A stream that takes more than this is worth being read by several.
constexpr uint64_t kSplitRecords = 1000;
constexpr int kMaxBits = 3;
// About what a record takes: to tell whether its room is worth being given back.
constexpr uint64_t kRecordBytes = 1024;

enum Flags : uint8_t { by_service = 1, has_keys = 2, has_old = 4, has_new = 8, has_difference = 16 };

// More than this is not worth looking for one by one.
constexpr size_t kMaxDifference = 32;

// The old image as what differs from the new: the attributes that had another value or are gone, and the
// names of those that are new. Nothing if that is much.
std::optional<std::string> difference(ItemView old, ItemView fresh) {
  if (old.count() > 4 * kMaxDifference || fresh.count() > 4 * kMaxDifference) return std::nullopt;
  item::ItemBuilder before;
  std::string added;
  size_t changed_count = 0;
  size_t added_count = 0;
  for (item::Attributes a(old); a.next();) {
    const auto now = fresh.find(a.name());
    if (now && now->bytes() == a.value().bytes()) continue;
    before.add(a.name(), a.value());
    ++changed_count;
  }
  for (item::Attributes a(fresh); a.next();)
    if (!old.find(a.name())) {
      put_sized(added, a.name());
      ++added_count;
    }
  if (changed_count + added_count > kMaxDifference) return std::nullopt;
  std::string bytes;
  put_sized(bytes, before.finish().bytes());
  put_varint(bytes, added_count);
  return bytes.append(added);
}

item::Item with_difference(ItemView fresh, std::string_view& in) {
  const ItemView before(take_sized(in));
  std::vector<std::string_view> added(std::min<size_t>(take_varint(in), kMaxDifference));
  for (auto& name : added) name = take_sized(in);
  item::ItemBuilder old;
  for (item::Attributes a(fresh); a.next();) {
    if (std::ranges::find(added, a.name()) != added.end()) continue;
    if (!before.find(a.name())) old.add(a.name(), a.value());
  }
  for (item::Attributes a(before); a.next();) old.add(a.name(), a.value());
  return old.finish();
}

std::string encode_record(const TableSchema& table, StreamView view, const ItemChange& change,
                          TimePoint now) {
  const bool old_shown = view == StreamView::old_image || view == StreamView::new_and_old_images;
  const bool new_shown = view == StreamView::new_image || view == StreamView::new_and_old_images;
  const item::Item* old = old_shown && change.old ? &*change.old : nullptr;
  const item::Item* fresh = new_shown && change.now ? &*change.now : nullptr;
  const auto event = !change.old  ? StreamEvent::insert
                     : change.now ? StreamEvent::modify
                                  : StreamEvent::remove;
  const bool keys = !old && !fresh;
  const auto differing = old && fresh ? difference(*old, *fresh) : std::nullopt;
  std::string bytes;
  bytes.reserve(24 +
                (differing ? differing->size()
                 : old     ? old->bytes().size()
                           : 0) +
                (fresh ? fresh->bytes().size() : 0));
  bytes.push_back(static_cast<char>(event));
  bytes.push_back(static_cast<char>((change.by_service ? by_service : 0) | (keys ? has_keys : 0) |
                                    (differing ? has_difference
                                     : old     ? has_old
                                               : 0) |
                                    (fresh ? has_new : 0)));
  put_varint(bytes, static_cast<uint64_t>(epoch_milliseconds(now)));
  if (keys) put_sized(bytes, key_of(table, nullptr, change.now ? *change.now : *change.old).bytes());
  if (fresh) put_sized(bytes, fresh->bytes());
  if (differing)
    bytes.append(*differing);
  else if (old)
    put_sized(bytes, old->bytes());
  return bytes;
}

Shard new_shard(WriteContext& context, std::string parent, int bits, uint64_t prefix) {
  Shard shard{.first = context.take_sequence(),
              .parent = std::move(parent),
              .bits = bits,
              .prefix = prefix,
              .opened = context.now()};
  shard.tail->last = shard.first;
  return shard;
}

void close_shard(WriteContext& context, Shard& shard) {
  shard.last = context.take_sequence();
  shard.closed = context.now();
  // Whoever waits for more will find that there is none.
  context.end_shard(shard);
}

bool is_full(const Shard& shard, TimePoint now) {
  return now - shard.opened >= kShardAge || (shard.tail->records >= kSplitRecords && shard.bits < kMaxBits);
}

// Closes the shard of this hash and opens what follows it: two where it was busy, one where it was old.
StreamPtr roll(WriteContext& context, const StreamSchema& stream, uint64_t hash) {
  auto next = std::make_shared<StreamSchema>(stream);
  Shard& full = *next->open_shard(hash);
  close_shard(context, full);
  const auto parent = full.name();
  const int bits = full.bits;
  const uint64_t prefix = full.prefix;
  if (full.tail->records >= kSplitRecords && bits < kMaxBits) {
    next->shards.push_back(new_shard(context, parent, bits + 1, prefix << 1));
    next->shards.push_back(new_shard(context, parent, bits + 1, prefix << 1 | 1));
  } else {
    next->shards.push_back(new_shard(context, parent, bits, prefix));
  }
  context.put_stream(next);
  return next;
}

bool changed(const ItemChange& change) {
  if (change.old && change.now) return !item::equal(change.old->view(), change.now->view());
  return change.old || change.now;
}

}  // namespace

RecordView decode_record(std::string_view bytes) {
  RecordView record;
  if (bytes.size() < 2) return record;
  record.event = static_cast<StreamEvent>(bytes[0]);
  const auto flags = static_cast<uint8_t>(bytes[1]);
  bytes.remove_prefix(2);
  record.by_service = (flags & by_service) != 0;
  record.created = TimePoint(std::chrono::milliseconds(take_varint(bytes)));
  if (flags & has_keys) record.keys = ItemView(take_sized(bytes));
  if (flags & has_new) record.new_image = ItemView(take_sized(bytes));
  if (flags & has_old) record.old_image = item::Item(std::string(take_sized(bytes)));
  if (flags & has_difference && record.new_image)
    record.old_image = with_difference(*record.new_image, bytes);
  return record;
}

bool is_whole_record(std::string_view bytes) {
  if (bytes.size() < 3 || static_cast<uint8_t>(bytes[0]) > 2) return false;
  const auto flags = static_cast<uint8_t>(bytes[1]);
  bytes.remove_prefix(2);
  take_varint(bytes);
  bool whole = (flags & (has_keys | has_old | has_new)) != 0;
  const auto sized = [&]() -> std::string_view {
    const auto length = take_varint(bytes);
    whole = whole && length <= bytes.size();
    return whole ? take(bytes, length) : std::string_view();
  };
  const auto item = [&] { whole = item::is_well_formed(sized()) && whole; };
  if (flags & has_keys) item();
  if (flags & has_new) item();
  if (flags & has_old) item();
  if (flags & has_difference) {
    item();
    whole = whole && !bytes.empty();
    for (auto names = take_varint(bytes); whole && names > 0; --names) sized();
  }
  return whole && bytes.empty();
}

void append_record(WriteContext& context, const TableSchema& table, const ItemChange& change) {
  if (!table.definition.stream || !changed(change)) return;
  auto stream = context.stream(table.stream_id);
  const auto hash = keys::hash_of(change.key);
  const Shard* shard = stream->open_shard(hash);
  if (is_full(*shard, context.now())) {
    stream = roll(context, *stream, hash);
    shard = stream->open_shard(hash);
  }
  context.append_record(stream->id, *shard, encode_record(table, stream->view, change, context.now()));
}

void open_stream(WriteContext& context, TableSchema& table, uint32_t id, StreamView view) {
  const auto created = context.take_label_time();
  auto label = stream_label(created);
  auto stream = std::make_shared<StreamSchema>(StreamSchema{.id = id,
                                                            .table = table.name(),
                                                            .table_arn = table.arn(),
                                                            .label = label,
                                                            .view = view,
                                                            .created = created,
                                                            .key_schema = table.definition.key_schema});
  stream->shards.push_back(new_shard(context, {}, 0, 0));
  context.put_stream(std::move(stream));
  table.definition.stream = view;
  table.stream_id = id;
  table.stream_label = std::move(label);
}

void close_stream(WriteContext& context, TableSchema& table) {
  table.definition.stream.reset();
  const auto stream = context.stream(table.stream_id);
  if (!stream) return;
  auto closed = std::make_shared<StreamSchema>(*stream);
  closed->enabled = false;
  for (auto& shard : closed->shards)
    if (!shard.closed) close_shard(context, shard);
  context.put_stream(std::move(closed));
}

void trim_streams(WriteContext& context, const Streams& streams,
                  const std::function<bool(TimePoint)>& is_trimmed) {
  const auto is_old = [&](const Shard& shard) { return shard.closed && is_trimmed(*shard.closed); };
  for (const auto& seen : streams.all()) {
    const auto stream = context.stream(seen->id);
    if (!stream || std::ranges::none_of(stream->shards, is_old)) continue;
    auto trimmed = std::make_shared<StreamSchema>(*stream);
    for (const auto& shard : trimmed->shards) {
      if (!is_old(shard)) continue;
      const auto records = keys::records_of(stream->id, shard.first);
      context.note_dropped(records, shard.tail->records * kRecordBytes);
      context.batch().remove_range(records, keys::end_of(records));
    }
    std::erase_if(trimmed->shards, is_old);
    if (trimmed->shards.empty())
      context.drop_stream(stream->id);
    else
      context.put_stream(std::move(trimmed));
  }
}

}  // namespace tabella::engine

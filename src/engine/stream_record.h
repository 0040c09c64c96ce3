// The records of streams: how they stand on disk, and how a change becomes one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/change.h"
#include "engine/stream.h"
#include "engine/write_context.h"
#include "item/value.h"

namespace tabella::engine {

// A record as it is stored (docs/storage_format.md); borrows the bytes. Where both images are shown, the old
// one is stored as what the new one changed.
struct RecordView {
  store::StreamEvent event = store::StreamEvent::insert;
  bool by_service = false;
  TimePoint created;
  // Only what the stream's view shows; keys only where no image has them.
  std::optional<item::ItemView> keys;
  std::optional<item::ItemView> new_image;
  std::optional<item::Item> old_image;
};

RecordView decode_record(std::string_view bytes);
// Whether the bytes are a record that can be decoded. For stores that may be damaged.
bool is_whole_record(std::string_view bytes);

// Adds the record of a change to the table's stream, if it has one and the change changed something.
void append_record(WriteContext& context, const TableSchema& table, const ItemChange& change);

// Gives the table a new stream, or ends the one it has: its records stay for a day.
void open_stream(WriteContext& context, TableSchema& table, uint32_t id, store::StreamView view);
void close_stream(WriteContext& context, TableSchema& table);

// Removes shards that were closed at a time whose records are gone, and streams that have none left.
void trim_streams(WriteContext& context, const Streams& streams,
                  const std::function<bool(TimePoint)>& is_trimmed);

}  // namespace tabella::engine

#include "engine/verify.h"

#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "engine/database.h"
#include "engine/expiry.h"
#include "engine/item_keys.h"
#include "engine/keys.h"
#include "engine/prepare.h"
#include "engine/schema.h"
#include "engine/stream.h"
#include "engine/stream_record.h"
#include "item/attribute_json.h"
#include "item/check.h"

namespace tabella::engine {
namespace {

constexpr size_t kProblemsShown = 100;
constexpr uint64_t kProgressEvery = 1 << 16;

struct Tally {
  int64_t items = 0;
  int64_t bytes = 0;
  bool operator==(const Tally&) const = default;
};

class Verification {
 public:
  Verification(const Database& database, const std::function<void(uint64_t)>& progress)
      : database_(database), progress_(progress) {}

  VerifyReport run() {
    load_definitions();
    attempt([this] { load_streams(); });
    // Streams first: they say how each item should stand in the end.
    walk('s', [this](auto key, auto value) { check_record(key, value); });
    walk('i', [this](auto key, auto value) { check_item(key, value); });
    check_streams_end();
    walk('x', [this](auto key, auto value) { check_index_entry(key, value); });
    walk('e', [this](auto key, auto) { check_expiry_entry(key); });
    walk('t', [this](auto key, auto value) { check_token(key, value); });
    walk('a', [this](auto key, auto) { check_token_age(key); });
    attempt([this] { check_counters(); });
    attempt([this] { check_keyspaces(); });
    return std::move(report_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    ++report_.problems;
    if (report_.first_problems.size() < kProblemsShown)
      report_.first_problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void walk(char keyspace, const std::function<void(std::string_view, std::string_view)>& each) {
    const std::string from(1, keyspace);
    attempt([&] {
      for (auto cursor = database_.everything(from, keys::end_of(from)); cursor.valid(); cursor.next()) {
        if (++seen_ % kProgressEvery == 0 && progress_) progress_(seen_);
        each(cursor.key(), cursor.value());
      }
    });
  }

  void attempt(const std::function<void()>& check) {
    try {
      check();
    } catch (const DatabaseFailure& failure) {
      problem("what follows could not be read, and was left out: {}", failure.what());
    }
  }

  static std::string show(item::ItemView item) {
    std::string json;
    item::append_item_json(json, item);
    return json;
  }

  std::string show_key(const TableSchema& table, item::ItemView item) const {
    return fmt::format("table {}, item {}", table.name(), show(key_of(table, nullptr, item)));
  }

  // --- definitions

  void load_definitions() {
    walk('c', [this](std::string_view key, std::string_view value) {
      auto table = std::make_unique<TableSchema>(decode_schema(value));
      if (table->name() != key.substr(1))
        problem("the catalogue has table {} under the name {}", table->name(), key.substr(1));
      if (tables_.contains(table->id))
        problem("tables {} and {} have the same id", table->name(), tables_[table->id]->name());
      for (const auto& index : table->indexes) indexes_[index.id] = {table.get(), &index};
      if (table->expiry) expiries_[table->expiry->id] = table.get();
      if (table->definition.stream) streamed_[table->stream_id] = table.get();
      ++report_.tables;
      tables_[table->id] = std::move(table);
    });
  }

  void load_streams() {
    if (const auto stored = database_.get(keys::meta("sequence"))) {
      std::string_view in = *stored;
      sequence_ = take_varint(in);
    }
    walk('d', [this](std::string_view, std::string_view value) {
      auto stream = decode_stream(value);
      ++report_.streams;
      streams_[stream.id] = std::move(stream);
    });
    for (const auto& [id, table] : streamed_)
      if (!streams_.contains(id) || !streams_[id].enabled)
        problem("table {} has a stream that is not there or not enabled", table->name());
  }

  // --- items, indexes, expiry

  void check_item(std::string_view key, std::string_view value) {
    ++report_.items;
    const auto at = tables_.find(id_of(key));
    if (at == tables_.end()) return problem("an item belongs to a table that is not there: {}", to_hex(key));
    const auto& table = *at->second;
    if (!item::is_well_formed(value))
      return problem("table {} has an item that cannot be read: {}", table.name(), to_hex(key));
    const item::ItemView item(value);
    if (auto fits = tabella::engine::check_key(table, key_of(table, nullptr, item)); !fits)
      return problem("table {} has an item with a wrong key: {}", table.name(), show(item));
    if (item_key(table, item) != key) return problem("{} stands under another key", show_key(table, item));
    if (item.size() > kMaxItemSize) problem("{} is larger than 400 KB", show_key(table, item));
    count(table.id, item.size());
    for (const auto& index : table.indexes) check_indexed(table, index, item);
    check_due(table, key, item);
    check_streamed(table, key, item);
  }

  void check_indexed(const TableSchema& table, const IndexSchema& index, item::ItemView item) {
    if (index.status == store::Status::creating) return;
    const auto expected = index_entry(table, index, item);
    if (!expected) return;
    const auto found = database_.get(expected->key);
    if (!found)
      problem("{} is missing in index {}", show_key(table, item), index.name());
    else if (*found != expected->item.bytes())
      problem("{} stands in index {} as it was before", show_key(table, item), index.name());
  }

  void check_due(const TableSchema& table, std::string_view key, item::ItemView item) {
    if (!table.expiry || !table.expiry->filled) return;
    const auto due = due_second(*table.expiry, item);
    if (due && !database_.get(keys::expiry(table.expiry->id, *due, key)))
      problem("{} has no expiry entry", show_key(table, item));
  }

  void check_index_entry(std::string_view key, std::string_view value) {
    ++report_.index_entries;
    const auto at = indexes_.find(id_of(key));
    if (at == indexes_.end())
      return problem("an index entry belongs to an index that is not there: {}", to_hex(key));
    const auto& [table, index] = at->second;
    if (!item::is_well_formed(value))
      return problem("index {} of table {} has an entry that cannot be read: {}", index->name(),
                     table->name(), to_hex(key));
    const item::ItemView entry(value);
    if (!tabella::engine::check_key(*table, key_of(*table, nullptr, entry)))
      return problem("index {} of table {} has an entry with a wrong key: {}", index->name(), table->name(),
                     show(entry));
    count(index->id, entry.size());
    const auto item = database_.get(item_key(*table, entry));
    const auto expected = item && item::is_well_formed(*item)
                              ? index_entry(*table, *index, item::ItemView(*item))
                              : std::nullopt;
    if (!expected || expected->key != key)
      problem("index {} has an entry that its item does not have: {}", index->name(),
              show_key(*table, entry));
  }

  void check_expiry_entry(std::string_view key) {
    ++report_.expiry_entries;
    const auto at = expiries_.find(id_of(key));
    if (at == expiries_.end())
      return problem("an expiry entry belongs to a table that is not there: {}", to_hex(key));
    const auto& table = *at->second;
    const auto item = database_.get(keys::item_of_expiry(table.id, key));
    if (!item) return problem("table {} has an expiry entry without an item: {}", table.name(), to_hex(key));
    if (item::is_well_formed(*item) && due_second(*table.expiry, item::ItemView(*item)) != keys::due_of(key))
      problem("{} has an expiry entry for another time", show_key(table, item::ItemView(*item)));
  }

  // --- streams

  // How an item stands after its last record.
  struct Last {
    bool there = true;
    bool known = false;  // whether the view shows it whole
    uint64_t image = 0;
  };

  void check_record(std::string_view key, std::string_view value) {
    ++report_.records;
    const auto at = streams_.find(id_of(key));
    if (at == streams_.end())
      return problem("a record belongs to a stream that is not there: {}", to_hex(key));
    const auto& stream = at->second;
    const auto shard_id = get_u64(key.substr(5));
    const auto sequence = keys::sequence_of(key);
    const Shard* shard = nullptr;
    for (const auto& s : stream.shards)
      if (s.first == shard_id) shard = &s;
    if (!shard)
      return problem("stream {}: a record is in a shard that is not there: {}", stream.arn(), sequence);
    if (sequence <= shard->first || (shard->closed && sequence >= shard->last) || sequence > sequence_)
      problem("stream {}: record {} is outside of its shard {}", stream.arn(), sequence, shard->name());
    if (!is_whole_record(value))
      return problem("stream {}: record {} cannot be read", stream.arn(), sequence);
    const auto record = decode_record(value);
    check_chain(stream, *shard, sequence, record);
  }

  // Each record of an item begins where the one before it ended.
  void check_chain(const StreamSchema& stream, const Shard& shard, uint64_t sequence,
                   const RecordView& record) {
    const auto& image = record.new_image   ? *record.new_image
                        : record.old_image ? *record.old_image
                                           : *record.keys;
    item::ItemBuilder builder;
    for (const auto& key : stream.key_schema) {
      const auto value = image.find(key.name);
      if (!value) return problem("stream {}: record {} lacks the key {}", stream.arn(), sequence, key.name);
      builder.add(key.name, *value);
    }
    const auto key = builder.finish();
    const auto partition = key.find(stream.key_schema[0].name);
    if (!shard.covers(keys::hash64(partition->content())))
      problem("stream {}: record {} is in another item's shard", stream.arn(), sequence);
    auto& last = last_of_[stream.id];
    const auto name = keys::hash64(key.bytes());
    const auto before = last.find(name);
    const bool begins = record.event == store::StreamEvent::insert;
    if (before != last.end()) {
      const bool joins =
          before->second.there != begins &&
          (!record.old_image || !before->second.known || hash_of(*record.old_image) == before->second.image);
      if (!joins)
        problem("stream {}: record {} of {} does not follow the one before it", stream.arn(), sequence,
                show(key));
    }
    last[name] = {.there = record.event != store::StreamEvent::remove,
                  .known = record.new_image.has_value(),
                  .image = record.new_image ? hash_of(*record.new_image) : 0};
  }

  static uint64_t hash_of(item::ItemView item) {
    std::string bytes;
    item::append_canonical(bytes, item);
    return keys::hash64(bytes);
  }

  // An item stands as the last record of its stream says.
  void check_streamed(const TableSchema& table, std::string_view, item::ItemView item) {
    if (!table.definition.stream) return;
    auto& last = last_of_[table.stream_id];
    const auto at = last.find(keys::hash64(key_of(table, nullptr, item).bytes()));
    if (at == last.end()) return;  // not changed in a day, or since the stream was enabled
    if (!at->second.there || (at->second.known && at->second.image != hash_of(item)))
      problem("{} is not as the last record of its stream says", show_key(table, item));
    last.erase(at);
  }

  void check_streams_end() {
    for (const auto& [id, last] : last_of_) {
      const auto at = streamed_.find(id);
      if (at == streamed_.end()) continue;  // disabled: its table went on without it
      for (const auto& [name, state] : last)
        if (state.there)
          problem("table {}: an item that its stream says is there is not", at->second->name());
    }
  }

  // --- the rest

  void check_token(std::string_view key, std::string_view value) {
    ++report_.tokens;
    if (value.size() < 8 || !database_.get(keys::token_by_age(get_u64(value), key.substr(1))))
      problem("an idempotency token would never be forgotten: {}", key.substr(1));
  }

  void check_token_age(std::string_view key) {
    if (key.size() < 9) problem("the age of a token cannot be read: {}", to_hex(key));
  }

  void check_counters() {
    const auto check = [&](uint32_t id, const std::string& what) {
      Counters counters;
      if (const auto stored = database_.get(keys::counters(id))) decode_counters(*stored, counters);
      const Tally stored{counters.items, counters.bytes};
      if (stored != tallies_[id])
        problem("{} counts {} items and {} bytes, and has {} and {}", what, stored.items, stored.bytes,
                tallies_[id].items, tallies_[id].bytes);
    };
    for (const auto& [id, table] : tables_) {
      check(id, fmt::format("table {}", table->name()));
      for (const auto& index : table->indexes)
        if (index.status != store::Status::creating)
          check(index.id, fmt::format("index {} of table {}", index.name(), table->name()));
    }
  }

  // Nothing else is in a store.
  void check_keyspaces() {
    constexpr std::string_view kKnown = "acdeimnstx";
    std::string from;
    for (const char keyspace : kKnown) {
      check_empty(from, std::string(1, keyspace));
      from = keys::end_of(std::string(1, keyspace));
    }
    check_empty(from, std::string(1, '\xff'));
  }

  void check_empty(const std::string& from, const std::string& to) {
    if (from >= to) return;
    if (auto cursor = database_.everything(from, to); cursor.valid())
      problem("there is something that no version of this program writes: {}", to_hex(cursor.key()));
  }

  static uint32_t id_of(std::string_view key) { return static_cast<uint32_t>(get_u64(key.substr(1)) >> 32); }

  void count(uint32_t id, size_t bytes) {
    auto& tally = tallies_[id];
    ++tally.items;
    tally.bytes += static_cast<int64_t>(bytes);
  }

  const Database& database_;
  const std::function<void(uint64_t)>& progress_;
  VerifyReport report_;
  uint64_t seen_ = 0;
  uint64_t sequence_ = 0;
  std::map<uint32_t, std::unique_ptr<TableSchema>> tables_;
  std::map<uint32_t, std::pair<const TableSchema*, const IndexSchema*>> indexes_;
  std::map<uint32_t, const TableSchema*> expiries_;
  std::map<uint32_t, const TableSchema*> streamed_;  // by the id of the stream that is enabled
  std::map<uint32_t, StreamSchema> streams_;
  std::unordered_map<uint32_t, Tally> tallies_;
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, Last>> last_of_;  // by stream and item
};

}  // namespace

VerifyReport verify(const std::filesystem::path& folder, const std::function<void(uint64_t)>& progress) {
  // Whatever keeps the store from being opened is all there is to say: without it nothing can be believed.
  Database::require_not_in_use(folder);
  auto check = check_folder(folder, UINT64_MAX);
  if (check.is_new) throw std::runtime_error(fmt::format("there is no store in {}", folder.string()));
  if (!check.problems.empty())
    return {.problems = check.problems.size(), .first_problems = std::move(check.problems)};
  const auto database = Database::open_to_read(folder);
  return Verification(*database, progress).run();
}

}  // namespace tabella::engine

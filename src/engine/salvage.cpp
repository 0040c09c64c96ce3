#include "engine/salvage.h"

#include <algorithm>
#include <future>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "base/ids.h"
#include "engine/change.h"
#include "engine/database.h"
#include "engine/engine.h"
#include "engine/folder_check.h"
#include "engine/item_keys.h"
#include "engine/keys.h"
#include "engine/stream_record.h"
#include "item/check.h"

namespace tabella::engine {
namespace {

namespace fs = std::filesystem;

// A copy that RocksDB may change. Data files never change: a second name for them is enough.
void copy_store(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
    const auto target = to / entry.path().filename();
    const auto extension = entry.path().extension();
    std::error_code error;
    if (extension == ".sst" || extension == ".blob") fs::create_hard_link(entry.path(), target, error);
    if (!fs::exists(target)) fs::copy_file(entry.path(), target);
  }
}

// Reads [prefix, its end) past whatever is damaged.
class DamagedRange {
 public:
  using Each = std::function<void(std::string_view key, std::string_view value)>;

  DamagedRange(const Database& database, std::string prefix, Each each)
      : database_(database),
        prefix_(std::move(prefix)),
        end_(keys::end_of(prefix_)),
        each_(std::move(each)) {}

  // How many places could not be read.
  uint64_t read() {
    uint64_t gaps = 0;
    auto from = prefix_;
    while (!read_from(from)) {
      ++gaps;
      const auto next = place_after(std::max(from, last_));
      if (!next) break;
      from = *next;
    }
    return gaps;
  }

 private:
  // False if it could not be read to its end.
  bool read_from(const std::string& from) {
    try {
      for (auto cursor = database_.everything(from, end_); cursor.valid(); cursor.next()) {
        last_ = cursor.key();
        each_(cursor.key(), cursor.value());
      }
      return true;
    } catch (const DatabaseFailure&) {
      return false;
    }
  }

  bool can_read_at(const std::string& place) const {
    try {
      const auto cursor = database_.everything(place, end_);
      static_cast<void>(cursor.valid());  // throws if what comes next cannot be read
      return true;
    } catch (const DatabaseFailure&) {
      return false;
    }
  }

  // The nearest place after the key that can be read, found byte by byte.
  std::optional<std::string> place_after(const std::string& key) const {
    constexpr size_t kFurther = 24;
    std::optional<std::string> best;
    auto base = prefix_;
    bool along = true;  // `base` is the beginning of the key
    for (size_t i = prefix_.size(); i < key.size() + kFurther; ++i) {
      along = along && i < key.size();
      int bad = along ? static_cast<uint8_t>(key[i]) : -1;
      int good = 256;
      while (bad + 1 < good) {
        const int middle = (bad + good) / 2;
        (can_read_at(base + static_cast<char>(middle)) ? good : bad) = middle;
      }
      if (good < 256) best = base + static_cast<char>(good);
      if (good == 0) break;
      along = along && good - 1 == static_cast<uint8_t>(key[i]);
      base.push_back(static_cast<char>(good - 1));
    }
    return best;
  }

  const Database& database_;
  const std::string prefix_;
  const std::string end_;
  const Each each_;
  std::string last_;
};

}  // namespace

// Runs changes in the new store.
class Salvage {
 public:
  Salvage(const Database& damaged, Engine& fresh, const std::function<void(uint64_t)>& progress)
      : damaged_(damaged), fresh_(fresh), progress_(progress) {}

  SalvageReport run() {
    std::vector<TableSchema> tables;
    const auto prefix = keys::catalogue_entry("");
    try {
      for (auto cursor = damaged_.everything(prefix, keys::end_of(prefix)); cursor.valid(); cursor.next())
        tables.push_back(decode_schema(cursor.value()));
    } catch (const DatabaseFailure&) {
      report_.lost = true;
      report_.remarks.emplace_back(
          "the list of tables is damaged: there may be tables that are not named here");
    }
    for (const auto& table : tables) copy_table(table);
    return std::move(report_);
  }

 private:
  void change(const std::function<void(WriteContext&)>& change) {
    boost::asio::io_context context;
    auto done = boost::asio::co_spawn(context, fresh_.writer_.execute([&](WriteContext& c) { change(c); }),
                                      boost::asio::use_future);
    context.run();
    if (const auto written = done.get(); !written) throw std::runtime_error(written.error().message);
  }

  void copy_table(const TableSchema& old) {
    auto& told = report_.tables.emplace_back();
    told.name = old.name();
    try {
      Counters counters;
      if (const auto stored = damaged_.get(keys::counters(old.id))) decode_counters(*stored, counters);
      told.expected = counters.items;
    } catch (const DatabaseFailure&) {
      told.expected = -1;
    }
    const auto stream = old.definition.stream;
    change([&](WriteContext& context) { context.put_table(renewed(context, old)); });
    std::vector<item::Item> items;
    size_t bytes = 0;
    const auto flush = [&] {
      if (!items.empty()) change([&](WriteContext& context) { write(context, told.name, items); });
      items.clear();
      bytes = 0;
    };
    DamagedRange range(damaged_, keys::items_of(old.id), [&](std::string_view, std::string_view value) {
      if (!item::is_well_formed(value)) {
        ++told.unreadable;
        return;
      }
      items.emplace_back(std::string(value));
      bytes += value.size();
      ++told.copied;
      if (++copied_ % 4096 == 0 && progress_) progress_(copied_);
      if (items.size() >= 256 || bytes >= (1u << 20)) flush();
    });
    told.gaps = range.read();
    flush();
    if (!stream) return;
    change([&](WriteContext& context) {
      auto table = std::make_shared<TableSchema>(*context.table(told.name));
      open_stream(context, *table, fresh_.take_id(context), *stream);
      context.put_table(std::move(table));
    });
    report_.remarks.push_back(
        fmt::format("the stream of table {} begins anew: its records were not copied", told.name));
  }

  // The same table with ids of the new store.
  SchemaPtr renewed(WriteContext& context, const TableSchema& old) {
    auto table = std::make_shared<TableSchema>(old);
    table->id = fresh_.take_id(context);
    table->counters = std::make_shared<Counters>();
    for (auto& index : table->indexes) {
      index.id = fresh_.take_id(context);
      index.counters = std::make_shared<Counters>();
      index.status = store::Status::active;
      index.filled_to = nullptr;
    }
    if (table->expiry) {
      table->expiry = Expiry{.id = fresh_.take_id(context), .attribute = table->expiry->attribute};
      table->expiry->filled = true;
      *table->expiry->swept_to = keys::expiries_of(table->expiry->id);
    }
    table->definition.stream.reset();
    return table;
  }

  static void write(WriteContext& context, const std::string& name, std::vector<item::Item>& items) {
    const auto table = context.table(name);
    for (auto& item : items) {
      ItemChange change{.key = item_key(*table, item), .old = {}, .now = {}};
      change.now = std::move(item);
      write_change(context, *table, change, nullptr);
    }
  }

  const Database& damaged_;
  Engine& fresh_;
  const std::function<void(uint64_t)>& progress_;
  uint64_t copied_ = 0;
  SalvageReport report_;
};

bool SalvageReport::complete() const {
  return !lost && std::ranges::all_of(tables, [](const Table& table) {
    return table.unreadable == 0 && table.gaps == 0 && static_cast<int64_t>(table.copied) >= table.expected &&
           table.expected >= 0;
  });
}

SalvageReport salvage(const fs::path& from, const fs::path& to,
                      const std::function<void(uint64_t)>& progress) {
  if (fs::exists(to) && !fs::is_empty(to))
    throw std::runtime_error(fmt::format("{} is not empty; name a new folder", to.string()));
  Database::require_not_in_use(from);
  const auto check = check_folder(from, 0);
  if (check.is_new) throw std::runtime_error(fmt::format("there is no store in {}", from.string()));
  const auto work = fs::path(to).concat(fmt::format(".{}.work", make_uuid()));
  copy_store(from, work);
  SalvageReport report;
  {
    const auto damaged = Database::open_to_salvage(work, check.manifest_is_sound);
    const SystemClock clock;
    Engine fresh({.folder = to}, clock);
    report = Salvage(*damaged, fresh, progress).run();
    fresh.close();
  }
  fs::remove_all(work);
  for (const auto& problem : check.problems) {
    report.lost = report.lost || check.manifest_is_sound;  // else all that there is was found
    report.remarks.push_back("found: " + problem);
  }
  return report;
}

}  // namespace tabella::engine

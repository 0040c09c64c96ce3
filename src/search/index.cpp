#include "search/index.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/ids.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::search {

using item::Item;
using store::Async;
using store::BatchWrite;
using store::Binary;
using store::Row;

namespace {

constexpr const char* kPart = "part";
constexpr const char* kName = "name";
constexpr const char* kBody = "body";
constexpr const char* kExpires = "expires";
constexpr const char* kManifest = "manifest";
constexpr size_t kMostDirectories = 2048;
constexpr size_t kMostInRow = 300 * 1024;  // of a document: an item holds 400 KB
constexpr size_t kMostRows = 16;           // of a document
constexpr int64_t kNever = 9'999'999'999;  // seconds: what is taken away long before that
constexpr int64_t kSlack = 24 * 3600;      // rows of a segment outlive its documents, but not for long

Row row_of(const std::string& part, const std::string& name) {
  return Row().set(kPart, part).set(kName, name);
}
Item key_of(const std::string& part, const std::string& name) { return row_of(part, name); }

Item row_with(const std::string& part, const std::string& name, std::string_view body, int64_t expires) {
  auto row = row_of(part, name);
  if (!body.empty()) row.set(kBody, Binary(body));
  return row.set(kExpires, expires);
}

std::string body_of(item::ItemView row) { return store::binary_of(row, kBody); }

std::string segment_part(const std::string& id) { return "segment|" + id; }
std::string document_part(const std::string& id) { return "document|" + id; }
std::string label_part(const std::string& label) { return "label|" + label; }

}  // namespace

store::TablePlan Index::plan(const std::string& table) {
  return store::plan_table(table, {{kPart, item::Type::S}, {kName, item::Type::S}}, kExpires);
}

Async<Manifest> Index::manifest() {
  TABELLA_CO_ASSIGN(
      auto got,
      co_await store_.get_item({.table = table_, .key = key_of(kManifest, kManifest), .consistent = true}));
  if (!got.item) co_return Manifest{};
  co_return decode_manifest(store::number_of(*got.item, "version"), body_of(*got.item));
}

Async<bool> Index::commit(Manifest next) {
  const auto nonce = make_uuid();
  auto row = row_of(kManifest, kManifest)
                 .set("version", next.version + 1)
                 .set("nonce", nonce)
                 .set(kBody, Binary(encode(next)));
  TABELLA_CO_ASSIGN(
      const bool made,
      store::was_made(co_await store_.put_item(
          store::Put(table_, row)
              .when(next.version == 0 ? store::absent("version") : store::equals("version", next.version)))));
  if (made) co_return true;
  // An answer may have been lost, and the put sent again: the row says whose it is.
  TABELLA_CO_ASSIGN(
      const auto got,
      co_await store_.get_item({.table = table_, .key = key_of(kManifest, kManifest), .consistent = true}));
  co_return got.item&& store::text_of(*got.item, "nonce") == nonce;
}

Async<SegmentInfo> Index::write_segment(SegmentBlocks blocks, std::vector<Entry> entries) {
  SegmentInfo info{.id = make_uuid(),
                   .first = entries.front().id,
                   .last = entries.back().id,
                   .count = entries.size(),
                   .term_blocks = blocks.terms.size(),
                   .entry_blocks = blocks.entries.size()};
  const auto [least, most] = std::ranges::minmax_element(entries, {}, &Entry::expires);
  info.first_expiry = least->expires;
  info.last_expiry = most->expires;
  const auto part = segment_part(info.id);
  const auto expires = info.last_expiry + kSlack;
  std::vector<BatchWrite> writes;
  const auto add = [&](const std::string& name, const std::string& body) {
    writes.push_back({.put = true, .item = row_with(part, name, body, expires)});
  };
  add("d", blocks.directory);
  for (size_t i = 0; i < blocks.terms.size(); ++i) add(term_block(i), blocks.terms[i]);
  for (size_t i = 0; i < blocks.entries.size(); ++i) add(entry_block(i), blocks.entries[i]);
  TABELLA_CO_TRY(co_await store::write_all(store_, table_, std::move(writes)));
  co_return info;
}

Async<void> Index::remove_segment(SegmentInfo segment) {
  std::vector<std::string> names = {"d"};
  for (size_t i = 0; i < segment.term_blocks; ++i) names.push_back(term_block(i));
  for (size_t i = 0; i < segment.entry_blocks; ++i) names.push_back(entry_block(i));
  co_return co_await remove_names(segment_part(segment.id), names);
}

Async<std::shared_ptr<const Directory>> Index::directory(const SegmentInfo& segment) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = directories_.find(segment.id); found != directories_.end())
      co_return found->second;
  }
  TABELLA_CO_ASSIGN(auto got,
                    co_await store_.get_item(
                        {.table = table_, .key = key_of(segment_part(segment.id), "d"), .consistent = true}));
  if (!got.item)
    co_return store::fail(store::ErrorCode::resource_not_found, "a segment of the index is gone");
  auto directory = std::make_shared<const Directory>(body_of(*got.item));
  const std::lock_guard lock(mutex_);
  if (directories_.emplace(segment.id, directory).second) kept_.push_back(segment.id);
  if (kept_.size() > kMostDirectories) {
    directories_.erase(kept_.front());
    kept_.pop_front();
  }
  co_return directory;
}

Async<std::map<Index::BlockName, std::string>> Index::blocks(std::vector<BlockName> names) {
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::vector<Item> keys;
  keys.reserve(names.size());
  for (const auto& [segment, name] : names) keys.push_back(key_of(segment_part(segment), name));
  TABELLA_CO_ASSIGN(auto items, co_await store::get_all(store_, table_, std::move(keys)));
  // Their segment was merged into another one, and some time has passed since.
  if (items.size() < names.size())
    co_return store::fail(store::ErrorCode::resource_not_found, "a segment of the index is gone");
  std::map<BlockName, std::string> found;
  for (const auto& row : items)
    found.emplace(
        BlockName(store::text_of(row, kPart).substr(segment_part("").size()), store::text_of(row, kName)),
        body_of(row));
  co_return found;
}

Async<std::vector<Entry>> Index::entries(SegmentInfo segment) {
  std::vector<BlockName> names;
  for (size_t i = 0; i < segment.entry_blocks; ++i) names.emplace_back(segment.id, entry_block(i));
  TABELLA_CO_ASSIGN(auto found, co_await blocks(names));
  std::vector<Entry> all;
  for (const auto& name : names)
    for (auto& entry : read_entries(found[name])) all.push_back(std::move(entry));
  co_return all;
}

Async<void> Index::put_documents(const std::vector<Document>& documents) {
  std::vector<BatchWrite> writes;
  for (const auto& document : documents) {
    const auto bytes = encode_pieces(document);
    const size_t rows = std::clamp<size_t>((bytes.size() + kMostInRow - 1) / kMostInRow, 1, kMostRows);
    for (size_t i = 0; i < rows; ++i) {
      auto row = row_of(document_part(document.id), std::to_string(i));
      const auto body = std::string_view(bytes).substr(std::min(i * kMostInRow, bytes.size()), kMostInRow);
      if (!body.empty()) row.set(kBody, Binary(body));
      row.set(kExpires, document.expires);
      if (i == 0 && rows > 1) row.set("more", rows - 1);
      writes.push_back({.put = true, .item = row});
    }
  }
  co_return co_await store::write_all(store_, table_, std::move(writes));
}

Async<void> Index::look_at_documents(const std::vector<std::string>& ids, const Look& look, Pace& pace) {
  std::vector<Item> keys;
  for (const auto& id : ids) keys.push_back(key_of(document_part(id), "0"));
  TABELLA_CO_ASSIGN(auto items, co_await store::get_all(store_, table_, std::move(keys)));
  for (const auto& row : items) {
    if (!co_await pace.go_on()) co_return too_late();
    const auto part = store::text_of(row, kPart);
    const auto id = part.substr(document_part("").size());
    const auto body = row.find(kBody);
    const auto more = store::number_of(row, "more");
    if (more == 0) {
      look(id, body ? body->content() : std::string_view());
      continue;
    }
    std::string whole = body_of(row);
    for (int64_t i = 1; i <= more; ++i) {
      TABELLA_CO_ASSIGN(auto next,
                        co_await store_.get_item(
                            {.table = table_, .key = key_of(part, std::to_string(i)), .consistent = true}));
      if (next.item) whole.append(body_of(*next.item));
    }
    look(id, whole);
  }
  co_return store::Result<void>();
}

Async<void> Index::remove_documents(const std::vector<std::string>& ids,
                                    const std::vector<std::string>& large) {
  std::vector<BatchWrite> writes;
  for (const auto& id : ids) writes.push_back({.put = false, .item = key_of(document_part(id), "0")});
  for (const auto& id : large)
    for (size_t i = 1; i < kMostRows; ++i)
      writes.push_back({.put = false, .item = key_of(document_part(id), std::to_string(i))});
  co_return co_await store::write_all(store_, table_, std::move(writes));
}

Async<void> Index::add_gone(const std::vector<std::pair<std::string, int64_t>>& ids) {
  std::vector<BatchWrite> writes;
  for (const auto& [id, expires] : ids)
    writes.push_back({.put = true, .item = row_with("gone", id, {}, expires)});
  return store::write_all(store_, table_, std::move(writes));
}
Async<std::vector<std::string>> Index::gone() { return names_in("gone"); }
Async<void> Index::remove_gone(const std::vector<std::string>& ids) { return remove_names("gone", ids); }
Async<bool> Index::is_gone(const std::string& id) {
  TABELLA_CO_ASSIGN(
      auto got, co_await store_.get_item({.table = table_, .key = key_of("gone", id), .consistent = true}));
  co_return got.item.has_value();
}

Async<void> Index::add_late(const std::string& id) {
  TABELLA_CO_TRY(co_await store_.put_item({.table = table_, .item = row_with("late", id, {}, kNever)}));
  co_return store::Result<void>();
}
Async<std::vector<std::string>> Index::late(size_t most) {
  TABELLA_CO_ASSIGN(auto page, co_await store_.query(rows_of("late", static_cast<int64_t>(most))));
  std::vector<std::string> ids;
  for (const auto& row : page.items) ids.push_back(store::text_of(row, kName));
  co_return ids;
}
Async<void> Index::remove_late(const std::vector<std::string>& ids) { return remove_names("late", ids); }

Async<void> Index::add_label(std::string label, std::string id, int64_t expires) {
  TABELLA_CO_TRY(
      co_await store_.put_item({.table = table_, .item = row_with(label_part(label), id, {}, expires)}));
  // The label is there as long as the last document that has it.
  TABELLA_CO_TRY(store::was_made(
      co_await store_.put_item(store::Put(table_, row_with("labels", label, {}, expires))
                                   .when(store::absent(kExpires) || store::less(kExpires, expires)))));
  co_return store::Result<void>();
}

Async<void> Index::remove_label(std::string label, std::string id) {
  TABELLA_CO_TRY(co_await store_.delete_item({.table = table_, .key = key_of(label_part(label), id)}));
  co_return store::Result<void>();
}
Async<std::vector<std::string>> Index::labelled(const std::string& label) {
  return names_in(label_part(label));
}
Async<std::vector<std::string>> Index::labels(int64_t now) { return names_in("labels", now); }

store::Query Index::rows_of(const std::string& part, int64_t at_once) const {
  return store::Query(table_).partition(kPart, part).consistent().limit(at_once);
}

Async<std::vector<std::string>> Index::names_in(std::string part, int64_t now) {
  constexpr int64_t kAtOnce = 2000;  // small as the rows are, a full page of them would take long
  TABELLA_CO_ASSIGN(auto rows, co_await store::query_all(store_, rows_of(part, kAtOnce)));
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (now == 0 || store::number_of(row, kExpires) > now) names.push_back(store::text_of(row, kName));
  co_return names;
}

Async<void> Index::remove_all_rows(const std::function<void(size_t)>& removed) {
  store::ScanRequest request = store::Scan(table_).only({kPart, kName}).consistent();
  size_t count = 0;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.scan(request));
    std::vector<BatchWrite> writes;
    for (const auto& row : page.items)
      if (store::text_of(row, kPart) != kManifest)
        writes.push_back(
            {.put = false, .item = key_of(store::text_of(row, kPart), store::text_of(row, kName))});
    count += writes.size();
    TABELLA_CO_TRY(co_await store::write_all(store_, table_, std::move(writes)));
    removed(count);
    if (!page.last_key) break;
    request.options.start_key = std::move(page.last_key);
  }
  // They were read from rows that are gone.
  const std::lock_guard lock(mutex_);
  directories_.clear();
  kept_.clear();
  co_return store::Result<void>();
}

Async<void> Index::remove_names(const std::string& part, const std::vector<std::string>& names) {
  std::vector<BatchWrite> writes;
  for (const auto& name : names) writes.push_back({.put = false, .item = key_of(part, name)});
  return store::write_all(store_, table_, std::move(writes));
}

}  // namespace tabella::search

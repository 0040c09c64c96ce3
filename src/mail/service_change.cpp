// What is done to messages that are there: they are deleted, read and tagged.
#include <algorithm>

#include "mail/service.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::mail {

using store::Async;
using store::error_of;

// Without its chunks: another item has them.
Async<void> Mail::remove_item(const Message& message) {
  std::vector<std::pair<std::string, int64_t>> ids;
  ids.emplace_back(message.id, message.expires);
  TABELLA_CO_TRY(co_await index_.add_gone(ids));
  TABELLA_CO_TRY(co_await store_.delete_item(
      {.table = options_.messages, .key = key_of(message.id, message.granularity)}));
  co_return store::Result<void>();
}

Async<bool> Mail::remove(std::string id) {
  TABELLA_CO_ASSIGN(auto message, co_await load(std::move(id)));
  if (!message) co_return false;
  std::vector<std::string> ids;
  ids.push_back(message->id);
  TABELLA_CO_TRY(co_await remove_many(std::move(ids)));
  co_return true;
}

Async<void> Mail::remove_many(std::vector<std::string> ids, bool noted) {
  constexpr size_t kAtOnce = 100;
  Pace pace;
  for (size_t at = 0; at < ids.size(); at += kAtOnce) {
    co_await pace.go_on();
    TABELLA_CO_TRY(
        co_await remove_some(std::span(ids).subspan(at, std::min(kAtOnce, ids.size() - at)), noted));
  }
  co_return store::Result<void>();
}

// Somebody else has deleted them, over the store's own API.
Async<void> Mail::forget(std::vector<std::string> ids) {
  // The indexer takes the notes away once it has made their segments anew: long before that.
  constexpr int64_t kLong = 100LL * 365 * 86400;
  std::vector<std::pair<std::string, int64_t>> gone;
  for (const auto& id : ids) gone.emplace_back(id, now() / kSecond + kLong);
  TABELLA_CO_TRY(co_await index_.add_gone(gone));
  co_return co_await index_.remove_documents(ids, ids);
}

// First it is said that they are gone — the indexer may be taking them in at this moment — then they go.
Async<void> Mail::remove_some(std::span<const std::string> ids, bool noted) {
  constexpr size_t kMayHaveSeveralRows = 100 * 1024;  // of its document
  TABELLA_CO_ASSIGN(auto messages, co_await read_rows(ids, without_message()));
  std::vector<std::string> missing;
  for (const auto& id : ids)
    if (!noted && !messages.contains(id)) missing.push_back(id);
  TABELLA_CO_TRY(co_await forget(std::move(missing)));
  std::vector<std::pair<std::string, int64_t>> gone;
  std::vector<std::string> documents;
  std::vector<std::string> large;
  std::vector<store::BatchWrite> deletes;
  std::vector<store::BatchWrite> chunks;
  for (const auto& [id, message] : messages) {
    gone.emplace_back(id, message.expires);
    documents.push_back(id);
    if (message.size > kMayHaveSeveralRows) large.push_back(id);
    deletes.push_back({.put = false, .item = key_of(id, message.granularity)});
    for (auto& key : chunk_keys(message)) chunks.push_back({.put = false, .item = std::move(key)});
  }
  if (!noted) {
    TABELLA_CO_TRY(co_await index_.add_gone(gone));
  }
  auto deleted = co_await store::write_all(store_, options_.messages, std::move(deletes));
  if (deleted) deleted = co_await store::write_all(store_, options_.messages, std::move(chunks));
  if (!deleted) co_return error_of(deleted);
  for (const auto& [id, message] : messages)
    for (const auto& label : labels_of(message)) {
      TABELLA_CO_TRY(co_await index_.remove_label(label, id));
    }
  co_return co_await index_.remove_documents(documents, large);
}

// The segments go all at once, by a new manifest; their rows and messages follow (mail/indexer.h). The tail
// goes one by one.
Async<void> Mail::remove_all() {
  Pace pace;
  while (true) {
    TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
    observe(manifest);
    TABELLA_CO_ASSIGN(auto ids, co_await tail(manifest.indexed_to, pace));
    if (!manifest.segments.empty()) {
      auto next = std::move(manifest);
      for (auto& segment : next.segments)
        next.condemned.push_back(
            {.segment = std::move(segment), .since = now() / kSecond, .documents = true});
      next.segments.clear();
      TABELLA_CO_ASSIGN(auto committed, co_await index_.commit(std::move(next)));
      if (!committed) continue;
    }
    co_return co_await remove_many(std::move(ids));
  }
}

// From the newest to the oldest: each round looks only at what is older than the round before has seen. So it
// ends, whatever the index says, and what comes meanwhile stays.
Async<size_t> Mail::remove_found(Filter filter, Deadline deadline) {
  constexpr size_t kAtOnce = 500;
  size_t removed = 0;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await find(filter, 0, kAtOnce, Load::keys, deadline));
    if (page.ids.empty()) co_return removed;
    std::vector<std::string> ids;
    for (const auto& message : page.messages) ids.push_back(message.id);
    removed += ids.size();
    TABELLA_CO_TRY(co_await remove_many(std::move(ids)));
    filter.until = page.ids.back();
  }
}

Async<bool> Mail::set_read(std::string id, bool read) {
  TABELLA_CO_ASSIGN(auto message, co_await load(std::move(id)));
  if (!message) co_return false;
  id = message->id;
  TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(
                                         store::Update(options_.messages, key_of(id, message->granularity))
                                             .set(kRead, read)
                                             .when(store::exists(kId)))));
  if (!made) co_return false;
  TABELLA_CO_TRY(read ? co_await index_.add_label(kReadLabel, id, message->expires)
                      : co_await index_.remove_label(kReadLabel, id));
  co_return true;
}

Async<bool> Mail::set_tags(std::string id, std::vector<std::string> tags) {
  TABELLA_CO_ASSIGN(auto message, co_await load(std::move(id)));
  if (!message) co_return false;
  id = message->id;
  std::ranges::sort(tags);
  tags.erase(std::ranges::unique(tags).begin(), tags.end());
  auto update = store::Update(options_.messages, key_of(id, message->granularity)).when(store::exists(kId));
  if (tags.empty())
    update.remove(kTags);
  else
    update.set(kTags, tags);
  TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(std::move(update))));
  if (!made) co_return false;
  for (const auto& tag : tags) {
    TABELLA_CO_TRY(co_await index_.add_label(tag_label(tag), id, message->expires));
  }
  for (const auto& tag : message->tags) {
    if (std::ranges::binary_search(tags, tag)) continue;
    TABELLA_CO_TRY(co_await index_.remove_label(tag_label(tag), id));
  }
  co_return true;
}

}  // namespace tabella::mail

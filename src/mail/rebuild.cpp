// The search index, made anew from the messages themselves.
#include <algorithm>

#include <fmt/format.h>

#include "mail/indexer.h"

namespace tabella::mail {

using store::Async;
using store::error_of;

// Messages whose deletion has been acknowledged and is not done yet: without the index nobody would know
// which they are, and they would come back.
Async<void> Indexer::finish_deleting() {
  while (true) {
    TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
    if (std::ranges::none_of(manifest.condemned, &search::Condemned::documents))
      co_return store::Result<void>();
    TABELLA_CO_TRY(co_await clear_away());
  }
}

// An index without segments: from here on all messages behind `indexed_to` are to be taken in.
Async<void> Indexer::start_over(const std::string& indexed_to, uint64_t traits) {
  while (true) {
    TABELLA_CO_TRY(co_await finish_deleting());
    TABELLA_CO_ASSIGN(auto next, co_await index_.manifest());
    next.indexed_to = indexed_to;
    next.traits |= traits;
    for (auto& segment : next.segments)
      next.condemned.push_back(
          {.segment = std::move(segment), .since = mail_.now() / kSecond, .documents = false});
    next.segments.clear();
    mail_.observe(next);
    TABELLA_CO_ASSIGN(auto committed, co_await index_.commit(std::move(next)));
    if (committed) co_return store::Result<void>();
  }
}

// Looks at every message once, and puts its labels where searches look for them.
Async<Indexer::Inventory> Indexer::take_inventory(const Progress& progress) {
  Inventory inventory;
  Pace pace;
  store::ScanRequest request = store::Scan(mail_.options().messages).only(without_message()).consistent();
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await mail_.store().scan(request));
    for (const auto& row : page.items) {
      co_await pace.go_on();
      const auto message = to_message(row);
      if (!message || message->expires <= mail_.now() / kSecond) continue;
      if (inventory.messages++ == 0 || message->created < inventory.oldest)
        inventory.oldest = message->created;
      inventory.granularities |= 1u << static_cast<unsigned>(message->granularity);
      for (const auto& label : labels_of(*message)) {
        TABELLA_CO_TRY(co_await index_.add_label(label, message->id, message->expires));
      }
    }
    progress(fmt::format("{} messages counted", inventory.messages));
    if (!page.last_key) co_return inventory;
    request.options.start_key = std::move(page.last_key);
  }
}

// Until nothing is taken in any more.
Async<void> Indexer::index_all(size_t messages, const Progress& progress) {
  for (std::string before;;) {
    auto worked = co_await take_in();
    if (worked) worked = co_await merge_some();
    if (!worked) co_return error_of(worked);
    TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
    if (manifest.indexed_to == before) co_return store::Result<void>();
    before = manifest.indexed_to;
    size_t indexed = 0;
    for (const auto& segment : manifest.segments) indexed += segment.count;
    progress(fmt::format("{} of {} messages indexed", indexed, messages));
  }
}

Async<Indexer::Rebuilt> Indexer::rebuild(const Progress& progress) {
  // Twice: what others have built meanwhile, on rows that went, is not to be relied on either.
  TABELLA_CO_TRY(co_await start_over("", 0));
  TABELLA_CO_TRY(co_await index_.remove_all_rows(
      [&](size_t rows) { progress(fmt::format("{} rows of the old index removed", rows)); }));
  TABELLA_CO_ASSIGN(auto inventory, co_await take_inventory(progress));
  const auto begin = inventory.messages > 0 ? id_prefix(inventory.oldest - 1) + "|" : std::string();
  TABELLA_CO_TRY(co_await start_over(begin, inventory.granularities));
  TABELLA_CO_TRY(co_await index_all(inventory.messages, progress));
  Pace pace;
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  co_return Rebuilt{.messages = inventory.messages, .indexed = snapshot.count()};
}

}  // namespace tabella::mail

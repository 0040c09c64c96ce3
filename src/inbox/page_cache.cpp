#include "inbox/page_cache.h"

#include <fmt/format.h>

namespace tabella::inbox {

namespace {

constexpr size_t kBookkeeping = 200;  // of a page, beside its text

}  // namespace

std::string PageCache::key_of(const Box& box, const FeedRequest& request) {
  // With lengths: whatever a part is, it is not taken for two.
  const auto partition = box.partition();
  return fmt::format("{}:{}{}:{}{}/{}/{}", partition.size(), partition, request.before.size(), request.before,
                     request.limit, static_cast<int>(request.show),
                     request.category ? "=" + *request.category : "");
}

std::shared_ptr<const PageCache::Page> PageCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  pages_.splice(pages_.begin(), pages_, found->second);
  return found->second->page;
}

void PageCache::keep(std::string key, std::shared_ptr<const Page> page) {
  const std::lock_guard lock(mutex_);
  if (const auto before = by_key_.find(key); before != by_key_.end()) forget(before->second);
  pages_.push_front({.key = std::move(key), .page = std::move(page)});
  by_key_.emplace(pages_.front().key, pages_.begin());
  bytes_ += bytes_of(pages_.front());
  while (bytes_ > most_bytes_) forget(std::prev(pages_.end()));
}

size_t PageCache::bytes_of(const Kept& kept) {
  return kept.key.size() + kept.page->json.size() + kBookkeeping;
}

void PageCache::forget(std::list<Kept>::iterator kept) {
  bytes_ -= bytes_of(*kept);
  by_key_.erase(kept->key);
  pages_.erase(kept);
}

}  // namespace tabella::inbox

// Pages of feeds as they were answered last: one in which nothing has changed is neither read nor written
// again. Whether that is so is asked each time (KnownPage); so a page from here is as exact as any.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "inbox/boxes.h"

namespace tabella::inbox {

// Thread-safe.
class PageCache {
 public:
  struct Page {
    KnownPage known;
    std::string json;
  };

  explicit PageCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  static std::string key_of(const Box& box, const FeedRequest& request);
  // Nothing: there is none.
  std::shared_ptr<const Page> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const Page> page);

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const Page> page;
  };
  static size_t bytes_of(const Kept& kept);
  void forget(std::list<Kept>::iterator kept);

  const size_t most_bytes_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Kept> pages_;  // what was asked for last comes first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace tabella::inbox

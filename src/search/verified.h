// What was found out by looking into documents: which of a segment's have the texts that a search is for.
// Neither a segment nor the text of a document ever changes, so what was found out once holds: whoever asks
// the same again, or for the next page, need not look again. Only so much is kept, what was used last.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "search/segment.h"

namespace tabella::search {

// Of the documents of one segment.
struct Verdict {
  explicit Verdict(size_t slots) : looked_at(slots), matching(slots) {}

  Slots looked_at;
  Slots matching;  // of those that were looked at
};

// Thread-safe.
class Verified {
 public:
  explicit Verified(size_t most_bytes) : most_bytes_(most_bytes) {}

  // `texts`: what was searched for, spelled in one way. Nothing was looked at, if nothing is known.
  Verdict get(const std::string& segment, const std::string& texts, size_t slots);
  void add(const std::string& segment, const std::string& texts, const Verdict& more);

 private:
  struct Known {
    std::string name;
    Verdict verdict;
  };
  using Place = std::list<Known>::iterator;
  static size_t bytes_of(const Known& known);
  void drop_oldest();

  const size_t most_bytes_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Known> known_;  // last used first
  std::unordered_map<std::string, Place> places_;
  size_t bytes_ = 0;
};

}  // namespace tabella::search

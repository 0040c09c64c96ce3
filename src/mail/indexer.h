// Takes messages that have settled into segments of the search index, merges small segments, and clears away
// what was deleted. Several processes may do so on one store: each change is a new manifest, and who comes
// second begins again. Killed at any moment, what it wrote and did not name in a manifest expires.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "mail/service.h"

namespace tabella::mail {

// On one thread.
class Indexer {
 public:
  explicit Indexer(Mail& mail) : mail_(mail), index_(mail.index()) {}

  // One round of everything. True if there is more to do at once.
  store::Async<bool> work();

  // Ends what takes long, soon. From any thread.
  void stop() { stopping_ = true; }

  // Drops the index and builds it anew from the table, which nothing but the messages is needed for. Safe
  // while others use the store; their searches read the table itself meanwhile.
  struct Rebuilt {
    size_t messages = 0;  // in the table, not counting those that have expired
    size_t indexed = 0;   // of them; the rest has not settled yet, and is indexed when it has
  };
  using Progress = std::function<void(const std::string& step)>;
  store::Async<Rebuilt> rebuild(const Progress& progress);

  void write_metrics(metrics::Exposition& out) const;

 private:
  // What the table holds.
  struct Inventory {
    size_t messages = 0;
    Nanoseconds oldest = 0;
    uint64_t granularities = 0;
  };
  store::Async<void> finish_deleting();
  store::Async<void> start_over(const std::string& indexed_to, uint64_t traits);
  store::Async<Inventory> take_inventory(const Progress& progress);
  store::Async<void> index_all(size_t messages, const Progress& progress);

  store::Async<bool> take_in();
  store::Async<void> add_labels(const Message& message);  // settled messages
  store::Async<bool> take_late();                         // messages that came when the index was past them
  store::Async<bool> merge_some();     // segments that are small, or hold much that is gone
  store::Async<bool> clear_away();     // segments that nobody reads any more
  store::Async<bool> forget_gone();    // notes about documents that no segment has
  store::Async<bool> keep_to_limit();  // the oldest, where there are too many
  store::Async<bool> drop_unused(search::SegmentInfo segment);
  store::Async<void> replace(search::Manifest next, size_t begin, size_t end);
  store::Async<bool> exchange(search::Manifest next, size_t begin, size_t end,
                              std::vector<search::Merged> merged);
  store::Async<search::MergeInput> read_whole(search::SegmentInfo segment, search::Slots kept);
  store::Async<search::MergeInput> read_messages(std::vector<std::string> ids, Pace& pace);

  Mail& mail_;
  search::Index& index_;
  std::atomic<bool> stopping_{false};
  int64_t forgot_at_ = -1;  // the manifest that forget_gone() has seen
  metrics::Counter indexed_{0};
  metrics::Counter merged_{0};
};

}  // namespace tabella::mail

// Takes messages that have settled into segments of the search index, merges small segments, and clears away
// what was deleted. Several processes may do so on one store: each change is a new manifest, and who comes
// second begins again. Killed at any moment, what it wrote and did not name in a manifest expires.
#pragma once

#include <atomic>
#include <chrono>

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

  void write_metrics(metrics::Exposition& out) const;

 private:
  store::Async<bool> take_in();        // settled messages
  store::Async<bool> merge_some();     // segments that are small, or hold much that is gone
  store::Async<bool> clear_away();     // segments that nobody reads any more
  store::Async<bool> forget_gone();    // notes about documents that no segment has
  store::Async<bool> keep_to_limit();  // the oldest, where there are too many
  store::Async<bool> drop_unused(search::SegmentInfo segment);
  store::Async<void> replace(search::Manifest next, size_t begin, size_t end);

  Mail& mail_;
  search::Index& index_;
  std::atomic<bool> stopping_{false};
  int64_t forgot_at_ = -1;  // the manifest that forget_gone() has seen
  metrics::Counter indexed_{0};
  metrics::Counter merged_{0};
};

}  // namespace tabella::mail

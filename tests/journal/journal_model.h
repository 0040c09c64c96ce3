// A journal as it should be, in memory: simple, and as slow as it likes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace tabella::journal {

class ModelEntity {
 public:
  struct Stored {
    std::string payload;
    std::optional<TimePoint> expires = {};
    bool is_shown = true;  // else of another program's batch that is not whole
    std::set<std::string> confirmations = {};
  };

  // "1-3", "1-3 again", "version 5", "epoch 2", "batch 3", or "refused".
  std::string append(const Append& append, TimePoint now);
  // Nothing but the append itself, whatever it expects.
  void apply(const Append& append, TimePoint now);
  void add_foreign(std::string payload, bool is_shown);
  uint64_t delete_to(uint64_t to);
  bool confirm(uint64_t number, const std::vector<std::string>& by, TimePoint now);

  uint64_t highest() const { return events_.size(); }
  uint64_t lowest(TimePoint now) const;
  uint64_t deleted_to() const { return deleted_to_; }
  // The payloads of what is shown of from..to.
  std::vector<std::string> read(uint64_t from, uint64_t to, TimePoint now) const;
  const Stored& event(uint64_t number) const { return events_.at(number - 1); }

  uint64_t epoch = 0;
  std::map<uint64_t, std::string> snapshots;

 private:
  std::vector<Stored> events_;
  uint64_t deleted_to_ = 0;
  uint64_t expiring_to_ = 0;
  TimePoint expires_ = TimePoint::min();
  std::map<std::string, std::pair<uint64_t, uint64_t>> batches_;
};

}  // namespace tabella::journal

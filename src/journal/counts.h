// What happens to the journals of this process, counted.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/metrics.h"

namespace tabella::journal {

// Thread-safe.
class Counts {
 public:
  metrics::Counter appends = 0;
  metrics::Counter repeated_appends = 0;
  metrics::Counter conflicts = 0;
  metrics::Counter events_appended = 0;
  metrics::Counter events_read = 0;
  metrics::Counter live_readers = 0;  // now
  metrics::Counter finished_work = 0;

  void placed(const std::string& journal, uint64_t last);
  void write_metrics(metrics::Exposition& out) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> last_positions_;  // of the first journals that were heard of
};

}  // namespace tabella::journal

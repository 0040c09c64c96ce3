// Brings the index in line with what other programs do to the table of messages, which its stream tells of.
// What mail does itself comes by, too, and needs nothing:
//
//   put in        when its id was new: the indexer comes to it. When the index may have been past that id
//                 (an import, a restored backup): it is noted, and the indexer takes it in afterwards.
//   taken away    by mail: that was noted before. By somebody else: it is noted now. By time to live: the
//                 index knows by itself when the time of a message is over.
//
// Rows that are changed stay as they were indexed.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <deque>
#include <mutex>
#include <string>
#include "base/metrics.h"

#include "mail/arrivals.h"
#include "mail/service.h"
#include "store/streams.h"

namespace tabella::mail {

// Thread-safe. The same record may come more than once.
class Reconciler {
 public:
  // Listeners of `arrivals` hear of messages that others have put.
  Reconciler(Mail& mail, Arrivals& arrivals) : mail_(mail), arrivals_(arrivals) {}

  // Throws where the store fails: the record is to come again.
  boost::asio::awaitable<void> handle(const store::StreamRecord& record);

  void write_metrics(metrics::Exposition& out) const;

 private:
  store::Async<void> see_put(const MessageKey& key, TimePoint written);
  store::Async<void> see_removed(const std::string& id);
  bool was_in_time(const MessageKey& key, TimePoint written) const;
  bool was_forgotten(const std::string& id);
  void remember_forgotten(const std::string& id);

  Mail& mail_;
  Arrivals& arrivals_;
  std::mutex mutex_;
  std::deque<std::string> forgotten_;  // guarded by mutex_; the last of them
  metrics::Counter late_{0};
  metrics::Counter removed_{0};
};

}  // namespace tabella::mail

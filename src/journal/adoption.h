// Notices events that other programs write, by the stream of the table of events, and has their heads moved
// over them: that is how they get their positions, and how those who wait hear of them.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "journal/journal.h"
#include "journal/recent_numbers.h"
#include "store/store.h"
#include "store/stream_reader.h"

namespace tabella::journal {

// Thread-safe.
class Adoption {
 public:
  // `adopted` is told of each entity with events of others, and of its highest number. All outlive it.
  using Told = std::function<void(const Entity&, uint64_t highest)>;
  Adoption(store::Store& store, Journal& journal, Told adopted)
      : store_(store), journal_(journal), adopted_(std::move(adopted)) {}

  // What this process has appended itself, which costs no look then.
  void appended(const Entity& entity, uint64_t highest);

  // A batch of records of the stream of the table of events; throws where the store fails, to be called
  // again.
  boost::asio::awaitable<void> handle(const std::string& shard, std::span<const store::StreamRecord> records);

  // Likewise for rows that were found otherwise.
  store::Async<void> adopt(std::vector<Located> rows);

  // How often a head was moved over events of others.
  uint64_t count() const { return count_; }

 private:
  // By journal and pid, the highest number among the records.
  using Numbers = std::map<std::pair<std::string, std::string>, uint64_t>;

  uint64_t known(const Entity& entity);  // 0: nothing is
  Numbers not_appended_here(std::vector<Located> rows);
  // Without those that are up to where their heads are.
  store::Async<std::vector<Entity>> behind_their_heads(Numbers numbers);

  store::Store& store_;
  Journal& journal_;
  const Told adopted_;
  std::atomic<uint64_t> count_{0};
  std::mutex mutex_;
  RecentNumbers appended_;  // guarded by mutex_
};

}  // namespace tabella::journal

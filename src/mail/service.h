// What mail does, as coroutines over Store: takes messages, and finds them again.
//
// A message is in the table before it is acknowledged. From there the indexer (mail/indexer.h) takes it into
// segments of the search index; what it has not got to yet — the tail — is read from the table itself, so
// that everything is found at once. Lists, counts and searches are the index and the tail together.
//
// Ids are given out just before the write, and the indexer stays behind by `settle`, and behind every write
// of this process that is under way. Indexers of other processes know nothing of those: where there are any,
// what takes longer than that to arrive gets a new id. Processes on one store must agree about the time to
// within that.
//
// What the table says wins over the index: a message that the index has and the table has not is forgotten by
// whoever comes across it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "base/clock.h"
#include "base/metrics.h"
#include "mail/document.h"
#include "mail/model.h"
#include "mail/query.h"
#include "search/index.h"
#include "search/pace.h"
#include "search/snapshot.h"
#include "smtp/session.h"
#include "store/batches.h"
#include "store/long_work.h"
#include "store/rows.h"
#include "store/store.h"

namespace tabella::mail {

using search::Pace;
using search::Snapshot;

struct ServiceOptions {
  std::string messages = "tabella-mail";
  std::string index = "tabella-mail-index";
  std::string settings = "tabella-mail-settings";
  Granularity granularity = Granularity::day;
  std::chrono::seconds time_to_live{7 * 24 * 3600};
  std::string hostname = "tabella.local";
  std::chrono::milliseconds settle{2'000};
  size_t most_messages = 0;  // 0: as many as there are
  bool shared = false;       // other processes may be indexing the same messages
};

// With the names of its tables, as all processes on the store call them.
inline ServiceOptions table_names(const std::string& prefix) {
  ServiceOptions options;
  options.messages = prefix + "tabella-mail";
  options.index = prefix + "tabella-mail-index";
  options.settings = prefix + "tabella-mail-settings";
  return options;
}

// Until when something may take; what takes longer ends with ErrorCode::unavailable.
using Deadline = Pace::Time;

// Newest first.
struct MessagePage {
  std::vector<std::string> ids;    // of all that were found, also of those that are not there any more
  std::vector<Message> messages;   // the first of them: as many as may be in memory at once
  std::vector<std::string> later;  // the rest, still to be loaded
  size_t total = 0;
};

enum class Load {
  keys,  // nothing of the message: what it takes to delete it
  head,  // as much as is in its own item
  whole,
};

// Thread-safe.
class Mail {
 public:
  Mail(store::Store& store, const Clock& clock, ServiceOptions options);

  static std::vector<store::TablePlan> plans(const ServiceOptions& options);
  const ServiceOptions& options() const { return options_; }
  const Clock& clock() const { return clock_; }
  search::Index& index() { return index_; }
  store::Store& store() { return store_; }

  // What is to happen before a message with that id is kept; without it the message is not kept. Before the
  // first is taken.
  void before_keeping(std::function<store::Async<void>(const std::string& id)> what) {
    before_keeping_ = std::move(what);
  }

  // Keeps the message; its id.
  store::Async<std::string> take(smtp::Envelope envelope);

  store::Async<size_t> count(Deadline deadline);
  // `load`: keys or head.
  store::Async<MessagePage> list(size_t start, size_t limit, Load load, Deadline deadline);
  store::Async<MessagePage> find(const Filter& filter, size_t start, size_t limit, Load load,
                                 Deadline deadline);
  // By its id, in any spelling, or by random@host alone: that one takes a look at every id there is.
  store::Async<std::optional<Message>> load(std::string id, Load load = Load::whole);
  // Those that are there, in the order of the ids. All in memory: only as many as have room there.
  static constexpr size_t kLoadedAtOnce = 25;
  store::Async<std::vector<Message>> load_some(std::vector<std::string> ids, Load load);
  store::Async<void> complete(Message& message);  // reads what is in its chunks
  // What can be searched for in the message. Those of the last messages are remembered.
  store::Async<std::shared_ptr<const search::Document>> document(Message& message);

  // Runs what takes a while, for a message of so many bytes, on a thread of its own: others wait for this
  // one.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> aside(size_t bytes, Work work);

  // False if there is no such message.
  store::Async<bool> remove(std::string id);
  // `noted`: it need not be said that they are gone, because nobody looks for them any more.
  store::Async<void> remove_many(std::vector<std::string> ids, bool noted = false);
  store::Async<void> remove_all();
  store::Async<size_t> remove_found(Filter filter, Deadline deadline);  // how many

  store::Async<bool> set_read(std::string id, bool read);
  store::Async<bool> set_tags(std::string id, std::vector<std::string> tags);
  // Inboxes with how many messages are in each.
  store::Async<std::map<std::string, size_t>> inboxes(Deadline deadline);

  // The messages behind `after`: ids, newest first. With what is indexed up to, all that is not in the index.
  store::Async<std::vector<std::string>> tail(std::string after, Pace& pace);
  // The next messages behind `after`, oldest first, up to `until` (both ids); at most so many.
  store::Async<std::vector<Message>> next(std::string after, std::string until, size_t most, Load load,
                                          Pace& pace);
  // Nothing is going to appear before it any more: all of this process that was created earlier is in the
  // table, or never will be. `settle`: how far behind those of others may be.
  Nanoseconds settled(Nanoseconds settle) const;

  // Before the first message is taken: makes known to all who use the index how this process adds to it.
  store::Async<void> join();
  // What a manifest says about the messages of others: which partitions they are in, and that ours come after
  // those that are indexed. Whoever reads one hands it over.
  void observe(const search::Manifest& manifest);
  // That there are messages in partitions of that granularity: makes it known to all.
  store::Async<void> expect(Granularity granularity);
  // What the index has of messages that the table has not.
  store::Async<void> forget(std::vector<std::string> ids);

  Nanoseconds now() const;
  void write_metrics(metrics::Exposition& out) const;

 private:
  // A message that has an id, and is not in the table yet.
  class UnderWay;

  Nanoseconds next_time();
  static uint64_t trait_of(Granularity granularity) { return 1u << static_cast<unsigned>(granularity); }
  store::Async<Snapshot> snapshot(Pace& pace);
  store::Async<void> put_chunks_if_needed(Message& message);
  store::Async<Elapsed> put(Message& message);
  bool is_in_time(Elapsed took) const;
  store::Async<void> ask_for(uint64_t traits, std::chrono::milliseconds settle);
  store::Async<void> remove_item(const Message& message);
  store::Async<void> remove_some(std::span<const std::string> ids, bool noted);
  store::Async<std::map<std::string, Message>> read_rows(std::span<const std::string> ids,
                                                         std::vector<std::string> only);
  store::Async<std::string> find_by_short_id(std::string short_id, Pace& pace);
  store::Async<void> load_page(MessagePage& page, Load load, Pace& pace);
  std::vector<std::string> partitions(std::string_view after, Granularity granularity) const;
  std::vector<std::string> partitions(std::string_view after) const;
  store::Async<std::vector<Message>> next_of(Granularity granularity, const std::string& after,
                                             const std::string& until, size_t most, Load load,
                                             std::string& complete_to, Pace& pace);
  store::Query query_partition(const std::string& partition, const std::string& after) const;
  // The ids of the tail that match, newest first.
  store::Async<std::vector<std::string>> find_in_tail(const Filter& filter, std::string after, Pace& pace);
  store::Async<MessagePage> find_once(const Filter& filter, size_t start, size_t limit, Load load,
                                      Pace& pace);

  store::Store& store_;
  const Clock& clock_;
  const ServiceOptions options_;
  search::Index index_;
  std::function<store::Async<void>(const std::string&)> before_keeping_;
  std::atomic<Nanoseconds> last_time_{0};
  std::atomic<unsigned> granularities_;  // those that the tail may have: bits
  std::atomic<int64_t> settle_;          // milliseconds: the longest that anybody on this store has asked for
  mutable std::mutex under_way_mutex_;
  std::multiset<Nanoseconds> under_way_;  // guarded by under_way_mutex_: when they were created

  // Documents of the tail, so that one search after the other need not make them anew. Only so many.
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const search::Document>> recent_;  // guarded by mutex_
  size_t recent_bytes_ = 0;                                                          // guarded by mutex_

  metrics::Counter taken_{0};
  metrics::Counter taken_bytes_{0};
  metrics::Counter failed_{0};
  boost::asio::thread_pool aside_thread_{1};
  const store::LongWork aside_{aside_thread_.get_executor()};
};

template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> Mail::aside(size_t bytes, Work work) {
  constexpr size_t kQuick = 64 * 1024;
  if (bytes <= kQuick) co_return work();
  co_return co_await aside_.run(std::move(work));
}

}  // namespace tabella::mail

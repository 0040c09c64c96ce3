// What mail does, as coroutines over Store: takes messages, and finds them again.
//
// A message is in the table before it is acknowledged. From there the indexer (mail/indexer.h) takes it into
// segments of the search index; what it has not got to yet — the tail — is read from the table itself, so
// that everything is found at once. Lists, counts and searches are the index and the tail together.
//
// Ids are given out just before the write, and the indexer stays behind by `settle`: whatever takes longer
// than that to arrive gets a new id. Processes on one store must agree about the time to within that.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "mail/document.h"
#include "mail/model.h"
#include "mail/query.h"
#include "search/index.h"
#include "search/snapshot.h"
#include "smtp/session.h"
#include "store/batches.h"
#include "store/store.h"

namespace tabella::mail {

using search::Snapshot;

struct MailOptions {
  std::string messages = "tabella-mail";
  std::string index = "tabella-mail-index";
  std::string settings = "tabella-mail-settings";
  Granularity granularity = Granularity::day;
  std::chrono::seconds time_to_live{7 * 24 * 3600};
  std::string hostname = "tabella.local";
  std::chrono::milliseconds settle{2'000};
  size_t most_messages = 0;  // 0: as many as there are
};

// Until when something may take; what takes longer ends with ErrorCode::unavailable.
using Deadline = std::chrono::steady_clock::time_point;

struct MessagePage {
  std::vector<Message> messages;  // newest first
  size_t total = 0;
  bool exact = true;  // the total; otherwise it counts some that only look as if they matched
  size_t found = 0;   // on this page, also those that were deleted meanwhile
  std::string last;   // the id of the last of them
};

// Whether a search may end with a total that is only nearly right, which takes less time.
enum class Total { quick, exact };

enum class Load { head, whole };

// Thread-safe.
class Mail {
 public:
  Mail(store::Store& store, const Clock& clock, MailOptions options);

  static std::vector<store::TablePlan> plans(const MailOptions& options);
  const MailOptions& options() const { return options_; }
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

  store::Async<size_t> count();
  store::Async<MessagePage> list(size_t start, size_t limit, Load load, Deadline deadline);
  store::Async<MessagePage> find(const Filter& filter, size_t start, size_t limit, Load load,
                                 Deadline deadline, Total total = Total::quick);
  store::Async<std::optional<Message>> load(std::string id);
  // Those that are there, in the order of the ids; `load` whole: as many bytes of them as fit into memory.
  store::Async<std::vector<Message>> load_all(std::vector<std::string> ids, Load load);
  store::Async<void> complete(Message& message);  // reads what is in its chunks

  // False if there is no such message.
  store::Async<bool> remove(std::string id);
  // `noted`: it need not be said that they are gone, because nobody looks for them any more.
  store::Async<void> remove_many(std::vector<std::string> ids, bool noted = false);
  store::Async<void> remove_all();
  store::Async<size_t> remove_found(Filter filter);  // how many

  store::Async<bool> set_read(std::string id, bool read);
  store::Async<bool> set_tags(std::string id, std::vector<std::string> tags);
  // Inboxes with how many messages are in each.
  store::Async<std::map<std::string, size_t>> inboxes();

  // The messages behind `after`: ids, newest first. With what is indexed up to, all that is not in the index.
  store::Async<std::vector<std::string>> tail(std::string after);
  // The next messages behind `after`, oldest first, up to `until` (both ids); at most so many.
  store::Async<std::vector<Message>> next(std::string after, std::string until, size_t most, Load load);

  // Before the first message is taken: makes known to all who use the index how this process adds to it.
  store::Async<void> join();
  // What a manifest says about the messages of others: which partitions they are in, and that ours come after
  // those that are indexed. Whoever reads one hands it over.
  void heed(const search::Manifest& manifest);

  Nanoseconds now() const;
  void write_metrics(metrics::Exposition& out) const;

 private:
  Nanoseconds next_time();
  uint64_t own_trait() const { return 1u << static_cast<unsigned>(options_.granularity); }
  store::Async<Snapshot> snapshot();
  store::Async<void> put_chunks_if_needed(Message& message);
  store::Async<bool> put(Message& message);
  store::Async<void> remove_item(const Message& message);
  store::Async<void> remove_some(std::span<const std::string> ids, bool noted);
  store::Async<std::map<std::string, Message>> load_some(std::span<const std::string> ids,
                                                         std::optional<store::Projection> projection);
  std::vector<std::string> partitions(std::string_view after, Granularity granularity) const;
  std::vector<std::string> partitions(std::string_view after) const;
  store::Async<std::vector<Message>> next_of(Granularity granularity, const std::string& after,
                                             const std::string& until, size_t most, Load load,
                                             std::string& complete_to);
  store::QueryRequest query_partition(const std::string& partition, const std::string& after) const;
  // The ids of the tail that match, newest first.
  store::Async<std::vector<std::string>> find_in_tail(const Filter& filter, std::string after,
                                                      Deadline deadline);
  store::Async<std::shared_ptr<const search::Document>> document(Message& message);
  store::Async<MessagePage> find_once(const Filter& filter, size_t start, size_t limit, Load load,
                                      Deadline deadline, Total total);

  store::Store& store_;
  const Clock& clock_;
  const MailOptions options_;
  search::Index index_;
  std::function<store::Async<void>(const std::string&)> before_keeping_;
  std::atomic<Nanoseconds> last_time_{0};
  std::atomic<unsigned> granularities_;  // those that the tail may have: bits

  // Documents of the tail, so that one search after the other need not make them anew. Only so many.
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const search::Document>> recent_;  // guarded by mutex_
  size_t recent_bytes_ = 0;                                                          // guarded by mutex_

  metrics::Counter taken_{0};
  metrics::Counter taken_bytes_{0};
  metrics::Counter failed_{0};
};

}  // namespace tabella::mail

// Follows a table's stream for a named consumer, over any Store.
//
// Every consumer sees every record, at least once, and those of one item in their order. Several readers of
// the same consumer, in one process or many, share the shards between them: each shard is read by whoever
// holds its lease, its progress is kept in the lease's row, a shard's children wait until it has been handled
// to its end, and when a reader dies the others take its shards over from its last checkpoint. On the
// embedded engine a reader is woken by the commit.
//
// A reader lives on one thread, that of the executor on which run() is called.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "store/leases.h"
#include "store/store.h"

namespace tabella::store {

class StreamReader {
 public:
  // Handles one record. What it throws is logged, and the record is tried again, after a pause that grows: a
  // record is never skipped. The same record may come again after a failure, with the same `id`.
  using Handler = std::function<boost::asio::awaitable<void>(const StreamRecord&)>;
  // Likewise for all records between two checkpoints of a shard, for those who write once for many.
  using BatchHandler =
      std::function<boost::asio::awaitable<void>(const std::string& shard, std::span<const StreamRecord>)>;

  struct Options {
    std::string table;  // whose stream is read; all of its streams, should it have been disabled and enabled
    std::string consumer;  // who it is read for
    std::string worker;    // this reader, unlike all others that run; empty: a name is made up
    std::string lease_table = "tabella-consumers";
    std::chrono::milliseconds lease{10'000};
    int64_t batch = 100;  // records between two checkpoints
    // How long a reader that has caught up waits for more records, so that many cost one checkpoint. They
    // come that much later.
    std::chrono::milliseconds gather{0};
  };

  StreamReader(Store& store, const Clock& clock, Options options, Handler handler);
  StreamReader(Store& store, const Clock& clock, Options options, BatchHandler handler);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // Reads until stop(). A store that fails meanwhile is tried again.
  boost::asio::awaitable<void> run();

  // Lets run() finish the records it is at, give its shards back and return. On the reader's thread.
  void stop();

 private:
  struct Held;  // a shard that this reader holds

  struct Stream {
    std::string arn;
    std::unique_ptr<Leases> leases;
    std::map<std::string, std::shared_ptr<Held>> held;  // by shard
  };

  // What run() does every so often: keeps the leases that are held, and takes this reader's share of the
  // others.
  Async<void> poll();
  Async<void> find_streams();
  Async<void> renew_held(Stream& stream);
  Async<bool> take_shards(Stream& stream);
  Async<std::pair<std::vector<ShardDescription>, bool>> shards_of(const std::string& arn);
  void hold(Stream& stream, Lease lease, Elapsed since);

  // What is done for each shard that is held.
  boost::asio::awaitable<void> read_shard(Stream& stream, std::shared_ptr<Held> held);
  Async<void> read_batch(Stream& stream, Held& held);
  Async<std::string> iterator_for(const std::string& arn, const Held& held);
  boost::asio::awaitable<bool> handle(std::span<const StreamRecord> records, const Held& held);
  Async<void> check_point(Stream& stream, Held& held, std::string sequence, bool finished);
  bool may_go_on(const Held& held) const;
  boost::asio::awaitable<void> pause(std::chrono::milliseconds length);

  Store& store_;
  const Clock& clock_;
  const Options options_;
  const BatchHandler handler_;
  const bool in_batches_;
  std::list<Stream> streams_;  // oldest first; they stay where they are
  bool stopping_ = false;
  bool woken_ = false;
  size_t reading_ = 0;                         // shards being read
  boost::asio::steady_timer* wake_ = nullptr;  // what run() waits on, while it runs
};

}  // namespace tabella::store

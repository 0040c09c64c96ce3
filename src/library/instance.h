// Tabella inside a program: a store, the journal on it, and the threads that they need.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/clock.h"
#include "journal/consumers.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/order.h"
#include "journal/replay.h"
#include "journal/snapshots.h"
#include "journal/watch.h"
#include "library/history.h"
#include "store/store.h"

namespace tabella {

// The tables are called as those of `tabella serve`, with which a program can share them.
struct InstanceOptions {
  size_t threads = 2;
  std::string table_prefix = {};
  bool create_tables = true;  // else they must be there
  journal::Options journal = {};
  // Does what the journal needs to be done in the background: gives events their positions, for order(),
  // watch() and consumers(), notices what other programs write, finishes what was left undone. One process on
  // the tables is enough: not needed beside a server. But there is to be one: positions are given by
  // following the stream of the heads' table, which has the changes of the last 24 hours. Events that nobody
  // followed for so long stay in their entities' histories, and get no position any more.
  bool background = false;
};

// Thread-safe. The program's own coroutines are to have ended when it is destroyed: what still runs on its
// threads is dropped.
class Instance {
 public:
  virtual ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  store::Store& store();
  const Clock& clock() const;
  journal::Journal& journal();
  journal::Snapshots& snapshots();
  const journal::Order& order() const;
  journal::Watch& watch();
  journal::Consumers& consumers();
  // For Entity and Entities.
  Journals journals() { return {journal(), snapshots(), clock()}; }

  // One of its threads, in turn. A coroutine stays on the one where it was started.
  boost::asio::any_io_executor executor();

  // For programs that do not use Asio: waits for the end of a coroutine, and returns or throws what it does.
  // Not from one of its own threads.
  template <class T>
  T run(boost::asio::awaitable<T> work) {
    return boost::asio::co_spawn(executor(), std::move(work), boost::asio::use_future).get();
  }

 protected:
  struct Parts;
  explicit Instance(std::unique_ptr<Parts> parts);

 private:
  const std::unique_ptr<Parts> parts_;
};

// Both throw std::runtime_error with a sentence for the user.

// The embedded store in a folder, which is made if it is not there. One process at a time has it open.
class Local final : public Instance {
 public:
  explicit Local(const std::filesystem::path& folder, const InstanceOptions& options = {});
};

// A DynamoDB somewhere else: http(s)://HOST:PORT, another Tabella among them, or dynamodb://REGION. Who signs
// is found where AWS's SDKs find it.
class Remote final : public Instance {
 public:
  explicit Remote(std::string_view endpoint, const InstanceOptions& options = {});
};

// Either of them: an endpoint, or a folder.
std::unique_ptr<Instance> open(const std::string& place, const InstanceOptions& options = {});

}  // namespace tabella

// What a system is given: the store and all that is there once for all systems. One system cannot make
// another's work late: timers have a thread of their own, so have the readers of streams, and so has each
// work without end.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "access/secrets.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "net/limits.h"
#include "net/outbound.h"
#include "net/threads.h"
#include "schedule/schedule.h"
#include "store/long_work.h"
#include "store/store.h"
#include "store/stream_reader.h"
#include "store/tables.h"

namespace tabella::house {

// What the names of workers begin with in a process that has the store in it. There is one at a time, so what
// somebody of such a name was at when this process was started is nobody's; others may be at work through its
// DynamoDB port.
inline constexpr const char* kWithStore = "embedded/";

// What the house is built on. All of it outlives the house.
struct Foundation {
  store::Store& store;
  const Clock& clock;
  net::IoThreads& io;         // where connections are served
  store::LongWork long_work;  // for what takes more than a few milliseconds
  net::Limits& limits;        // what strangers may make the process take
  net::Outbound& outbound;    // for requests that others make us send
  const access::Secrets& secrets;
  std::string hostname;  // what we call ourselves
  std::string web_path;  // what paths over HTTP begin with; empty: nothing
  std::string web_url;   // where HTTP is served, with that path: http://127.0.0.1:8025
  std::string table_prefix;
  bool shared = false;  // other processes may be using the store
};

// A thread for work without end. It belongs to the house, which waits for the work when it stops.
class Worker {
 public:
  boost::asio::any_io_executor executor() { return thread_.at(0).get_executor(); }
  // It is to end soon after System::stop().
  void run(std::function<boost::asio::awaitable<void>()> work);

 private:
  friend class House;
  void end(std::chrono::steady_clock::time_point until);

  net::IoThreads thread_{1};
  std::vector<std::future<void>> running_;
};

// Its own functions are for the thread that starts and stops the systems.
class House : public Foundation {
 public:
  explicit House(Foundation foundation);
  ~House();
  House(const House&) = delete;
  House& operator=(const House&) = delete;

  // The tables that it needs itself.
  static std::vector<store::TablePlan> tables(const std::string& prefix);

  // The one schedule. Whoever handles a kind of timer says so in System::start(); timers are set from any
  // thread.
  schedule::Schedule& schedule() { return schedule_; }

  // Follows a stream. In System::start(); the house adds where leases are kept.
  template <class Handler>  // of StreamReader
  void consume(store::StreamReader::Options options, Handler handler) {
    options.lease_table = consumers_table();
    readers_.emplace_back(store, clock, std::move(options), std::move(handler));
  }
  // For work without end. In System::start().
  Worker& add_worker() { return background_.emplace_back(); }

  // Once all systems are started.
  void begin();
  // Once all systems are stopped. What does not end in time is left: it can be done again.
  void stop(std::chrono::milliseconds grace);

  void write_metrics(metrics::Exposition& out) const { schedule_.write_metrics(out); }

 private:
  std::string consumers_table() const;

  schedule::Schedule schedule_;
  std::list<store::StreamReader> readers_;
  Worker timers_;
  Worker streams_;
  std::list<Worker> background_;
  bool begun_ = false;
};

}  // namespace tabella::house

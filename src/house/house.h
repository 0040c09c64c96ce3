// What a system is given.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "access/secrets.h"
#include "base/clock.h"
#include "net/limits.h"
#include "net/outbound.h"
#include "net/threads.h"
#include "schedule/schedule.h"
#include "store/long_work.h"
#include "store/store.h"
#include "store/stream_reader.h"

namespace tabella::house {

// Thread-safe but for what says otherwise.
class House {
 public:
  virtual ~House() = default;

  virtual store::Store& store() = 0;
  virtual const Clock& clock() = 0;
  virtual const std::string& table_prefix() = 0;
  virtual bool shared() = 0;  // other processes may be using the store

  // The one schedule, on a thread of its own. Kinds are registered in start().
  virtual schedule::Schedule& schedule() = 0;
  // Follows the stream of a table for this consumer, from start() to the stop.
  virtual void consume(std::string table, std::string consumer, store::StreamReader::Handler handler) = 0;
  // Work without end: it is awaited at the stop, once System::stop() has told it to end. On a thread that
  // such work shares.
  virtual void run(std::string name, std::function<boost::asio::awaitable<void>()> work) = 0;

  virtual net::IoThreads& io() = 0;                // where connections are served
  virtual const store::LongWork& long_work() = 0;  // for what takes more than a few milliseconds
  virtual net::Limits& limits() = 0;
  virtual net::Outbound& outbound() = 0;
  virtual const access::Secrets& secrets() = 0;
  virtual const std::string& hostname() = 0;  // what we call ourselves
  virtual const std::string& web_path() = 0;  // what paths over HTTP begin with
};

}  // namespace tabella::house

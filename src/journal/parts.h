// What the journal is made of, over any Store: once for whoever has it in a process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "journal/adoption.h"
#include "journal/consumers.h"
#include "journal/counts.h"
#include "journal/first_scan.h"
#include "journal/journal.h"
#include "journal/layout.h"
#include "journal/options.h"
#include "journal/order.h"
#include "journal/placement.h"
#include "journal/snapshots.h"
#include "journal/sweeper.h"
#include "journal/watch.h"
#include "store/store.h"
#include "store/stream_reader.h"
#include "store/tables.h"

namespace tabella::journal {

std::vector<store::TablePlan> tables_of(const Options& options, const std::string& table_prefix);

// In the order in which one needs the other. The store and the clock outlive it.
struct Parts {
  // `shared`: other processes may be using the store.
  Parts(store::Store& store, const Clock& clock, const Options& options, const std::string& table_prefix,
        bool shared);

  // Ends background_work() soon. On any thread.
  void stop();

  Counts counts;
  const std::unique_ptr<Layout> layout;
  Journal journal;
  Order order;
  Watch watch;
  Placement placement;
  Adoption adoption;
  Snapshots snapshots;
  Consumers consumers;
  Sweeper sweeper;
  FirstScan first_scan;
};

// What is to be done in the background, for events to get their positions and for what was left undone. Both
// keep the parts: what does not end in time is destroyed with its thread, and needs them until then.
using Work = std::function<boost::asio::awaitable<void>()>;
std::vector<Work> background_work(const std::shared_ptr<Parts>& parts);
struct Followed {
  store::StreamReader::Options options;
  store::StreamReader::BatchHandler handler;
};
std::vector<Followed> followed_tables(const std::shared_ptr<Parts>& parts);

}  // namespace tabella::journal

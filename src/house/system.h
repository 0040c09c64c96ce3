// A system of the process: mail, journal, … What the frame needs to know of it, and no more.
//
// Life: made (its options, tables and routes can be asked for), its options set, started once its tables are
// there, and stopped. app/systems.cpp has the list.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/options.h"
#include "net/router.h"
#include "store/tables.h"

namespace tabella::house {

class House;

// Called on the thread that starts and stops the process, but for write_metrics() and problem(), which may be
// called on any once it is started.
class System {
 public:
  System() = default;
  virtual ~System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  virtual std::string_view name() const = 0;     // "mail", as in --systems
  virtual std::string_view summary() const = 0;  // one line
  // Bound to this object: whoever reads the command line fills it in.
  virtual OptionGroup options() = 0;
  virtual std::vector<store::TablePlan> tables(const std::string& prefix) const = 0;
  // Their handlers are called once it is started.
  virtual void add_routes(net::Router& router) = 0;
  // Whether it has ports of its own: a process that serves no HTTP leaves the other systems alone.
  virtual bool listens() const { return false; }

  // Opens its ports and begins what runs in the background. Throws std::runtime_error with a sentence for the
  // user. The house outlives the system.
  virtual void start(House& house) = 0;
  // Lines for the user once everything stands: where it can be reached.
  virtual std::vector<std::string> announce() const { return {}; }
  virtual void write_metrics(metrics::Exposition&) const {}
  // What is wrong with it, for /healthz; empty: nothing.
  virtual std::string problem() const { return {}; }

  // In this order, each once, also if start() has failed: ends answers that wait without end; closes its
  // ports, and tells what runs in the background to end, which the house then waits for.
  virtual void stop_waiting() {}
  virtual void stop(std::chrono::milliseconds grace) { (void)grace; }
};

using Systems = std::vector<std::unique_ptr<System>>;

}  // namespace tabella::house

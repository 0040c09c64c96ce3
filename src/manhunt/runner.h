// Carries searches on. One that was opened here has its first step already; the table's stream starts those
// that other programs have written (search#INSERT), and notices who declines and what has ended. Durable
// timers do the rest: a step resolves who is asked, each contact's methods follow each other by their delays,
// and when all are used up the search has failed.
//
// Every handler may run twice. An attempt is a row before anything is sent, written in one transaction with
// the question whether the search is still active: nothing is begun once somebody has answered.
#pragma once

#include <span>
#include <string>

#include "base/metrics.h"
#include "manhunt/bundles.h"
#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/events.h"
#include "manhunt/model.h"
#include "manhunt/searches.h"
#include "manhunt/sender.h"
#include "manhunt/steps.h"
#include "schedule/schedule.h"
#include "store/store.h"
#include "store/streams.h"
#include "webhook/places.h"

namespace tabella::manhunt {

// Thread-safe. Must outlive the schedule's run() and the reader of the stream.
class Runner {
 public:
  struct Parts {
    store::Store& store;
    const Clock& clock;
    schedule::Schedule& schedule;
    Domains& domains;
    Contacts& contacts;
    Searches& searches;
    Sender& sender;
    Bundles& bundles;
    Events& events;
  };
  Runner(Parts parts, std::string table);

  // Records of the table's stream. Throws where they are to come again.
  boost::asio::awaitable<void> handle(std::span<const store::StreamRecord> records);

  void write_metrics(metrics::Exposition& out) const;

 private:
  using Task = boost::asio::awaitable<void>;
  // What a timer of an attempt is for.
  struct Due;
  struct Loaded;

  Task opened(Search search);
  store::Async<void> begin_of_others(const Search& search);
  store::Async<void> fail(const Search& search, const std::string& why);
  Task settle(std::string search);
  store::Async<void> unlist(const FullSearch& full);
  // What was to come after a wait comes now, if all who were asked have declined.
  Task hurry(std::string search);
  Task finish_raising(std::string search);

  Task fire_step(const schedule::Firing& firing);
  Task fire_attempt(const schedule::Firing& firing);
  Task fire_end(const schedule::Firing& firing);
  Task fire_undelivered(const schedule::Firing& firing);

  store::Async<void> begin_step(const Search& search, AttemptId id, TimePoint started);
  // When a round is over, if that is still to come.
  store::Async<std::optional<TimePoint>> end_of_round(const FullSearch& full, int round);

  store::Async<void> make_attempt(const schedule::Firing& firing, const Due& due);
  store::Async<Loaded> load(const Due& due);
  // Its row, before anything is sent. Nothing: there is nothing to send.
  store::Async<std::optional<Attempt>> begin_attempt(const schedule::Firing& firing, const Due& due,
                                                     const Loaded& loaded, const Domain& domain);
  store::Async<void> make_again(const schedule::Firing& firing, const Loaded& loaded, const Domain& domain,
                                Attempt attempt);
  std::string put_into_words(const Loaded& loaded, const Domain& domain, Attempt& attempt) const;
  store::Async<Attempt> draft_attempt(const schedule::Firing& firing, const Due& due, const Loaded& loaded,
                                      const Domain& domain);
  void plan_next(Plan& plan, const Due& due, const Loaded& loaded, const Attempt& attempt) const;
  store::Async<void> send(const schedule::Firing& firing, const Loaded& loaded, const Domain& domain,
                          Attempt attempt);
  store::Async<void> try_next(const schedule::Firing& firing, Attempt attempt, const std::string& why);
  // Has the timer come again at that time, or as soon as the search has become urgent.
  store::Async<void> wait(const schedule::Firing& firing, const Search& search, TimePoint until);
  store::Async<void> check_end(const schedule::Firing& firing, const std::string& search);

  const Parts parts_;
  const std::string table_;
  webhook::Places webhooks_;  // by domain
  metrics::Counter started_{0};
  metrics::Counter ended_[4] = {};  // by Status
  metrics::Histogram lateness_{metrics::latency_bounds()};
};

}  // namespace tabella::manhunt

// Event sourcing in process: an entity is what its events have made of it.
//
//   struct Account { int64_t balance = 0; };
//   struct Deposited { int64_t amount = 0; };
//
//   const tabella::EntityKind<Account, Deposited> kAccount{
//       .apply = [](Account account, const Deposited& event) { account.balance += event.amount; return
//       account; }, .encode = …, .decode = …};
//   tabella::Local bank("./data");
//   tabella::Entities<Account, Deposited> accounts(bank.journals(), "bank", kAccount);
//   auto done = bank.run(accounts.execute("alice", [](const Account& account) -> tabella::Decision<Deposited>
//   {
//     if (account.balance > 1'000'000) return tabella::refuse("that is enough");
//     return std::vector{Deposited{100}};
//   }));
//
// Whoever recovers an entity is its writer from then on: every other instance of it, in this process or
// another, has its next command refused (Failure::Kind::superseded) and is to be recovered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library/failure.h"
#include "library/history.h"
#include "store/turns.h"

namespace tabella {

// What a program says about a kind of entity. Outlives the entities.
template <class State, class Event>
struct EntityKind {
  State initial = {};
  std::function<State(State, const Event&)> apply;
  std::function<journal::NewEvent(const Event&)> encode;
  // May return an Event, or invalid("why not").
  std::function<Checked<Event>(const journal::Event&)> decode;

  // A snapshot once so many events have come since the last one; 0: none are taken. What `load` does not take
  // any more, because states look different by now, is made of the events again.
  uint64_t snapshot_every = 0;
  std::function<std::string(const State&)> save = {};
  std::function<Checked<State>(std::string_view)> load = {};
};

struct Refusal {
  std::string reason;
};
inline std::unexpected<Refusal> refuse(std::string reason) {
  return std::unexpected(Refusal{std::move(reason)});
}

// What a command comes to: events, also none, or why not.
template <class Event>
using Decision = std::expected<std::vector<Event>, Refusal>;

struct Done {
  uint64_t version = 0;   // the number of the last event
  size_t events = 0;      // how many are new
  bool repeated = false;  // it had been done before, under the same command id
};

// Thread-safe: commands are run one after the other, in the order in which they came. Outlives them.
template <class State, class Event>
class Entity {
 public:
  // `kind` is borrowed.
  Entity(Journals journals, std::string journal, std::string pid, const EntityKind<State, Event>& kind)
      : kind_(kind),
        history_(journals, {.journal = std::move(journal), .pid = std::move(pid)}),
        state_(kind.initial) {}

  // Becomes the writer of the entity, and makes its state of the newest snapshot and the events behind it.
  AsyncOutcome<> recover() {
    const auto turn = co_await turns_.take();
    co_return co_await recover_now();
  }

  // Runs a command: `decide(const State&)` gives a Decision<Event>, and does nothing else. Its events are
  // durable before it returns, all of them or none. A command that has an id is done once, however often it
  // is given (for as long as the journal keeps batch ids).
  template <class Decide>
  AsyncOutcome<Done> execute(Decide decide, std::string command_id = {}) {
    const auto turn = co_await turns_.take();
    if (!history_.is_current())
      co_return failed(Failure::Kind::superseded, history_.entity().pid + " must be recovered first");
    co_return co_await execute_now(decide, std::move(command_id));
  }
  // Likewise, recovering first where that is needed.
  template <class Decide>
  AsyncOutcome<Done> recover_and_execute(Decide decide, std::string command_id = {}) {
    const auto turn = co_await turns_.take();
    if (!history_.is_current()) TABELLA_CO_TRY(co_await recover_now());
    co_return co_await execute_now(decide, std::move(command_id));
  }

  // What it is after the commands before. It does not show what other instances have written since.
  AsyncOutcome<State> recover_and_read() {
    const auto turn = co_await turns_.take();
    if (!history_.is_current()) TABELLA_CO_TRY(co_await recover_now());
    co_return state_;
  }

  // While no command runs.
  const State& state() const { return state_; }
  uint64_t version() const { return history_.version(); }
  uint64_t epoch() const { return history_.epoch(); }
  bool is_current() const { return history_.is_current(); }

 private:
  bool has_snapshots() const { return kind_.snapshot_every > 0 && kind_.save && kind_.load; }

  AsyncOutcome<> recover_now() {
    History::Reader reader{.begin = [this] { state_ = kind_.initial; },
                           .load = {},
                           .apply = [this](const journal::Event& stored) -> Checked<> {
                             TABELLA_ASSIGN(const auto event, kind_.decode(stored));
                             state_ = kind_.apply(std::move(state_), event);
                             return {};
                           }};
    if (kind_.load)
      reader.load = [this](const journal::Snapshot& snapshot) -> Checked<> {
        TABELLA_ASSIGN(state_, kind_.load(snapshot.payload));
        return {};
      };
    return history_.recover(std::move(reader));
  }

  // `decide` stays with the caller, who waits.
  template <class Decide>
  AsyncOutcome<Done> execute_now(Decide& decide, std::string command_id) {
    const Decision<Event> decision = decide(std::as_const(state_));
    if (!decision || decision->empty()) co_return co_await without_events(decision, std::move(command_id));
    std::vector<journal::NewEvent> encoded;
    for (const auto& event : *decision) encoded.push_back(kind_.encode(event));
    TABELLA_CO_ASSIGN(const auto persisted,
                      co_await history_.persist(std::move(encoded), std::move(command_id)));
    if (persisted.repeated) co_return Done{.version = persisted.last, .repeated = true};
    apply_all(*decision);
    if (snapshot_is_due()) co_await history_.save_snapshot([this] { return kind_.save(state_); });
    co_return Done{.version = persisted.last, .events = decision->size()};
  }

  // A command that was done already is often one that cannot be done again, or comes to nothing now.
  AsyncOutcome<Done> without_events(const Decision<Event>& decision, std::string command_id) {
    if (!command_id.empty()) {
      TABELLA_CO_ASSIGN(const auto earlier, co_await history_.find(std::move(command_id)));
      if (earlier) co_return Done{.version = earlier->last, .repeated = true};
    }
    if (!decision) co_return failed(Failure::Kind::refused, decision.error().reason);
    co_return Done{.version = history_.version()};
  }

  // The events are in the journal: a state that could not take them in is of no use.
  void apply_all(const std::vector<Event>& events) {
    try {
      for (const auto& event : events) state_ = kind_.apply(std::move(state_), event);
    } catch (...) {
      history_.set_stale();
      throw;
    }
  }

  bool snapshot_is_due() const {
    return has_snapshots() && history_.version() - history_.snapshot_version() >= kind_.snapshot_every;
  }

  const EntityKind<State, Event>& kind_;
  store::Turns turns_;
  History history_;  // with the state: of whose turn it is
  State state_;
};

}  // namespace tabella

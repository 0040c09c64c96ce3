// Where emails and their states are: the DynamoDB layout over Store, or MySQL. Programs with statements of
// their own may use the same tables beside us (docs/outbox.md, "Sharing the tables"), so what an email's
// state is, is decided here and nowhere else: whoever moves it from one state to the next has it.
//
// Everything else about an email (content, recipients, attempts) is in tables of our own (outbox/message.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "outbox/email.h"
#include "store/statements.h"
#include "store/store.h"

namespace tabella::outbox {

// Statements about our own rows that belong to a change of state. One transaction with it where the backend
// is the store; else they are made before and after it, each alone.
struct Beside {
  std::vector<store::Statement> before = {};
  std::vector<store::Statement> after = {};
};

// A state that an email has reached.
struct Step {
  State status = State::accepted;
  std::string reason = {};
  TimePoint at = {};
};

struct EmailPage {
  std::vector<Email> emails;
  std::string next;  // where to go on; empty: these were the last
};

// That an email has come to a state, by whomever.
struct Change {
  std::string position;  // to go on behind it
  std::string id;
  State status = State::accepted;
  std::string reason = {};
  TimePoint at = {};
  bool ours = false;  // one of our processes moved it; false: somebody else, or it is not known
};

struct Changes {
  std::vector<Change> changes;  // oldest first
  std::string position;         // to go on behind them, also if there were none
};

// Thread-safe.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Adds an email in its status (with its history's first row). False if there is one with its id.
  virtual store::Async<bool> create(Email email, Beside beside = {}) = 0;

  // Moves it from email.status to `to`, with a row in its history; its paths and TTL are kept as they are in
  // `email`. A state that it has been in before is entered anew. Where it goes back to READY, it gives up the
  // row of PROCESSING, so that others can take it. The email as it is then; nothing if it was not in
  // email.status any more: the lock was not acquired, and neither was anything of `beside` done (but for what
  // MySQL does before).
  virtual store::Async<std::optional<Email>> move(Email email, State to, std::string reason,
                                                  Beside beside = {}) = 0;

  virtual store::Async<std::optional<Email>> find(std::string id) = 0;
  // Oldest first; states that it went back from may be missing.
  virtual store::Async<std::vector<Step>> history(std::string id) = 0;
  // Those in a state, in no order that can be relied upon. `from` is the `next` of the page before. A page
  // may have fewer than `limit`, or none, and still not be the last.
  virtual store::Async<EmailPage> list(State status, size_t limit, std::string from) = 0;
  virtual store::Async<std::map<State, int64_t>> counts() = 0;
  // Until when its rows are kept, in seconds since 1970; nothing: for ever.
  virtual store::Async<void> keep_until(std::string id, std::optional<int64_t> second) = 0;
  // Deletes it with its history; false if there is none.
  virtual store::Async<bool> remove(std::string id) = 0;

  // What has changed behind a position, at most about so many; an empty position is now. Every change of
  // others is there once or more; those of ours may be left out.
  virtual store::Async<Changes> changes(std::string position, size_t most) = 0;
};

}  // namespace tabella::outbox

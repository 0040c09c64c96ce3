// What the outbox does: takes emails, tells what became of them, and lets people step in. How they are
// delivered is the dispatcher's business (outbox/dispatcher.h).
//
// An email is in the tables before it is acknowledged: its state with the backend, all else in our own table.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "outbox/backend.h"
#include "outbox/message.h"
#include "outbox/pauses.h"
#include "outbox/suppressions.h"
#include "outbox/templates.h"
#include "store/store.h"

namespace tabella::outbox {

struct ServiceOptions {
  std::string messages = "tabella-outbox-messages";                          // our table
  std::string worker;                                                        // unlike all others that run
  std::optional<std::chrono::seconds> time_to_live = std::chrono::days{30};  // after it is given up
  std::chrono::milliseconds give_up = std::chrono::days{4};
  std::chrono::milliseconds lease{60'000};
  size_t max_recipients = 1000;
  bool has_callback = false;  // of the operator
};

// What a door hands over. It has been checked and composed, or is to be composed by intake.
struct Submission {
  std::string id = {};  // empty: one is made
  std::string door;     // "http", "ses", "submission"
  std::string from;     // of the envelope; empty: <>
  std::vector<std::string> recipients;
  std::string content = {};  // the message, ready to be sent; empty: there is only a payload
  std::string payload = {};  // what it is to be composed from
  std::string payload_file_path = {};
  std::string eml_file_path = {};
  std::string subject = {};
  std::string message_id = {};
  std::map<std::string, std::string> labels = {};
  Priority priority = Priority::normal;
  std::optional<TimePoint> send_at = {};
  std::string callback = {};
};

struct Accepted {
  std::string id;
  bool duplicate = false;  // there was one with that id: nothing was changed
};

// A message that this process has, and nobody else may work on until its lease is over.
struct HeldMessage {
  Email email;
  Message message;
  std::shared_ptr<const std::string> content;  // null: still to be loaded
};

// All that is known of an email.
struct Life {
  Email email;
  std::optional<Message> message;  // nothing: it is another program's, and we have had nothing to do with it
  std::vector<Step> history;
  std::vector<Attempt> attempts;
};

enum class Stepped { done, not_found, too_late };

// Thread-safe.
class Outbox {
 public:
  Outbox(store::Store& store, const Clock& clock, Backend& backend, ServiceOptions options);

  // Who works on messages. `hold` says whether one more can be kept in memory; `take` gets it once it is in
  // the tables, on the thread of whoever accepted it. Before the first is accepted.
  struct Hands {
    std::function<bool()> hold;
    std::function<void(HeldMessage)> take;
    std::function<void()> look;  // there is something to do that is in nobody's memory
  };
  void set_hands(Hands hands) { hands_ = std::move(hands); }
  // That there is something to do.
  void look() {
    if (hands_.look) hands_.look();
  }

  // Whether it could be accepted, as far as that can be said without the tables.
  store::Result<void> check(const Submission& submission) const;
  // Errors of the kind validation are the sender's.
  store::Async<Accepted> accept(Submission submission);

  store::Async<std::optional<Life>> find(std::string id);
  // The message as it is sent; nothing if it is not there (any more).
  store::Async<std::optional<std::string>> content(std::string id);
  store::Async<std::string> load(const Message& message, std::string_view kind);

  // Not sent any more: FAILED. Too late once it is being sent, or was.
  store::Async<Stepped> cancel(std::string id);
  // Once more: recipients that failed wait again. Too late for what is under way, or was delivered to all.
  store::Async<Stepped> requeue(std::string id);
  // That an email which was taken has come back for one of its recipients.
  store::Async<void> note_bounce(std::string id, std::string recipient, std::string diagnostic);
  // Work on an email of another program that has come to our notice; nothing if it is ours already.
  store::Async<void> adopt(const Email& email);

  Backend& backend() { return backend_; }
  store::Store& store() { return store_; }
  const Clock& clock() const { return clock_; }
  const ServiceOptions& options() const { return options_; }
  Suppressions& suppressions() { return suppressions_; }
  Templates& templates() { return templates_; }
  Pauses& pauses() { return pauses_; }

  store::Async<std::optional<Message>> find_message(const std::string& id);
  // Writes pieces of content or payload, in one batch or several.
  store::Async<void> put_pieces(const Message& message, std::string_view kind, std::string_view bytes);
  int64_t now() const { return epoch_milliseconds(clock_.now()); }
  std::optional<int64_t> expiry_of(TimePoint send_at) const;

  // Whether somebody is to be told what became of it.
  bool wants_callback(const Message& message) const {
    return options_.has_callback || !message.callback.empty();
  }
  // Until when all that there is of it is kept; nothing: for ever.
  store::Async<void> keep_until(Message& message, std::optional<int64_t> second);
  // Lists it as work that is nobody's.
  void make_due(Message& message, int64_t due) const;

  void write_metrics(metrics::Exposition& out) const;

 private:
  store::Result<Message> to_new_message(const Submission& submission) const;
  // Whether it is new.
  store::Async<void> adopt_again(const Email& email, Message message);
  store::Async<bool> put(const Email& email, const Message& message, const Submission& submission);

  store::Store& store_;
  const Clock& clock_;
  Backend& backend_;
  const ServiceOptions options_;
  Suppressions suppressions_;
  Templates templates_;
  Pauses pauses_;
  Hands hands_;
  metrics::Counter accepted_{0};
};

}  // namespace tabella::outbox

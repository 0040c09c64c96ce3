// What we know of an email beside its state: recipients, content, attempts, and when to look at it next. Rows
// of a table of our own; the only place that knows its attribute names.
//
//   id, part (keys)    part "message": the email itself
//                      "content-<body>#0000", …: the message as it is sent, in pieces; "payload-<body>#0000",
//                      …: what it is to be composed from; both in `bytes`
//                      "attempt#000001": what became of an attempt
//   shard, due, owner  of a message with work to do: the index by_due has it there; `due` is when to look at
//                      it, put off by a lease while `owner` is at it. Others have none of them.
//   expires            when the row goes, in seconds; none while its destination is paused
//
// Ids that begin with "#" are ours: #counts, #suppression, #template, #template-body, #configuration-set,
// #pause, #mark.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "item/value.h"
#include "store/rows.h"
#include "store/statements.h"
#include "store/tables.h"

namespace tabella::outbox {

// What became of an email for one of its recipients.
enum class Result {
  waiting,
  delivered,   // the next server has taken it
  failed,      // it never will
  suppressed,  // the address is on the suppression list
  unknown,     // it was sent, and the answer was lost: it may have been taken
};
std::string_view name_of(Result result);

struct Recipient {
  std::string address;
  Result result = Result::waiting;
  std::string reply = {};    // what was said of it last
  bool may_have_it = false;  // an attempt before may have delivered it, which is not known
};

enum class Priority { high, normal, low };
std::string_view name_of(Priority priority);
std::optional<Priority> priority_named(std::string_view name);

struct Message {
  std::string id;
  TimePoint created = {};
  std::string door = {};  // how it came: "http", "ses", "submission", "table"
  std::string from = {};  // of the envelope; empty: <>
  std::vector<Recipient> recipients = {};
  std::string subject = {};
  std::string message_id = {};
  std::map<std::string, std::string> labels = {};
  Priority priority = Priority::normal;
  TimePoint send_at = {};     // not before
  TimePoint give_up_at = {};  // no attempt is repeated after that
  std::string callback = {};  // a URL; empty: the operator's, if there is one
  bool composed = true;       // false: intake has still to compose it from its payload
  std::string body = {};      // what its pieces are called: those of another writer have another name
  size_t size = 0;            // of the content
  int attempts = 0;           // begun
  bool attempting = false;    // the last of them has no result yet
  std::optional<int64_t> expires = {};  // seconds since 1970

  // Work.
  std::string shard = {};
  int64_t due = 0;  // milliseconds since 1970
  std::string owner = {};

  bool any(Result result) const;
  // Twice the same address is one recipient.
  void add_recipient(std::string address);
};

// What was said to one recipient in an attempt.
struct AttemptResult {
  std::string address;
  std::string outcome;  // "delivered", "deferred", "failed", "unknown"
  std::string host = {};
  std::string step = {};
  std::string reply = {};  // the last line of the dialogue
};

struct Attempt {
  int number = 0;
  std::string outcome;  // the worst of them
  TimePoint began = {};
  TimePoint ended = {};
  std::string worker = {};
  bool repeated = false;  // an attempt before it may have delivered it
  std::vector<AttemptResult> results = {};
};

// One row of the index by_due.
struct DueMessage {
  std::string id;
  std::string shard;
  int64_t due = 0;
  std::string owner;
  std::string destination;  // where the first that waits is to go: a domain
};

inline constexpr const char* kByDue = "by_due";
// Parts of the index, for each priority. Changing it leaves work in parts that are no more: do not.
inline constexpr int kWorkShards = 4;

// The name of the table, and the table.
inline std::string messages_table(const std::string& prefix) { return prefix + "tabella-outbox-messages"; }
store::TablePlan messages_plan(const std::string& table);

// Where a message's work is listed.
std::string work_shard(const Message& message);
std::string work_shard(Priority priority, int number);
std::vector<std::string> all_work_shards();  // the most urgent first
// Where the work of a destination that is paused is kept: nobody looks there.
std::string paused_shard(std::string_view destination);

item::Item message_key(const std::string& id);
item::Item to_item(const Message& message);
std::optional<Message> to_message(item::ItemView row);
std::optional<DueMessage> to_due(item::ItemView row);

// A name for a message's pieces, unlike any other.
std::string make_body();
// How the parts of its pieces begin.
std::string pieces_prefix(const Message& message, std::string_view kind);
// The pieces of a message's content, or of its payload.
std::vector<item::Item> to_pieces(const Message& message, std::string_view kind, std::string_view bytes);
inline constexpr const char* kContent = "content";
inline constexpr const char* kPayload = "payload";

item::Item to_item(const Message& message, const Attempt& attempt);
std::optional<Attempt> to_attempt(item::ItemView row);

// Recipients as they stand in a row.
std::string recipients_json(const std::vector<Recipient>& recipients);

// The part of the address behind the last @, in lower case.
std::string domain_of(std::string_view address);
// Of the first recipient that waits; empty: none does.
std::string next_domain(const Message& message);

// Sets, on the message's row, what changes while it is delivered: recipients, attempts, work. Only where it
// is (still) there; and only if it is `owner`'s, unless that is empty.
store::Statement update_statement(const std::string& table, const Message& message,
                                  std::string_view owner = {});
// All of it, as after intake.
store::Statement rewrite_statement(const std::string& table, const Message& message);

}  // namespace tabella::outbox

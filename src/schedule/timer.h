// A timer, and the row that it is: the only place that knows the table's attribute names.
//
//   id (key)   the timer's name, its owner's to choose
//   shard, due the index by_due: which of the parts it is in, and when to look at it
//   at         when it is to fire; `due` moves on while somebody handles it
//   kind, payload, attempt
//   owner      the claim of whoever handles it, unlike all claims before
//   nonce      which put() or reschedule() made it so
//   expires    a row that is done stays for a while, without shard and due, and goes by time to live
//   end        what ended it: the claim that handled it, or a cancellation
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "item/value.h"
#include "store/requests.h"
#include "store/tables.h"

namespace tabella::schedule {

struct Timer {
  std::string id;
  std::string kind;     // whose it is: chooses the handler
  TimePoint at;         // when it fires, to the millisecond
  std::string payload;  // the handler's own, UTF-8
};

// A row of the index: enough to decide whether to claim it.
struct DueRow {
  std::string id;
  std::string kind;
  int64_t due = 0;    // milliseconds since 1970
  std::string owner;  // empty: nobody's
};

// What a claim gives.
struct ClaimedRow {
  Timer timer;
  int attempt = 1;
  std::string nonce;
};

inline constexpr const char* kIndex = "by_due";

// How many parts the index has. Changing it leaves the timers of parts that are no more: do not.
inline constexpr int kShards = 8;
std::string shard_name(int shard);
int shard_of(std::string_view id);

store::TablePlan plan(const std::string& table);

item::Item key_of(const std::string& id);
item::Item to_item(const Timer& timer, const std::string& nonce);
DueRow to_due_row(item::ItemView row);
ClaimedRow to_claimed_row(item::ItemView row);
std::string owner_of(item::ItemView row);
std::string nonce_of(item::ItemView row);
std::string end_of(item::ItemView row);
bool is_done(item::ItemView row);

}  // namespace tabella::schedule

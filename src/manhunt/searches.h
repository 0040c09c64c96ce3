// Searches: how they are opened, found and ended. What carries them on is runner.h.
//
// A search ends once: answering, cancelling and running out race, and one conditional write decides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"
#include "manhunt/steps.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::manhunt {

inline constexpr size_t kMostMetadata = 64 * 1024;  // bytes

struct OpenRequest {
  std::string domain;
  std::string contact;  // or
  std::string policy;
  std::string metadata = "{}";
  std::string key;
  bool low_urgency = false;
  std::string language;
  std::chrono::milliseconds wait = kUsualWait;  // of a contact's search, after its last attempt
  int64_t repeat = 0;                           // of a contact's search
};

struct Opened {
  Search search;
  bool fresh = true;  // false: it was open already, under the same key
};

struct SearchList {
  std::string list;  // the id of a contact, policy_list() or domain_list()
  std::optional<Status> status;
  std::optional<TimePoint> before;
  std::optional<TimePoint> after;
  int64_t limit = 50;
  std::string from;
};
struct SearchPage {
  std::vector<Search> searches;  // newest first
  std::string next;
};

struct Ended {
  bool won = false;  // it was this that ended it
  Search search;     // as it is now
};

// An answer of a person.
struct Answer {
  bool accept = true;
  std::optional<AttemptId> attempt;  // which was answered
  std::string how;                   // "phone", "text", "link", "simulator", "api"
  std::string by;
};

// Thread-safe.
class Searches {
 public:
  struct Parts {
    store::Store& store;
    const Clock& clock;
    schedule::Schedule& schedule;
    Domains& domains;
    Contacts& contacts;
  };
  Searches(Parts parts, std::string table) : parts_(parts), table_(std::move(table)) {}

  // As it would be opened; an error of the kind validation says what is wrong with the request.
  store::Async<Search> draft(OpenRequest request);
  store::Async<Opened> open(OpenRequest request);

  // Each is one query on one partition.
  store::Async<std::optional<Search>> find(std::string id);
  store::Async<std::optional<FullSearch>> find_full(std::string id);
  // By their ids, of which some may come twice.
  store::Async<std::map<std::string, Search>> find_all(std::vector<std::string> ids);
  store::Async<std::optional<Attempt>> find_attempt(std::string search, AttemptId id);
  // Those that a policy or a domain leads to are then read by their keys.
  store::Async<SearchPage> list(SearchList request);
  // The one that was opened under a key, if it is not over. `list` is the target's.
  store::Async<std::optional<Search>> find_by_key(std::string list, std::string key);

  // Nothing: there is no such search.
  store::Async<std::optional<Ended>> end(std::string id, Status status, Resolution resolution);
  // Who declines is left alone. Where the attempt came in a bundle, all that came with it are answered; `won`
  // says whether it was the answer of any, or had been before.
  store::Async<std::optional<Ended>> answer(std::string id, Answer answer);
  // What the key was for is over: it can be used again, and the search under it is canceled if it is active.
  store::Async<void> resolve(std::string list, std::string key, std::string by);
  store::Async<std::optional<Search>> resolve(Search search, std::string by);

  // Gives one that another program has written what it did not: its places in the lists, and a nonce.
  store::Async<void> adopt(const Search& search);

  // What a provider says of an attempt.
  store::Async<void> note_progress(std::string search, AttemptId attempt, std::string progress);
  // That what a provider had taken, under that reference, did not arrive: whoever runs the search
  // (runner.h) goes on to the next provider.
  store::Async<void> note_undelivered(std::string search, AttemptId attempt, std::string reference,
                                      std::string why);

  // Attempts of a bundle that have come with it; others may wait for the next message.
  store::Async<std::vector<Attempt>> sent_in(const std::string& bundle);
  // Of one that has become urgent: what was put off until the end of quiet hours is made when it would have
  // been.
  store::Async<void> finish_raising(std::string search);

  const std::string& table() const { return table_; }

 private:
  store::Async<Search> draft_unchecked(OpenRequest request);
  store::Async<void> add_searches(std::span<const store::Item> rows, std::vector<Search>& searches);
  store::Async<void> plan_opening(Plan& plan, const Search& search);
  // The search that was opened under it last.
  store::Async<std::optional<std::string>> search_of_key(const std::string& list, const std::string& key);
  store::Async<void> free_key(const std::string& list, const std::string& key, const std::string& search);
  // Opened again as urgent, what was not is urgent from now on.
  store::Async<void> raise(const std::string& search);
  store::Async<std::optional<Ended>> end(const Search& search, Status status, const Resolution& resolution);
  store::Async<std::optional<Ended>> answer_one(std::string id, Answer answer, std::string contact);
  store::Async<bool> answer_bundle(const Attempt& answered, const Answer& answer);
  store::Async<std::optional<Ended>> decline(const Search& search, const std::string& contact);
  store::Async<void> mark_answered(Attempt attempt, const Answer& answer);

  const Parts parts_;
  const std::string table_;
};

// Whether all whom a search has come to so far have declined.
bool all_declined(const FullSearch& search);

// The step that follows those that were begun: of their round, or the first of the next.
AttemptId next_of(const FullSearch& full);

// The partition of a bundle (bundles.h): a row for each attempt that is in it. And its timer.
std::string bundle_partition(std::string_view bundle);
std::string bundle_timer(std::string_view bundle);

}  // namespace tabella::manhunt

// The rows of manhunt: the only place that knows their attributes. One table, as docs/manhunt.md, "The
// table", lays it out: PK and SK, and two overloaded indexes, of which the second reuses GSI1SK.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "manhunt/rotation.h"
#include "store/rows.h"
#include "store/tables.h"

namespace tabella::manhunt {

inline constexpr const char* kPartition = "PK";
inline constexpr const char* kSort = "SK";
inline constexpr const char* kFirstIndex = "GSI1";
inline constexpr const char* kFirstPartition = "GSI1PK";
inline constexpr const char* kFirstSort = "GSI1SK";
inline constexpr const char* kSecondIndex = "GSI2";
inline constexpr const char* kSecondPartition = "GSI2PK";
inline constexpr const char* kExpires = "expires";  // seconds; time to live

store::TablePlan plan_manhunt_table(const std::string& name);

// What a row is; nothing can be read as what it is not.
std::string entity_type(item::ItemView row);

// What is wrong with the name of a domain, a policy, …; empty: nothing. "domain: …"
std::string problem_with_name(std::string_view what, std::string_view name);

enum class ChannelKind { phone, text, email, webhook };
inline constexpr ChannelKind kChannelKinds[] = {ChannelKind::phone, ChannelKind::text, ChannelKind::email,
                                                ChannelKind::webhook};
std::string_view name_of(ChannelKind kind);
std::optional<ChannelKind> channel_named(std::string_view name);

// After the end of its window a bundle is waited for so long, so that all that were counted in it are there.
inline constexpr std::chrono::milliseconds kBundleGrace{250};

// So many of a method's attempts in so long; those beyond come together, as one (bundles.h).
struct RateLimit {
  int64_t count = 0;  // 0: none
  std::chrono::milliseconds per{0};

  // The number of the window in which a moment is; they follow each other from 1970 on.
  int64_t window_of(TimePoint time) const { return epoch_milliseconds(time) / per.count(); }
  // When those come that were beyond it in a window.
  TimePoint bundle_due(int64_t window) const { return time_at((window + 1) * per.count()) + kBundleGrace; }
};

struct Method {
  std::string id;
  std::string contact;
  ChannelKind kind = ChannelKind::phone;
  std::string destination;
  std::chrono::milliseconds delay{0};  // after the attempt before it was begun
  int64_t order = 0;
  bool enabled = true;
  bool verified = false;
  RateLimit limit;
};

struct Contact {
  std::string id;
  std::string domain;
  std::string name;
  std::string timezone;  // empty: UTC
  std::string language;  // empty: the domain's
  std::optional<DailyWindow> quiet;
  int64_t created = 0;
};

struct FullContact {
  Contact contact;
  std::vector<Method> methods;  // in their order
};

enum class Status { active, canceled, successful, failed };
std::string_view name_of(Status status);
std::optional<Status> status_named(std::string_view name);

// Who is to be found at a step: contacts, and whoever is on call by a schedule.
struct Target {
  std::string contact;
  std::string schedule;  // instead
};
struct PolicyStep {
  std::vector<Target> targets;
  std::chrono::milliseconds wait{0};  // until the next step begins, or the search fails
};

// How a search ended.
struct Resolution {
  std::string how;  // "phone", "text", "link", "api", "canceled", "resolved", "exhausted", "declined", …
  std::string by;
  std::string attempt;
  std::string detail;
};

inline constexpr int64_t kMostRepeats = 20;
inline constexpr std::chrono::minutes kUsualWait{5};

struct Search {
  std::string id;
  std::string domain;
  std::string contact;  // or
  std::string policy;
  Status status = Status::active;
  int64_t created = 0;
  std::string key;  // by which it is opened once; empty: none
  bool low_urgency = false;
  std::string language;
  std::string metadata = "{}";    // JSON
  std::vector<PolicyStep> steps;  // as they were when it was opened
  int64_t repeat = 0;
  std::string nonce;  // signs its links
  int64_t ended = 0;
  Resolution resolution;
  std::vector<std::string> declined;  // contacts
  // Its first step was written with it; one that others have written is begun by the stream.
  bool begun = false;
  bool raising = false;  // it is being made urgent: what was put off is still to be brought forward

  bool has_declined(const std::string& contact_id) const;
};

// Which attempt of a search: "a01.01.02.03". All from 1.
struct AttemptId {
  int round = 1;
  int step = 1;
  int track = 1;  // which contact of the step
  int number = 1;

  std::string text() const;
  static std::optional<AttemptId> parse(std::string_view text);
  std::string step_text() const;  // "s01.01": the row of its step
  auto operator<=>(const AttemptId&) const = default;
};

// A contact at a step of a search, with the methods as they were when the step began.
struct TrackMethod {
  std::string id;
  ChannelKind kind = ChannelKind::phone;
  std::chrono::milliseconds delay{0};
};
struct Track {
  std::string contact;
  std::string name;
  std::string schedule;  // by which the contact was found; empty: by name
  std::vector<TrackMethod> methods;
};
struct Step {
  std::string search;
  int round = 1;
  int number = 1;
  int64_t started = 0;
  std::vector<Track> tracks;

  AttemptId id() const { return {.round = round, .step = number}; }
};

enum class Outcome { pending, sent, failed, unknown };
std::string_view name_of(Outcome outcome);

// One call to a provider. It is written down as pending before it is made; what a crash leaves is unknown.
struct Try {
  int64_t at = 0;
  std::string provider;
  Outcome outcome = Outcome::pending;
  std::string detail;
  std::string reference;  // the provider's name for it
};

enum class AttemptState { sending, sent, failed, unknown, skipped, bundled };
std::string_view name_of(AttemptState state);

struct Attempt {
  std::string search;
  AttemptId id;
  std::string domain;
  std::string contact;
  std::string contact_name;
  std::string method;
  ChannelKind kind = ChannelKind::phone;
  std::string destination;
  AttemptState state = AttemptState::sending;
  int64_t due = 0;
  int64_t started = 0;
  int64_t finished = 0;
  std::string detail;
  std::string bundle;      // which it comes with; empty: alone
  int64_t bundle_due = 0;  // when that comes
  std::string code;        // by which a text can be answered
  std::string subject;     // of an email
  std::string text;        // what is said
  std::string language;    // in which it is
  int64_t said = 0;        // when it was put anew, as nobody was reached before; 0: it is as it was begun
  std::vector<Try> tries;
  std::string progress;      // what the provider last said of it: "ringing", "delivered", …
  std::string answer;        // "accept", "decline"; empty: none
  std::string answered_how;  // "phone", "text", "link", "simulator", "api"
  int64_t answered = 0;
  bool simulated = false;  // listed among the simulator's phones

  // Nothing more is to be done for it. What is `bundled` waits for its bundle.
  bool is_over() const { return state != AttemptState::sending && state != AttemptState::bundled; }
  // Its last try has reached nobody, and another is to be made.
  bool waits_for_next_try() const {
    return state == AttemptState::sending && !tries.empty() && tries.back().outcome == Outcome::failed;
  }
  // When the person was last asked, or will be.
  int64_t asked() const;
  // Of the same bundle: whether one message was about both. What goes out together is tried at one time.
  bool came_with(const Attempt& other) const;
};

// Another list in which a search stands: its domain's, and those of the contacts that a policy led to.
struct Listing {
  std::string list;  // domain#…, or the id of a contact
  std::string search;
  Status status = Status::active;
  int64_t created = 0;
};
std::string domain_list(std::string_view domain);
std::string policy_list(std::string_view domain, std::string_view policy);
// In which a search itself stands: its contact's, or its policy's.
std::string target_list(const Search& search);
Listing domain_listing(const Search& search);

// Keys.
store::Item contact_key(std::string_view contact);
store::Item method_key(std::string_view contact, std::string_view method);
store::Item search_key(std::string_view search);
store::Item attempt_key(std::string_view search, const AttemptId& id);
store::Item step_key(std::string_view search, const AttemptId& id);
store::Item listing_key(std::string_view search, std::string_view list);
inline constexpr const char* kContactSort = "contact";
inline constexpr const char* kSearchSort = "search";
inline constexpr const char* kListingPrefix = "listing#";

// Rows, and back; nothing where the row is something else.
store::Item to_item(const Contact& contact);
store::Item to_item(const Method& method);
store::Item to_item(const Search& search);
store::Item to_item(const Step& step);
store::Item to_item(const Attempt& attempt);
store::Item to_item(const Listing& listing);
std::optional<Contact> to_contact(item::ItemView row);
std::optional<Method> to_method(item::ItemView row);
std::optional<Search> to_search(item::ItemView row);
std::optional<Step> to_step(item::ItemView row);
std::optional<Attempt> to_attempt(item::ItemView row);
std::optional<Listing> to_listing(item::ItemView row);

// A search with all that was done for it, in the order of its rows.
struct FullSearch {
  Search search;
  std::vector<Step> steps;
  std::vector<Attempt> attempts;
  std::vector<Listing> listings;
};

// Changes of rows.
store::Condition is_active();
// And whether that contact goes on being asked.
store::Condition is_asked(const std::string& contact);
store::Update method_update(const std::string& table, const Method& method, const Method& before);
store::Update end_update(const std::string& table, const Search& search, Status status,
                         const Resolution& resolution, TimePoint now);
// Only what is not there.
store::Update adopt_update(const std::string& table, const Search& search);
store::Update decline_update(const std::string& table, const std::string& search, const std::string& contact);
// Both only where `known` tries were made so far: whoever has lost its claim to somebody else changes
// nothing.
store::Update tries_update(const std::string& table, const Attempt& attempt, size_t known);
// Of one that was sent, and of which its provider said later that it did not arrive: what it said of it is
// not said of the next try.
store::Update undelivered_update(const std::string& table, const Attempt& attempt);
store::Update finish_update(const std::string& table, const Attempt& attempt, size_t known);
store::Update answer_update(const std::string& table, const Attempt& attempt);
store::Update progress_update(const std::string& table, const std::string& search, const AttemptId& id,
                              const std::string& progress);
store::Update unlist_update(const std::string& table, const Attempt& attempt);
store::Update listing_update(const std::string& table, const Listing& listing, Status status);
inline constexpr const char* kSimulatorList = "simulator";

// Of a step, of a method, of a search with one contact.
inline constexpr std::chrono::milliseconds kLongestWait = std::chrono::days{30};
// How many are asked at most, each time that somebody is counted, and by how many methods. Bounds, so that a
// search's rows can be read as a whole.
inline constexpr int64_t kMostAsked = 200;
inline constexpr size_t kMostMethods = 10;
int64_t most_asked(const std::vector<PolicyStep>& steps, int64_t repeat);

// As JSON has them: in requests, and in rows.
Checked<std::vector<PolicyStep>> read_steps(JsonValue json);
void write_steps(std::string& out, const std::vector<PolicyStep>& steps);

// Moments in index keys: their texts sort as they do.
std::string sortable_time(int64_t milliseconds);

// Ids that nobody can guess. The first letter says of what: c, m, s.
std::string make_id(char what);
bool is_search_id(std::string_view id);
// What the links of a search are signed with (links.h).
std::string make_nonce();

}  // namespace tabella::manhunt

// A search as it was and as it will be: who is asked when, by which method. The same for a dry run, for a
// search that runs, and to know when it has run out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"

namespace tabella::manhunt {

// Who is asked at a step: contacts, and by which schedule.
struct Called {
  std::string contact;
  std::string schedule;  // empty: by name
};
// Each once; nobody where a schedule has nobody.
std::vector<Called> called_at(const PolicyStep& step, const Domain& domain, TimePoint time);

// Contacts by their ids.
using Directory = std::map<std::string, FullContact>;
store::Async<Directory> load_contacts(Contacts& contacts, std::string domain, std::vector<std::string> ids);
// All whom a search may come to.
std::vector<std::string> contacts_of(const Search& search, const Domain& domain);

// With the methods that are in use now.
Track track_of(const Called& called, const FullContact& contact, const Domain& domain);

// Whether it is enabled, and verified where that is needed.
bool is_used(const Method& method, const Domain& domain);

// Whether an attempt by it may be made still; nothing: it was removed.
bool is_still_used(const std::optional<Method>& method, const Attempt& attempt, const Domain& domain);
inline constexpr const char* kNotUsedAnyMore = "the method was removed, disabled or changed";

// The first moment from `time` on that is not in the contact's quiet hours.
TimePoint after_quiet_hours(const Contact& contact, TimePoint time);

struct TimelineEntry {
  AttemptId id;
  TimePoint at;
  std::string contact;
  std::string contact_name;
  std::string schedule;
  std::string method;
  ChannelKind kind = ChannelKind::phone;
  std::string destination;
  const Attempt* made = nullptr;  // nothing: it is to come. Borrowed from the search.
  // It is beyond its method's limit, and comes with others then.
  std::optional<TimePoint> bundled = {};
};
struct Timeline {
  TimePoint begins;
  std::vector<TimelineEntry> entries;  // by their time
  std::vector<TimePoint> rounds;       // when each is over, if nobody answers
  TimePoint ends;                      // when the search fails then
};
// How many attempts count against the limits of methods in their windows of now, by the methods' ids.
using UsedLimits = std::map<std::string, int64_t>;

// With what is known now of what is to come; what is late comes at `now`. Who has declined is left out.
// Without `used` it is as if methods had no limits.
Timeline timeline_of(const FullSearch& search, const Domain& domain, const Directory& directory,
                     TimePoint now, const std::optional<UsedLimits>& used = {});

// Drawings.
std::string draw_text(const Timeline& timeline, const Search& search, TimePoint now);
std::string draw_svg(const Timeline& timeline, const Search& search, TimePoint now);

}  // namespace tabella::manhunt

#include "manhunt/model.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/duration.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time_text.h"

namespace tabella::manhunt {

using item::Value;
using std::chrono::milliseconds;
using store::flag_of;
using store::number_of;
using store::Row;
using store::text_of;

namespace {

constexpr const char* kEntity = "entityType";
constexpr const char* kDomain = "domain";
constexpr const char* kName = "name";
constexpr const char* kStatus = "status";
constexpr const char* kCreated = "created";
constexpr const char* kState = "state";
constexpr const char* kTries = "tries";

constexpr size_t kMostNameBytes = 64;
constexpr size_t kIdLength = 20;
constexpr size_t kNonceBytes = 18;
constexpr std::string_view kIdLetters = "0123456789abcdefghijklmnopqrstuv";
constexpr size_t kMostSteps = 50;
constexpr size_t kMostTargets = 20;

template <class Kind, size_t N>
std::optional<Kind> kind_named(const std::string_view (&names)[N], std::string_view name) {
  const auto* const at = std::ranges::find(names, name);
  if (at == std::end(names)) return std::nullopt;
  return static_cast<Kind>(at - names);
}

constexpr std::string_view kChannelNames[] = {"phone", "text", "email", "webhook"};
constexpr std::string_view kStatusNames[] = {"active", "canceled", "successful", "failed"};
constexpr std::string_view kOutcomeNames[] = {"pending", "sent", "failed", "unknown"};
constexpr std::string_view kStateNames[] = {"sending", "sent", "failed", "unknown", "skipped", "bundled"};

store::IndexDefinition overloaded_index(const char* name, const char* partition) {
  return {.name = name,
          .key_schema = {{partition, store::KeyRole::hash}, {kFirstSort, store::KeyRole::range}},
          .projection = store::ProjectionType::all};
}

store::Item key_of(std::string_view partition, std::string_view sort) {
  return Row().set(kPartition, partition).set(kSort, sort);
}

std::string status_list(Status status, std::string_view list) {
  return fmt::format("{}#{}", name_of(status), list);
}

bool is_entity(item::ItemView row, std::string_view type) { return text_of(row, kEntity) == type; }

void set_text(Row& row, const char* name, const std::string& value) {
  if (!value.empty()) row.set(name, value);
}

std::optional<DailyWindow> read_quiet(const std::string& json) {
  if (json.empty()) return std::nullopt;
  JsonDocument document;
  const auto parsed = document.parse(json);
  const auto window = parsed && parsed->is_object() ? read_window(*parsed) : invalid("");
  return window ? std::optional(*window) : std::nullopt;
}

Value text_value(std::string_view text) { return Value::string(std::string(text)); }

Value tries_value(const std::vector<Try>& tries) {
  std::vector<Value> all;
  for (const auto& each : tries) {
    auto one = Value::map();
    one.set_member("at", Value::integer(each.at));
    one.set_member("provider", text_value(each.provider));
    one.set_member("outcome", text_value(name_of(each.outcome)));
    if (!each.detail.empty()) one.set_member("detail", text_value(each.detail));
    if (!each.reference.empty()) one.set_member("reference", text_value(each.reference));
    all.push_back(std::move(one));
  }
  return Value::list(std::move(all));
}

std::vector<Try> read_tries(item::ItemView row) {
  std::vector<Try> tries;
  const auto list = row.find(kTries);
  if (!list || list->type() != item::Type::L) return tries;
  for (item::Elements each(*list); each.next();)
    tries.push_back(
        {.at = number_of(each.value(), "at"),
         .provider = text_of(each.value(), "provider"),
         .outcome =
             kind_named<Outcome>(kOutcomeNames, text_of(each.value(), "outcome")).value_or(Outcome::unknown),
         .detail = text_of(each.value(), "detail"),
         .reference = text_of(each.value(), "reference")});
  return tries;
}

Value tracks_value(const std::vector<Track>& tracks) {
  std::vector<Value> all;
  for (const auto& track : tracks) {
    auto one = Value::map();
    one.set_member("contact", text_value(track.contact));
    one.set_member("name", text_value(track.name));
    if (!track.schedule.empty()) one.set_member("schedule", text_value(track.schedule));
    std::vector<Value> methods;
    for (const auto& method : track.methods) {
      auto each = Value::map();
      each.set_member("id", text_value(method.id));
      each.set_member("type", text_value(name_of(method.kind)));
      each.set_member("delay", Value::integer(method.delay.count()));
      methods.push_back(std::move(each));
    }
    one.set_member("methods", Value::list(std::move(methods)));
    all.push_back(std::move(one));
  }
  return Value::list(std::move(all));
}

std::vector<Track> read_tracks(item::ItemView row) {
  std::vector<Track> tracks;
  const auto list = row.find("tracks");
  if (!list || list->type() != item::Type::L) return tracks;
  for (item::Elements each(*list); each.next();) {
    Track track{.contact = text_of(each.value(), "contact"),
                .name = text_of(each.value(), "name"),
                .schedule = text_of(each.value(), "schedule")};
    const auto methods = store::member_of(each.value(), "methods");
    if (methods && methods->type() == item::Type::L)
      for (item::Elements one(*methods); one.next();)
        track.methods.push_back(
            {.id = text_of(one.value(), "id"),
             .kind = channel_named(text_of(one.value(), "type")).value_or(ChannelKind::phone),
             .delay = milliseconds(number_of(one.value(), "delay"))});
    tracks.push_back(std::move(track));
  }
  return tracks;
}

Checked<Target> read_target(JsonValue json) {
  Target target{.contact = std::string(json.is_object() ? json.text("contact") : ""),
                .schedule = std::string(json.is_object() ? json.text("schedule") : "")};
  if (target.contact.empty() == target.schedule.empty())
    return invalid(R"(targets: expected {"contact": "…"} or {"schedule": "…"})");
  return target;
}

// Another program may have written it.
void make_readable(Search& search) {
  constexpr int64_t kYear2200 = 7'258'118'400'000;
  search.created = std::clamp<int64_t>(search.created, 0, kYear2200);
  JsonDocument document;
  const auto metadata = document.parse(search.metadata);
  if (!metadata || !metadata->is_object()) search.metadata = "{}";
}

}  // namespace

store::TablePlan plan_manhunt_table(const std::string& name) {
  using item::Type;
  auto plan = store::plan_table(name, {{kPartition, Type::S}, {kSort, Type::S}}, kExpires);
  for (const auto* attribute : {kFirstPartition, kFirstSort, kSecondPartition})
    plan.definition.attributes.push_back({attribute, Type::S});
  plan.definition.global_indexes = {overloaded_index(kFirstIndex, kFirstPartition),
                                    overloaded_index(kSecondIndex, kSecondPartition)};
  plan.definition.stream = store::StreamView::new_and_old_images;
  return plan;
}

std::string entity_type(item::ItemView row) { return text_of(row, kEntity); }

std::string problem_with_name(std::string_view what, std::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMostNameBytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (fits) return {};
  return fmt::format("{}: expected 1 to {} letters, digits, dots, dashes and underscores", what,
                     kMostNameBytes);
}

std::string_view name_of(ChannelKind kind) { return kChannelNames[static_cast<size_t>(kind)]; }
std::optional<ChannelKind> channel_named(std::string_view name) {
  return kind_named<ChannelKind>(kChannelNames, name);
}
std::string_view name_of(Status status) { return kStatusNames[static_cast<size_t>(status)]; }
std::optional<Status> status_named(std::string_view name) { return kind_named<Status>(kStatusNames, name); }
std::string_view name_of(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }
std::string_view name_of(AttemptState state) { return kStateNames[static_cast<size_t>(state)]; }

std::string AttemptId::text() const {
  return fmt::format("a{:02}.{:02}.{:02}.{:02}", round, step, track, number);
}
std::string AttemptId::step_text() const { return fmt::format("s{:02}.{:02}", round, step); }

std::optional<AttemptId> AttemptId::parse(std::string_view text) {
  if (!text.starts_with('a')) return std::nullopt;
  const auto parts = split(text.substr(1), '.');
  if (parts.size() != 4) return std::nullopt;
  AttemptId id;
  int* const into[] = {&id.round, &id.step, &id.track, &id.number};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto* const end = parts[i].data() + parts[i].size();
    const auto [read, error] = std::from_chars(parts[i].data(), end, *into[i]);
    if (error != std::errc{} || read != end || *into[i] < 1) return std::nullopt;
  }
  return id.text() == text ? std::optional(id) : std::nullopt;
}

std::string domain_list(std::string_view domain) { return fmt::format("domain#{}", domain); }
std::string target_list(const Search& search) {
  return search.contact.empty() ? policy_list(search.domain, search.policy) : search.contact;
}
Listing domain_listing(const Search& search) {
  return {.list = domain_list(search.domain),
          .search = search.id,
          .status = search.status,
          .created = search.created};
}
std::string policy_list(std::string_view domain, std::string_view policy) {
  return fmt::format("policy#{}#{}", domain, policy);
}

store::Item contact_key(std::string_view contact) { return key_of(contact, kContactSort); }
store::Item method_key(std::string_view contact, std::string_view method) { return key_of(contact, method); }
store::Item search_key(std::string_view search) { return key_of(search, kSearchSort); }
store::Item attempt_key(std::string_view search, const AttemptId& id) { return key_of(search, id.text()); }
store::Item step_key(std::string_view search, const AttemptId& id) { return key_of(search, id.step_text()); }
store::Item listing_key(std::string_view search, std::string_view list) {
  return key_of(search, fmt::format("{}{}", kListingPrefix, list));
}

store::Item to_item(const Contact& contact) {
  Row row;
  row.set(kPartition, contact.id).set(kSort, kContactSort).set(kEntity, "contact");
  row.set(kFirstPartition, contact.domain).set(kFirstSort, contact.name);
  row.set(kDomain, contact.domain).set(kCreated, contact.created);
  set_text(row, "timezone", contact.timezone);
  set_text(row, "language", contact.language);
  if (contact.quiet) {
    std::string quiet;
    write_window(quiet, *contact.quiet);
    row.set("quiet", quiet);
  }
  return row;
}

std::optional<Contact> to_contact(item::ItemView row) {
  if (!is_entity(row, "contact")) return std::nullopt;
  return Contact{.id = text_of(row, kPartition),
                 .domain = text_of(row, kDomain),
                 .name = text_of(row, kFirstSort),
                 .timezone = text_of(row, "timezone"),
                 .language = text_of(row, "language"),
                 .quiet = read_quiet(text_of(row, "quiet")),
                 .created = number_of(row, kCreated)};
}

store::Item to_item(const Method& method) {
  Row row;
  row.set(kPartition, method.contact).set(kSort, method.id).set(kEntity, "contactMethod");
  row.set("type", name_of(method.kind)).set("destination", method.destination);
  row.set("delay", method.delay.count()).set("order", method.order);
  row.set("enabled", method.enabled).set("verified", method.verified);
  if (method.limit.count > 0) row.set("limit", method.limit.count).set("limitPer", method.limit.per.count());
  return row;
}

std::optional<Method> to_method(item::ItemView row) {
  if (!is_entity(row, "contactMethod")) return std::nullopt;
  return Method{.id = text_of(row, kSort),
                .contact = text_of(row, kPartition),
                .kind = channel_named(text_of(row, "type")).value_or(ChannelKind::phone),
                .destination = text_of(row, "destination"),
                .delay = milliseconds(number_of(row, "delay")),
                .order = number_of(row, "order"),
                .enabled = flag_of(row, "enabled"),
                .verified = flag_of(row, "verified"),
                .limit = {.count = number_of(row, "limit"), .per = milliseconds(number_of(row, "limitPer"))}};
}

store::Item to_item(const Search& search) {
  Row row;
  row.set(kPartition, search.id).set(kSort, kSearchSort).set(kEntity, "search");
  row.set(kFirstPartition, target_list(search)).set(kFirstSort, sortable_time(search.created));
  row.set(kSecondPartition, status_list(search.status, target_list(search)));
  row.set(kDomain, search.domain).set(kStatus, name_of(search.status)).set(kCreated, search.created);
  set_text(row, "contact", search.contact);
  set_text(row, "policy", search.policy);
  set_text(row, "key", search.key);
  set_text(row, "language", search.language);
  row.set("metadata", search.metadata).set("repeat", search.repeat).set("nonce", search.nonce);
  if (search.low_urgency) row.set("lowUrgency", true);
  if (search.begun) row.set("begun", true);
  if (search.raising) row.set("raising", true);
  std::string steps;
  write_steps(steps, search.steps);
  row.set("steps", steps);
  if (search.status != Status::active) {
    row.set("ended", search.ended).set("how", search.resolution.how);
    set_text(row, "detail", search.resolution.detail);
  }
  return row;
}

std::optional<Search> to_search(item::ItemView row) {
  if (!is_entity(row, "search")) return std::nullopt;
  Search search{.id = text_of(row, kPartition),
                .domain = text_of(row, kDomain),
                .contact = text_of(row, "contact"),
                .policy = text_of(row, "policy"),
                .status = status_named(text_of(row, kStatus)).value_or(Status::failed),
                .created = number_of(row, kCreated),
                .key = text_of(row, "key"),
                .low_urgency = flag_of(row, "lowUrgency"),
                .language = text_of(row, "language"),
                .metadata = text_of(row, "metadata"),
                .repeat = number_of(row, "repeat"),
                .nonce = text_of(row, "nonce"),
                .ended = number_of(row, "ended"),
                .resolution = {.how = text_of(row, "how"),
                               .by = text_of(row, "by"),
                               .attempt = text_of(row, "attempt"),
                               .detail = text_of(row, "detail")},
                .begun = flag_of(row, "begun"),
                .raising = flag_of(row, "raising")};
  if (const auto declined = row.find("declined"); declined && declined->type() == item::Type::SS)
    for (item::Elements each(*declined); each.next();) search.declined.emplace_back(each.content());
  JsonDocument document;
  if (const auto json = document.parse(text_of(row, "steps")))
    if (auto steps = read_steps(*json)) search.steps = std::move(*steps);
  if (!search.begun) make_readable(search);
  search.repeat = std::clamp<int64_t>(search.repeat, 0, kMostRepeats);
  while (search.repeat > 0 && most_asked(search.steps, search.repeat) > kMostAsked) --search.repeat;
  if (search.steps.empty() && !search.contact.empty())
    search.steps.push_back({.targets = {{.contact = search.contact}}, .wait = kUsualWait});
  return search;
}

store::Item to_item(const Step& step) {
  return Row()
      .set(kPartition, step.search)
      .set(kSort, step.id().step_text())
      .set(kEntity, "searchStep")
      .set("round", step.round)
      .set("number", step.number)
      .set("started", step.started)
      .set("tracks", tracks_value(step.tracks));
}

std::optional<Step> to_step(item::ItemView row) {
  if (!is_entity(row, "searchStep")) return std::nullopt;
  return Step{.search = text_of(row, kPartition),
              .round = static_cast<int>(number_of(row, "round")),
              .number = static_cast<int>(number_of(row, "number")),
              .started = number_of(row, "started"),
              .tracks = read_tracks(row)};
}

store::Item to_item(const Attempt& attempt) {
  Row row;
  row.set(kPartition, attempt.search).set(kSort, attempt.id.text()).set(kEntity, "searchAttempt");
  row.set(kDomain, attempt.domain).set("contact", attempt.contact).set(kName, attempt.contact_name);
  row.set("method", attempt.method).set("type", name_of(attempt.kind));
  row.set("destination", attempt.destination).set(kState, name_of(attempt.state));
  row.set("due", attempt.due).set("started", attempt.started);
  if (attempt.finished > 0) row.set("finished", attempt.finished);
  set_text(row, "detail", attempt.detail);
  set_text(row, "bundle", attempt.bundle);
  if (attempt.bundle_due > 0) row.set("bundleDue", attempt.bundle_due);
  set_text(row, "code", attempt.code);
  set_text(row, "subject", attempt.subject);
  set_text(row, "text", attempt.text);
  set_text(row, "language", attempt.language);
  row.set(kTries, tries_value(attempt.tries));
  return row;
}

std::optional<Attempt> to_attempt(item::ItemView row) {
  if (!is_entity(row, "searchAttempt")) return std::nullopt;
  const auto id = AttemptId::parse(text_of(row, kSort));
  if (!id) return std::nullopt;
  return Attempt{
      .search = text_of(row, kPartition),
      .id = *id,
      .domain = text_of(row, kDomain),
      .contact = text_of(row, "contact"),
      .contact_name = text_of(row, kName),
      .method = text_of(row, "method"),
      .kind = channel_named(text_of(row, "type")).value_or(ChannelKind::phone),
      .destination = text_of(row, "destination"),
      .state = kind_named<AttemptState>(kStateNames, text_of(row, kState)).value_or(AttemptState::unknown),
      .due = number_of(row, "due"),
      .started = number_of(row, "started"),
      .finished = number_of(row, "finished"),
      .detail = text_of(row, "detail"),
      .bundle = text_of(row, "bundle"),
      .bundle_due = number_of(row, "bundleDue"),
      .code = text_of(row, "code"),
      .subject = text_of(row, "subject"),
      .text = text_of(row, "text"),
      .language = text_of(row, "language"),
      .said = number_of(row, "said"),
      .tries = read_tries(row),
      .progress = text_of(row, "progress"),
      .answer = text_of(row, "answer"),
      .answered_how = text_of(row, "answeredHow"),
      .answered = number_of(row, "answered"),
      .simulated = row.find(kFirstPartition).has_value()};
}

store::Item to_item(const Listing& listing) {
  return Row()
      .set(kPartition, listing.search)
      .set(kSort, kListingPrefix + listing.list)
      .set(kEntity, "searchListing")
      .set(kFirstPartition, listing.list)
      .set(kFirstSort, sortable_time(listing.created))
      .set(kSecondPartition, status_list(listing.status, listing.list))
      .set(kStatus, name_of(listing.status))
      .set(kCreated, listing.created);
}

std::optional<Listing> to_listing(item::ItemView row) {
  if (!is_entity(row, "searchListing")) return std::nullopt;
  return Listing{.list = text_of(row, kFirstPartition),
                 .search = text_of(row, kPartition),
                 .status = status_named(text_of(row, kStatus)).value_or(Status::failed),
                 .created = number_of(row, kCreated)};
}

bool Search::has_declined(const std::string& contact_id) const {
  return std::ranges::find(declined, contact_id) != declined.end();
}

int64_t Attempt::asked() const {
  if (state == AttemptState::bundled) return std::max(started, bundle_due);
  return tries.empty() ? started : tries.back().at;
}

bool Attempt::came_with(const Attempt& other) const {
  return std::ranges::any_of(tries, [&](const Try& one) {
    return std::ranges::find(other.tries, one.at, &Try::at) != other.tries.end();
  });
}

store::Condition is_active() { return store::equals(kStatus, name_of(Status::active)); }

store::Condition is_asked(const std::string& contact) {
  return is_active() && store::Condition("NOT contains(#, :)", {"declined"}, {contact});
}

store::Update method_update(const std::string& table, const Method& method, const Method& before) {
  const bool elsewhere = method.destination != before.destination || method.kind != before.kind;
  store::Update update(table, method_key(method.contact, method.id));
  update.set("type", name_of(method.kind)).set("destination", method.destination);
  update.set("delay", method.delay.count()).set("order", method.order).set("enabled", method.enabled);
  if (elsewhere) update.set("verified", false).remove("codeHash").remove("codeUntil").remove("guesses");
  if (method.limit.count > 0)
    update.set("limit", method.limit.count).set("limitPer", method.limit.per.count());
  else
    update.remove("limit").remove("limitPer");
  // Somebody else may have changed it since: what was verified there is not verified here.
  update.when(store::equals("type", name_of(before.kind)) &&
              store::equals("destination", before.destination));
  return update;
}

// Who makes this change ends the search: it is made once.
store::Update end_update(const std::string& table, const Search& search, Status status,
                         const Resolution& resolution, TimePoint now) {
  store::Update update(table, search_key(search.id));
  update.set(kStatus, name_of(status)).set(kSecondPartition, status_list(status, target_list(search)));
  update.set("ended", epoch_milliseconds(now)).set("how", resolution.how);
  if (!resolution.by.empty()) update.set("by", resolution.by);
  if (!resolution.attempt.empty()) update.set("attempt", resolution.attempt);
  if (!resolution.detail.empty()) update.set("detail", resolution.detail);
  update.when(is_active()).returning(store::ReturnValues::all_new).return_old_on_failure();
  return update;
}

store::Update adopt_update(const std::string& table, const Search& search) {
  store::Update update(table, search_key(search.id));
  const auto list = target_list(search);
  update.set_if_absent(kFirstPartition, list).set_if_absent(kFirstSort, sortable_time(search.created));
  update.set_if_absent(kSecondPartition, status_list(search.status, list));
  update.set_if_absent("nonce", make_nonce()).when(store::exists(kPartition));
  return update;
}

store::Update decline_update(const std::string& table, const std::string& search,
                             const std::string& contact) {
  store::Update update(table, search_key(search));
  const std::vector<std::string> one{contact};
  update.add("declined", one)
      .when(is_active())
      .returning(store::ReturnValues::all_new)
      .return_old_on_failure();
  return update;
}

store::Update tries_update(const std::string& table, const Attempt& attempt, size_t known) {
  store::Update update(table, attempt_key(attempt.search, attempt.id));
  update.set(kTries, tries_value(attempt.tries)).set(kState, name_of(attempt.state));
  if (attempt.said > 0) update.set("said", attempt.said);
  if (attempt.said > 0 && !attempt.text.empty())
    update.set("text", attempt.text).set("language", attempt.language);
  update.when(store::Condition("size(#) = :", {kTries}, {known}));
  return update;
}

store::Update undelivered_update(const std::string& table, const Attempt& attempt) {
  auto update = tries_update(table, attempt, attempt.tries.size());
  update.remove("progress").when(store::equals(kState, name_of(AttemptState::sent)));
  return update;
}

store::Update finish_update(const std::string& table, const Attempt& attempt, size_t known) {
  auto update = tries_update(table, attempt, known);
  update.set("finished", attempt.finished);
  if (!attempt.detail.empty()) update.set("detail", attempt.detail);
  if (attempt.said == 0 && !attempt.text.empty())
    update.set("text", attempt.text).set("language", attempt.language);
  if (attempt.simulated)
    update.set(kFirstPartition, kSimulatorList).set(kFirstSort, sortable_time(attempt.started));
  return update;
}

store::Update answer_update(const std::string& table, const Attempt& attempt) {
  store::Update update(table, attempt_key(attempt.search, attempt.id));
  update.set("answer", attempt.answer).set("answeredHow", attempt.answered_how);
  update.set("answered", attempt.answered).when(store::exists(kPartition) && store::absent("answer"));
  return update;
}

store::Update progress_update(const std::string& table, const std::string& search, const AttemptId& id,
                              const std::string& progress) {
  store::Update update(table, attempt_key(search, id));
  update.set("progress", progress).when(store::exists(kPartition));
  // What comes late does not take back how it ended.
  for (const auto* final :
       {"completed", "busy", "failed", "no-answer", "canceled", "delivered", "undelivered", "hung up"})
    update.when(store::absent("progress") || store::differs("progress", final));
  return update;
}

store::Update unlist_update(const std::string& table, const Attempt& attempt) {
  store::Update update(table, attempt_key(attempt.search, attempt.id));
  update.remove(kFirstPartition).remove(kFirstSort).when(store::exists(kPartition));
  return update;
}

store::Update listing_update(const std::string& table, const Listing& listing, Status status) {
  store::Update update(table, listing_key(listing.search, listing.list));
  update.set(kStatus, name_of(status)).set(kSecondPartition, status_list(status, listing.list));
  update.when(store::exists(kPartition));
  return update;
}

int64_t most_asked(const std::vector<PolicyStep>& steps, int64_t repeat) {
  int64_t asked = 0;
  for (const auto& step : steps) asked += static_cast<int64_t>(step.targets.size());
  return asked * (repeat + 1);
}

Checked<std::vector<PolicyStep>> read_steps(JsonValue json) {
  if (json.kind() != JsonValue::Kind::array) return invalid("steps: expected a list");
  std::vector<PolicyStep> steps;
  for (JsonElements each(json); each.next();) {
    const auto one = each.value();
    if (!one.is_object()) return invalid("steps: expected a list of objects");
    for (JsonElements members(one); members.next();)
      if (members.key() != "wait" && members.key() != "targets")
        return invalid(fmt::format("steps: {} is not known here", printable(members.key())));
    PolicyStep step;
    const auto wait = parse_duration(one.text("wait"));
    if (!wait || *wait > kLongestWait || wait->count() < 1)
      return invalid("steps: wait: expected a time as in 5m, up to 30d");
    step.wait = *wait;
    const auto targets = one.find("targets");
    if (!targets || targets->kind() != JsonValue::Kind::array)
      return invalid(R"(steps: targets: expected a list as in [{"contact": "…"}])");
    for (JsonElements all(*targets); all.next();) {
      TABELLA_ASSIGN(auto target, read_target(all.value()));
      step.targets.push_back(std::move(target));
    }
    if (step.targets.empty() || step.targets.size() > kMostTargets)
      return invalid(fmt::format("steps: targets: expected 1 to {}", kMostTargets));
    steps.push_back(std::move(step));
  }
  if (steps.empty() || steps.size() > kMostSteps)
    return invalid(fmt::format("steps: expected 1 to {}", kMostSteps));
  return steps;
}

void write_steps(std::string& out, const std::vector<PolicyStep>& steps) {
  JsonArrayWriter all(out);
  for (const auto& step : steps) {
    JsonObjectWriter one(all.element());
    one.string("wait", duration_text(step.wait));
    JsonArrayWriter targets(one.key("targets"));
    for (const auto& target : step.targets) {
      JsonObjectWriter each(targets.element());
      if (!target.contact.empty()) each.string("contact", target.contact);
      if (!target.schedule.empty()) each.string("schedule", target.schedule);
    }
  }
}

std::string sortable_time(int64_t milliseconds) { return time_text(time_at(milliseconds)); }

std::string make_id(char what) {
  std::string id(1, what);
  for (const char byte : random_bytes(kIdLength)) id.push_back(kIdLetters[static_cast<uint8_t>(byte) % 32]);
  return id;
}

std::string make_nonce() { return to_base64url(random_bytes(kNonceBytes)); }

bool is_search_id(std::string_view id) {
  return id.size() == 1 + kIdLength && id.starts_with('s') &&
         id.substr(1).find_first_not_of(kIdLetters) == std::string_view::npos;
}

}  // namespace tabella::manhunt

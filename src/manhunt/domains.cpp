#include "manhunt/domains.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time_text.h"
#include "store/batches.h"
#include "store/conditional.h"

namespace tabella::manhunt {

using store::Async;
using store::Row;
using store::text_of;

namespace {

constexpr size_t kMostNamed = 200;  // policies in a maintenance window
constexpr const char* kDefinition = "definition";
constexpr const char* kSettings = "settings";
constexpr const char* kRoutingSort = "routing";
constexpr const char* kSecret = "secret";
constexpr int kChangeTries = 10;

std::string domain_partition(std::string_view domain) { return fmt::format("domain#{}", domain); }

std::string_view prefix_of(Part part) {
  switch (part) {
    case Part::policy: return "policy#";
    case Part::schedule: return "schedule#";
    case Part::maintenance: return "maintenance#";
    case Part::wording: return "template#";
  }
  std::unreachable();
}

store::Item settings_key(std::string_view domain) {
  return Row().set(kPartition, domain_partition(domain)).set(kSort, kSettings);
}

store::Item part_key(std::string_view domain, Part part, std::string_view name) {
  return Row().set(kPartition, domain_partition(domain)).set(kSort, part_sort(part, name));
}

store::Item part_row(std::string_view domain, Part part, std::string_view name, std::string_view json) {
  return Row()
      .set(kPartition, domain_partition(domain))
      .set(kSort, part_sort(part, name))
      .set("entityType", prefix_of(part).substr(0, prefix_of(part).size() - 1))
      .set(kDefinition, json);
}

store::Item routing_key_of(std::string_view key) {
  return Row().set(kPartition, fmt::format("routing#{}", key)).set(kSort, kRoutingSort);
}

std::string make_routing_key() { return to_hex(random_bytes(16)); }

std::string sealing_context(const std::string& domain) { return "manhunt domain " + domain; }

std::string json_of(const auto& value,
                    void (*write)(JsonObjectWriter&, const std::decay_t<decltype(value)>&)) {
  std::string json;
  JsonObjectWriter object(json);
  write(object, value);
  return json;
}

size_t bytes_of_overrides(const OnCallSchedule& schedule) {
  if (schedule.overrides.empty()) return 0;
  auto without = schedule;
  without.overrides.clear();
  return json_of(schedule, write_schedule).size() - json_of(without, write_schedule).size();
}

// What was written by us reads; what was not is left out, and said so.
template <class T>
void read_into(std::map<std::string, T, std::less<>>& all, std::string_view name, const std::string& json,
               Checked<T> (*read)(JsonValue)) {
  JsonDocument document;
  const auto parsed = document.parse(json);
  auto value = parsed && parsed->is_object() ? read(*parsed) : invalid("it is no JSON object");
  if (value)
    all.insert_or_assign(std::string(name), std::move(*value));
  else
    log::warning("manhunt cannot read its own row {}: {}", printable(name), value.error().message);
}

Checked<Wording> read_wording(JsonValue json) {
  return Wording{.subject = std::string(json.text("subject")), .text = std::string(json.text("text"))};
}

void read_row(Domain& domain, item::ItemView row) {
  const auto sort = text_of(row, kSort);
  if (sort == kSettings) {
    domain.title = text_of(row, "title");
    domain.language = text_of(row, "language");
    domain.require_verification = store::flag_of(row, "requireVerification");
    domain.events_url = text_of(row, "eventsUrl");
    domain.secret = text_of(row, kSecret);
    return;
  }
  const auto hash = sort.find('#');
  if (hash == std::string::npos) return;
  const auto prefix = std::string_view(sort).substr(0, hash + 1);
  const auto name = std::string_view(sort).substr(hash + 1);
  const auto json = text_of(row, kDefinition);
  if (prefix == prefix_of(Part::policy)) read_into(domain.policies, name, json, read_policy);
  if (prefix == prefix_of(Part::schedule)) read_into(domain.schedules, name, json, read_schedule);
  if (prefix == prefix_of(Part::maintenance)) read_into(domain.maintenance, name, json, read_maintenance);
  if (prefix == prefix_of(Part::wording)) read_into(domain.wordings, name, json, read_wording);
}

}  // namespace

std::string part_sort(Part part, std::string_view name) { return fmt::format("{}{}", prefix_of(part), name); }

std::string Domain::under_maintenance(std::string_view policy, TimePoint now) const {
  for (const auto& [id, window] : maintenance) {
    const bool covers =
        window.policies.empty() || std::ranges::find(window.policies, policy) != window.policies.end();
    if (covers && window.from <= now && now < window.to) return id;
  }
  return {};
}

std::string use_of_contact(const Domain& domain, std::string_view contact, TimePoint now) {
  std::vector<std::string> uses;
  for (const auto& [name, policy] : domain.policies)
    if (std::ranges::any_of(policy.steps, [&](const PolicyStep& step) {
          return std::ranges::find(step.targets, contact, &Target::contact) != step.targets.end();
        }))
      uses.push_back("policy " + name);
  for (const auto& [name, schedule] : domain.schedules) {
    const bool rotates = std::ranges::any_of(schedule.rotations, [&](const Rotation& rotation) {
      return std::ranges::find(rotation.contacts, contact) != rotation.contacts.end();
    });
    const bool overrides = std::ranges::any_of(
        schedule.overrides, [&](const Override& one) { return one.contact == contact && one.to > now; });
    if (rotates || overrides) uses.push_back("schedule " + name);
  }
  return fmt::format("{}", fmt::join(uses, ", "));
}

std::string use_of_schedule(const Domain& domain, std::string_view schedule) {
  std::vector<std::string> uses;
  for (const auto& [name, policy] : domain.policies)
    if (std::ranges::any_of(policy.steps, [&](const PolicyStep& step) {
          return std::ranges::find(step.targets, schedule, &Target::schedule) != step.targets.end();
        }))
      uses.push_back("policy " + name);
  return fmt::format("{}", fmt::join(uses, ", "));
}

Checked<Policy> read_policy(JsonValue json) {
  Policy policy{.title = std::string(json.text("title")),
                .routing_key = std::string(json.text("routing_key"))};
  const auto steps = json.find("steps");
  if (!steps)
    return invalid(R"(steps: expected a list as in [{"wait": "5m", "targets": [{"contact": "…"}]}])");
  TABELLA_ASSIGN(policy.steps, read_steps(*steps));
  if (const auto repeat = json.find("repeat")) {
    if (repeat->kind() != JsonValue::Kind::integer || repeat->integer() < 0 ||
        repeat->integer() > kMostRepeats)
      return invalid(fmt::format("repeat: expected 0 to {}", kMostRepeats));
    policy.repeat = repeat->integer();
  }
  if (const auto asked = most_asked(policy.steps, policy.repeat); asked > kMostAsked)
    return invalid(fmt::format("steps: with all rounds {} would be asked, and a search asks {} at most",
                               asked, kMostAsked));
  return policy;
}

void write_policy(JsonObjectWriter& out, const Policy& policy) {
  out.string("title", policy.title);
  write_steps(out.key("steps"), policy.steps);
  out.number("repeat", policy.repeat);
  if (!policy.routing_key.empty()) out.string("routing_key", policy.routing_key);
}

Checked<Maintenance> read_maintenance(JsonValue json) {
  const auto from = parse_time(json.text("from"));
  const auto to = parse_time(json.text("to"));
  if (!from || !to || *to <= *from)
    return invalid("from and to: expected moments as in 2026-11-18T09:00:00Z, from before to");
  Maintenance maintenance{.from = *from, .to = *to};
  if (const auto policies = json.find("policies")) {
    if (policies->kind() != JsonValue::Kind::array) return invalid("policies: expected a list of policies");
    for (JsonElements each(*policies); each.next();) {
      if (each.value().kind() != JsonValue::Kind::string)
        return invalid("policies: expected a list of policies");
      maintenance.policies.emplace_back(each.value().string());
      if (maintenance.policies.size() > kMostNamed)
        return invalid(fmt::format("policies: at most {}", kMostNamed));
    }
  }
  return maintenance;
}

void write_maintenance(JsonObjectWriter& out, const Maintenance& maintenance) {
  out.string("from", time_text(maintenance.from));
  out.string("to", time_text(maintenance.to));
  JsonArrayWriter policies(out.key("policies"));
  for (const auto& policy : maintenance.policies) append_json_string(policies.element(), policy);
}

Async<DomainView> Domains::find(std::string domain) {
  for (const auto* known : {&known_, &empty_})
    if (auto view = known->find(domain)) co_return std::move(*view);
  co_return co_await read(std::move(domain));
}

Async<DomainView> Domains::read(std::string domain) {
  const auto asked = clock_.elapsed();
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          store_, store::Query(table_).partition(kPartition, domain_partition(domain)).consistent()));
  auto view = std::make_shared<Domain>();
  view->name = domain;
  for (const auto& row : rows) {
    view->bytes_of.emplace(store::text_of(row, kSort), row.bytes().size());
    read_row(*view, row);
  }
  for (const auto& [name, schedule] : view->schedules) {
    view->overrides += schedule.overrides.size();
    view->bytes_of[part_sort(Part::schedule, name)] -= bytes_of_overrides(schedule);
  }
  for (const auto& [sort, bytes] : view->bytes_of) view->bytes += bytes;
  view->always_verified = always_verified_;
  (rows.empty() ? empty_ : known_).keep(std::move(domain), view, asked);
  co_return view;
}

void Domains::forget(const std::string& domain) {
  known_.forget(domain);
  empty_.forget(domain);
}

Async<void> Domains::put_settings(Domain domain) {
  store::Update update(table_, settings_key(domain.name));
  update.set("entityType", "domain")
      .set("title", domain.title)
      .set("language", domain.language)
      .set("requireVerification", domain.require_verification)
      .set("eventsUrl", domain.events_url);
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  forget(domain.name);
  co_return store::Result<void>();
}

Async<void> Domains::put(std::string domain, Part part, std::string name, std::string json) {
  TABELLA_CO_TRY(co_await store_.put_item(store::Put(table_, part_row(domain, part, name, json))));
  forget(domain);
  co_return store::Result<void>();
}

Async<bool> Domains::remove(std::string domain, Part part, std::string name) {
  TABELLA_CO_ASSIGN(const auto view, co_await read(domain));
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Delete(table_, part_key(domain, part, name)).when(store::exists(kPartition)));
  if (part == Part::policy)
    if (const auto policy = view->policies.find(name); policy != view->policies.end())
      writes.push_back(store::Delete(table_, routing_key_of(policy->second.routing_key)));
  const auto removed = co_await store_.transact_write_items({.writes = std::move(writes)});
  forget(domain);
  if (!removed && store::failed_its_conditions(removed.error())) co_return false;
  TABELLA_CO_TRY(removed);
  co_return true;
}

Async<void> Domains::put_policy(std::string domain, std::string name, Policy policy) {
  TABELLA_CO_ASSIGN(const auto view, co_await read(domain));
  const auto before = view->policies.find(name);
  const bool is_new = before == view->policies.end();
  policy.routing_key = is_new ? make_routing_key() : before->second.routing_key;
  co_return co_await write_policy_and_key(domain, name, policy, is_new ? "" : policy.routing_key);
}

Async<bool> Domains::change_routing_key(std::string domain, std::string name) {
  TABELLA_CO_ASSIGN(const auto view, co_await read(domain));
  const auto before = view->policies.find(name);
  if (before == view->policies.end()) co_return false;
  auto policy = before->second;
  policy.routing_key = make_routing_key();
  TABELLA_CO_TRY(co_await write_policy_and_key(domain, name, policy, before->second.routing_key));
  co_return true;
}

// Where its key is another one by now, somebody else was faster. `key_before` is empty where it is new.
Async<void> Domains::write_policy_and_key(const std::string& domain, const std::string& name,
                                          const Policy& policy, const std::string& key_before) {
  const auto there = [](bool is_there) {
    return is_there ? store::exists(kPartition) : store::absent(kPartition);
  };
  const bool keeps_key = key_before == policy.routing_key;
  store::Item routing = Row()
                            .set(kPartition, fmt::format("routing#{}", policy.routing_key))
                            .set(kSort, kRoutingSort)
                            .set("entityType", "routing")
                            .set("domain", domain)
                            .set("policy", name);
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, part_row(domain, Part::policy, name, json_of(policy, write_policy)))
                       .when(there(!key_before.empty())));
  writes.push_back(store::Put(table_, std::move(routing)).when(there(keeps_key)));
  if (!key_before.empty() && !keeps_key)
    writes.push_back(store::Delete(table_, routing_key_of(key_before)).when(there(true)));
  const auto written =
      co_await store_.transact_write_items({.writes = std::move(writes), .token = make_uuid()});
  forget(domain);
  if (!written && store::lost_a_race(written.error()))
    co_return store::fail(store::ErrorCode::unavailable,
                          "the policy was changed by somebody else just now: try again");
  TABELLA_CO_TRY(written);
  co_return store::Result<void>();
}

Async<bool> Domains::change_schedule(std::string domain, std::string name,
                                     std::function<Checked<void>(OnCallSchedule&)> change) {
  for (int i = 0; i < kChangeTries; ++i) {
    TABELLA_CO_ASSIGN(
        const auto found,
        co_await store_.get_item(
            {.table = table_, .key = part_key(domain, Part::schedule, name), .consistent = true}));
    if (!found.item) co_return false;
    const auto before = text_of(*found.item, kDefinition);
    JsonDocument document;
    const auto json = document.parse(before);
    if (!json) co_return store::fail(store::ErrorCode::internal, "the schedule's row cannot be read");
    TABELLA_CO_ASSIGN(auto schedule, read_schedule(*json));
    TABELLA_CO_TRY(change(schedule));
    store::Update update(table_, part_key(domain, Part::schedule, name));
    update.set(kDefinition, json_of(schedule, write_schedule)).when(store::equals(kDefinition, before));
    TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(std::move(update))));
    forget(domain);
    if (made) co_return true;
  }
  co_return store::fail(store::ErrorCode::unavailable, "the schedule changes too fast: try again");
}

Async<std::optional<Routed>> Domains::routed(std::string routing_key) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = routing_key_of(routing_key), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return Routed{.domain = text_of(*found.item, "domain"), .policy = text_of(*found.item, "policy")};
}

store::Result<std::string> Domains::open(const std::string& sealed, const std::string& domain) const {
  auto secret = secrets_.open(sealed, sealing_context(domain));
  if (!secret) return store::fail(store::ErrorCode::unavailable, secret.error());
  return std::move(*secret);
}

store::Result<std::string> Domains::make_secret(const std::string& domain) const {
  auto sealed = secrets_.seal("manhunt_" + to_hex(random_bytes(32)), sealing_context(domain));
  if (!sealed) return store::fail(store::ErrorCode::unavailable, sealed.error());
  return std::move(*sealed);
}

Async<void> Domains::change_secret(std::string domain) {
  TABELLA_CO_ASSIGN(const auto sealed, make_secret(domain));
  store::Update update(table_, settings_key(domain));
  update.set("entityType", "domain").set(kSecret, sealed);
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  forget(domain);
  co_return store::Result<void>();
}

Async<std::string> Domains::secret(std::string domain) {
  TABELLA_CO_ASSIGN(const auto view, co_await find(domain));
  if (!view->secret.empty()) co_return open(view->secret, domain);
  const auto sealed = make_secret(domain);
  if (!sealed) co_return store::error_of(sealed);
  store::Update update(table_, settings_key(domain));
  update.set("entityType", "domain").set_if_absent(kSecret, *sealed).returning(store::ReturnValues::all_new);
  TABELLA_CO_ASSIGN(const auto written, co_await store_.update_item(std::move(update)));
  forget(domain);
  co_return open(text_of(*written.attributes, kSecret), domain);
}

Async<bool> Domains::is_secret(std::string domain, std::string key) {
  TABELLA_CO_ASSIGN(const auto view, co_await find(domain));
  if (view->secret.empty() || key.empty()) co_return false;
  TABELLA_CO_ASSIGN(const auto secret, open(view->secret, domain));
  co_return equal_in_constant_time(secret, key);
}

}  // namespace tabella::manhunt

#include "inbox/settings.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "inbox/model.h"
#include "store/batches.h"
#include "store/rows.h"

namespace tabella::inbox {

using store::Async;
using store::Row;

namespace {

constexpr std::chrono::seconds kKnownFor{3};
constexpr size_t kMostKnown = 1'000;
constexpr const char* kTenantSort = "st#tenant_settings";
constexpr const char* kInboxPrefix = "si#";
constexpr const char* kTitle = "title";
constexpr const char* kDescription = "description";
constexpr const char* kTtl = "ttl";
constexpr const char* kSecret = "secret";
constexpr const char* kPublicKeys = "publickeys";
constexpr const char* kDefaultWishes = "preferences";
constexpr const char* kSchema = "schema";
constexpr const char* kDigests = "digests";
constexpr const char* kEmail = "email";
constexpr const char* kWebhook = "webhook";
constexpr const char* kProfileSort = "su#profile";

std::string tenant_partition(std::string_view tenant) { return fmt::format("t#{}", tenant); }
store::Item tenant_key(std::string_view tenant) {
  return Row().set(kPartition, tenant_partition(tenant)).set(kSort, kTenantSort);
}
store::Item inbox_key(const Place& place) {
  return Row().set(kPartition, tenant_partition(place.tenant)).set(kSort, kInboxPrefix + place.inbox);
}

store::Item profile_key(std::string_view tenant, std::string_view user) {
  return Row().set(kPartition, fmt::format("t#{}U#{}", tenant, user)).set(kSort, kProfileSort);
}

std::chrono::seconds seconds_in(item::ValueView map, const char* name) {
  return std::chrono::seconds(store::number_of(map, name));
}

item::Value text_map(std::initializer_list<std::pair<const char*, std::string_view>> members) {
  auto map = item::Value::map();
  for (const auto& [name, text] : members) map.set_member(name, item::Value::string(std::string(text)));
  return map;
}

TenantSettings read_tenant(item::ItemView row) {
  TenantSettings settings{.title = store::text_of(row, kTitle),
                          .ttl = store::text_of(row, kTtl),
                          .secret = store::text_of(row, kSecret)};
  if (const auto keys = row.find(kPublicKeys); keys && keys->type() == item::Type::L)
    for (item::Elements each(*keys); each.next();) settings.public_keys.emplace_back(each.value().content());
  settings.wishes = read_wishes(row, kDefaultWishes);
  return settings;
}

InboxSettings read_inbox(item::ItemView row) {
  InboxSettings settings{.title = store::text_of(row, kTitle),
                         .description = store::text_of(row, kDescription)};
  if (const auto ttl = row.find(kTtl); ttl && ttl->type() == item::Type::M)
    for (item::Elements each(*ttl); each.next();)
      settings.ttl[std::string(each.name())] = std::string(each.value().content());
  settings.wishes = read_wishes(row, kDefaultWishes);
  settings.schema = store::text_of(row, kSchema);
  // One that an earlier version took and this one does not is none.
  if (!settings.schema.empty())
    if (auto schema = Schema::read(settings.schema)) settings.checked_schema = std::move(*schema);
  if (const auto digests = row.find(kDigests); digests && digests->type() == item::Type::M)
    for (item::Elements each(*digests); each.next();)
      settings.digests[std::string(each.name())] = {.every = store::text_of(each.value(), "every"),
                                                    .title = store::text_of(each.value(), "title")};
  if (const auto email = row.find(kEmail))
    settings.email = {.from = store::text_of(*email, "from"),
                      .link_base = store::text_of(*email, "link_base"),
                      .after = seconds_in(*email, "after")};
  if (const auto hook = row.find(kWebhook))
    settings.webhook = {.url = store::text_of(*hook, "url"), .after = seconds_in(*hook, "after")};
  return settings;
}

std::optional<std::chrono::seconds> ttl_of(std::string_view text) {
  const auto time = parse_duration(text);
  if (!time) return {};
  return std::chrono::duration_cast<std::chrono::seconds>(*time);
}

}  // namespace

std::string problem_with_ttl(std::string_view text) {
  const auto ttl = ttl_of(text);
  if (ttl && *ttl >= std::chrono::seconds(1) && *ttl <= kLongestTtl) return {};
  return fmt::format("expected a time as in 30d, 300m or 6000s, from 1s to {}d",
                     std::chrono::duration_cast<std::chrono::days>(kLongestTtl).count());
}

Async<Settings::Both> Settings::both(Place place) {
  const auto now = clock_.elapsed();
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(place);
    if (known != known_.end() && now - known->second.read < kKnownFor) co_return known->second;
  }
  std::vector<store::Item> keys{tenant_key(place.tenant), inbox_key(place)};
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(store_, table_, std::move(keys)));
  Both found{.read = now};
  for (const auto& row : rows) {
    if (store::text_of(row, kSort) == kTenantSort)
      found.tenant = read_tenant(row);
    else
      found.inbox = read_inbox(row);
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[place] = found;
  co_return found;
}

void Settings::forget() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

Async<std::optional<TenantSettings>> Settings::tenant(std::string tenant) {
  TABELLA_CO_ASSIGN(auto found, co_await both({.tenant = std::move(tenant), .inbox = ""}));
  co_return std::move(found.tenant);
}

Async<std::optional<InboxSettings>> Settings::inbox(Place place) {
  TABELLA_CO_ASSIGN(auto found, co_await both(std::move(place)));
  co_return std::move(found.inbox);
}

// What is not said here stays: the secret.
Async<void> Settings::put(std::string tenant, TenantSettings settings) {
  std::vector<item::Value> keys;
  for (auto& key : settings.public_keys) keys.push_back(item::Value::string(std::move(key)));
  store::Update update(table_, tenant_key(tenant));
  update.set("kind", "TS").set("tenant_key", tenant).set(kTitle, settings.title);
  update.set(kPublicKeys, item::Value::list(std::move(keys)));
  update.set(kDefaultWishes, wishes_value(settings.wishes));
  if (settings.ttl.empty())
    update.remove(kTtl);
  else
    update.set(kTtl, settings.ttl);
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  forget();
  co_return store::Result<void>();
}

Async<void> Settings::put(Place place, InboxSettings settings) {
  auto ttl = item::Value::map();
  for (auto& [category, time] : settings.ttl) ttl.set_member(category, item::Value::string(std::move(time)));
  store::Update update(table_, inbox_key(place));
  update.set("kind", "IC").set("tenant_key", place.tenant).set("inbox_key", place.inbox);
  update.set(kTitle, settings.title).set(kDescription, settings.description).set(kTtl, ttl);
  update.set(kDefaultWishes, wishes_value(settings.wishes));
  if (settings.schema.empty())
    update.remove(kSchema);
  else
    update.set(kSchema, settings.schema);
  auto digests = item::Value::map();
  for (const auto& [category, digest] : settings.digests)
    digests.set_member(category, text_map({{"every", digest.every}, {"title", digest.title}}));
  update.set(kDigests, digests);
  if (settings.email) {
    auto email = text_map({{"from", settings.email->from}, {"link_base", settings.email->link_base}});
    email.set_member("after", item::Value::integer(settings.email->after.count()));
    update.set(kEmail, email);
  } else {
    update.remove(kEmail);
  }
  if (settings.webhook) {
    auto hook = text_map({{"url", settings.webhook->url}});
    hook.set_member("after", item::Value::integer(settings.webhook->after.count()));
    update.set(kWebhook, hook);
  } else {
    update.remove(kWebhook);
  }
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  forget();
  co_return store::Result<void>();
}

Async<std::string> Settings::put_secret(std::string tenant, std::string secret, bool anew) {
  store::Update update(table_, tenant_key(tenant));
  update.set("kind", "TS").set("tenant_key", tenant).returning(store::ReturnValues::all_new);
  if (anew)
    update.set(kSecret, secret);
  else
    update.set_if_absent(kSecret, secret);
  TABELLA_CO_ASSIGN(const auto written, co_await store_.update_item(std::move(update)));
  forget();
  co_return store::text_of(*written.attributes, kSecret);
}

Async<std::map<std::string, InboxSettings>> Settings::inboxes(std::string tenant) {
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::query_all(store_, store::Query(table_)
                                                          .partition(kPartition, tenant_partition(tenant))
                                                          .where(store::begins_with(kSort, kInboxPrefix))
                                                          .consistent()));
  std::map<std::string, InboxSettings> all;
  for (const auto& row : rows) all[store::text_of(row, kSort).substr(3)] = read_inbox(row);
  co_return all;
}

Async<std::optional<Profile>> Settings::profile(std::string tenant, std::string user) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = profile_key(tenant, user), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return Profile{.email = store::text_of(*found.item, kEmail),
                    .name = store::text_of(*found.item, "name")};
}

Async<void> Settings::put(std::string tenant, std::string user, Profile profile) {
  store::Update update(table_, profile_key(tenant, user));
  update.set("kind", "UP").set("tenant_key", tenant).set("uid", user);
  update.set(kEmail, profile.email).set("name", profile.name);
  TABELLA_CO_TRY(co_await store_.update_item(std::move(update)));
  co_return store::Result<void>();
}

Async<void> Settings::remove_profile(std::string tenant, std::string user) {
  TABELLA_CO_TRY(co_await store_.delete_item(store::Delete(table_, profile_key(tenant, user))));
  co_return store::Result<void>();
}

Async<Settings::Rules> Settings::rules(Place place) {
  TABELLA_CO_ASSIGN(auto found, co_await both(std::move(place)));
  co_return Rules{.inbox = std::move(found.inbox).value_or(InboxSettings{}),
                  .tenant = std::move(found.tenant).value_or(TenantSettings{})};
}

std::chrono::seconds Settings::Rules::time_to_live(std::string_view category) const {
  for (const auto name : {category, std::string_view("default")})
    if (const auto ttl = inbox.ttl.find(name); ttl != inbox.ttl.end())
      return ttl_of(ttl->second).value_or(kUsualTtl);
  return tenant.ttl.empty() ? kUsualTtl : ttl_of(tenant.ttl).value_or(kUsualTtl);
}

bool Settings::Rules::wants(std::string_view category, Channel channel) const {
  if (const auto wish = wish_of(inbox.wishes, category, channel)) return *wish;
  return wish_of(tenant.wishes, category, channel).value_or(channel == Channel::bell);
}

}  // namespace tabella::inbox

#include "inbox/digests.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "inbox/sequence.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kDigestTimer = "inbox-digest";
constexpr const char* kGathered = "n";
constexpr const char* kVersion = "v";
constexpr const char* kItemPrefix = "i#";
constexpr const char* kItemExpires = "expires";  // for who gathers; nobody sees it
constexpr int64_t kMostInRow = 200;
constexpr size_t kMostShown = 50;
constexpr int kMostVersions = 1000;  // of a digest: each after the one before it was published
// What comes late comes together, once nothing more has come for so long.
constexpr std::chrono::seconds kLate{10};
// What is kept of each.
constexpr size_t kMostGatheredTitle = 200;
constexpr size_t kMostGatheredBody = 500;
constexpr size_t kMostGatheredLink = 500;
constexpr const char* kUsualTitle = "{count} new: {category}";

store::Item digest_key(const Box& box, std::string_view category, int64_t end, int part) {
  return store::Row()
      .set(kPartition, box.partition())
      .set(kSort, fmt::format("d#{}#{}#{}", end, category, part));
}

// The same whoever asks: a message that is redacted is looked for there.
std::string digest_id(const Box& box, std::string_view category, int64_t end, int part, int version) {
  const auto hash = sha256(fmt::format("{}#{}#{}#{}#{}", box.partition(), category, end, part, version));
  uint64_t bits = 0;
  for (const char c : hash.substr(0, 8)) bits = bits << 8 | static_cast<unsigned char>(c);
  return make_message_id(end * 1000, bits);
}

std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "…";
}

item::Value gathered_item(const Content& content) {
  const item::ValueView message{std::string_view(content.message)};
  auto map = item::Value::map();
  map.set_member("title",
                 item::Value::string(shortened(store::text_of(message, "title"), kMostGatheredTitle)));
  if (auto body = store::text_of(message, "body"); !body.empty())
    map.set_member("body", item::Value::string(shortened(std::move(body), kMostGatheredBody)));
  // A link that is cut off leads nowhere.
  if (auto link = store::text_of(message, "cta_uri"); !link.empty() && link.size() <= kMostGatheredLink)
    map.set_member("cta_uri", item::Value::string(std::move(link)));
  if (!content.sender.empty())
    map.set_member("sender", item::Value::string(shortened(content.sender, kMostGatheredTitle)));
  map.set_member(kItemExpires, item::Value::integer(content.expires));
  return map;
}

std::string filled(std::string text, int64_t count, std::string_view category) {
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string>{"{count}", std::to_string(count)},
        {"{category}", std::string(category)}})
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

// Of several their number, the newest of them, and the ids of the others. One is as it was: `alone`, if that
// is known.
item::Value digest_message(std::vector<std::pair<std::string, item::Value>> items,
                           std::vector<item::Value> others, const std::string& title,
                           std::string_view category, std::optional<item::Value> alone = {}) {
  const auto count = static_cast<int64_t>(items.size() + others.size());
  const bool is_one = count == 1 && !items.empty();
  auto message = alone ? std::move(*alone) : is_one ? items.front().second : item::Value::map();
  if (!alone && !is_one) message.set_member("title", item::Value::string(filled(title, count, category)));
  auto digest = item::Value::map();
  digest.set_member("count", item::Value::integer(count));
  std::vector<item::Value> list;
  for (auto& [id, one] : items) {
    if (list.size() == kMostShown) {
      others.push_back(item::Value::string(id));
      continue;
    }
    one.set_member("id", item::Value::string(id));
    list.push_back(std::move(one));
  }
  digest.set_member("items", item::Value::list(std::move(list)));
  if (!others.empty()) digest.set_member("others", item::Value::list(std::move(others)));
  digest.set_member("heading", item::Value::string(title));
  digest.set_member("category", item::Value::string(std::string(category)));
  message.set_member("digest", std::move(digest));
  return message;
}

// Those that have not expired meanwhile, the newest first.
std::vector<std::pair<std::string, item::Value>> gathered_items(item::ItemView row, TimePoint now) {
  std::vector<std::pair<std::string, item::Value>> items;
  for (item::Attributes each(row); each.next();) {
    if (!each.name().starts_with(kItemPrefix)) continue;
    const auto expires = each.value().member(kItemExpires);
    if (expires && item::number_to_int(expires->content()).value_or(0) <= epoch_milliseconds(now) / 1000)
      continue;
    auto item = item::Value::decode(each.value());
    item.remove_member(kItemExpires);
    items.emplace_back(each.name().substr(2), std::move(item));
  }
  std::ranges::sort(items, [](const auto& a, const auto& b) { return a.first > b.first; });
  return items;
}

}  // namespace

Digests::Digests(store::Store& store, const Clock& clock, Settings& settings, schedule::Schedule& schedule,
                 std::string table)
    : store_(store), clock_(clock), settings_(settings), schedule_(schedule), table_(std::move(table)) {
  schedule_.on(kDigestTimer, [this](const schedule::Firing& firing) { return carry_out(firing); });
}

TimePoint Digests::end_of_window(TimePoint at, std::chrono::seconds every) {
  const auto length = every.count() * 1000;
  return time_at((epoch_milliseconds(at) / length + 1) * length);
}

Async<void> Digests::set_timer(const Box& box, const Content& content, int part) {
  const auto end = content.gathered_until;
  const auto name = fmt::format("{}#{}#{}#{}#{}#{}", box.place.tenant, box.place.inbox, box.user,
                                content.category, end, part);
  return schedule_.put({.id = fmt::format("{}#{}", kDigestTimer, name),
                        .kind = kDigestTimer,
                        .at = is_late(content, clock_.now()) ? clock_.now() + kLate : time_at(end),
                        .payload = name});
}

bool Digests::is_late(const Content& content, TimePoint now) {
  return time_at(content.gathered_until) < now + std::chrono::seconds(1);
}

store::Put Digests::was_gathered(const Box& box, const Content& content) const {
  return store::Put(table_, store::Row()
                                .set(kPartition, box.partition())
                                .set(kSort, fmt::format("g#{}", content.id))
                                .set("removeat", content.expires + kGrace.count()))
      .when(store::absent(kPartition));
}

store::Update Digests::gathering(const Box& box, const Content& content, int part) const {
  const auto attribute = kItemPrefix + content.id;
  store::Update update(table_, digest_key(box, content.category, content.gathered_until, part));
  update.set_if_absent(attribute, gathered_item(content))
      .set_if_absent("removeat", content.expires + kGrace.count())
      .add(kGathered, 1)
      .add(kVersion, 1)
      .when(store::exists(attribute) || store::absent(kGathered) || store::less(kGathered, kMostInRow));
  return update;
}

Async<bool> Digests::is_there(const store::Item& key) {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item({.table = table_, .key = key, .consistent = true}));
  co_return found.item.has_value();
}

Async<std::vector<std::string>> Digests::take_out(const Box& box, const Content& content) {
  const auto end = content.gathered_until;
  std::vector<std::string> published;
  for (int part = 0; part < kMostParts; ++part) {
    auto key = digest_key(box, content.category, end, part);
    TABELLA_CO_ASSIGN(const bool gathers, co_await is_there(key));
    if (gathers) {
      store::Update update(table_, key);
      update.remove(kItemPrefix + content.id).add(kVersion, 1).when(store::exists(kPartition));
      // Or it was published just now.
      const auto removed = co_await store_.update_item(std::move(update));
      if (!removed && removed.error().code != store::ErrorCode::conditional_check_failed)
        co_return std::unexpected(removed.error());
    }
    int version = 0;
    for (; version < kMostVersions; ++version) {
      auto id = digest_id(box, content.category, end, part, version);
      TABELLA_CO_ASSIGN(const bool there, co_await is_there(post_key(box.place, id)));
      if (!there) break;
      published.push_back(std::move(id));
    }
    if (!gathers && version == 0) break;
  }
  co_return published;
}

std::optional<item::Value> Digests::without(item::ValueView message, const std::string& id) {
  const auto digest = store::member_of(message, "digest");
  if (!digest) return item::Value::decode(message);
  const auto list = digest->member("items");
  if (!list || list->type() != item::Type::L) return item::Value::decode(message);
  std::vector<std::pair<std::string, item::Value>> items;
  bool found = false;
  for (item::Elements each(*list); each.next();) {
    auto its_id = store::text_of(each.value(), "id");
    found = found || its_id == id;
    if (its_id != id) items.emplace_back(std::move(its_id), item::Value::decode(each.value()));
  }
  std::vector<item::Value> others;
  if (const auto more = digest->member("others"); more && more->type() == item::Type::L)
    for (item::Elements each(*more); each.next();) {
      found = found || each.value().content() == id;
      if (each.value().content() != id) others.push_back(item::Value::decode(each.value()));
    }
  if (!found) return item::Value::decode(message);
  if (items.empty() && others.empty()) return {};
  return digest_message(std::move(items), std::move(others), store::text_of(*digest, "heading"),
                        store::text_of(*digest, "category"));
}

awaitable<void> Digests::carry_out(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 6)
    co_return log::error("a timer of the inbox names no digest: {}", firing.timer.payload);
  const Box box{.place = {.tenant = std::string(parts[0]), .inbox = std::string(parts[1])},
                .user = std::string(parts[2])};
  const auto published = co_await publish(box, std::string(parts[3]), std::stoll(std::string(parts[4])),
                                          std::stoi(std::string(parts[5])));
  if (!published) throw std::runtime_error(published.error().message);
}

// What was kept of it is short; its post has all of it. Nothing: it has not any more.
Async<std::optional<item::Value>> Digests::restore(const Place& place, Content& content,
                                                   const std::string& id) {
  TABELLA_CO_ASSIGN(const auto found, co_await store_.get_item(
                                          {.table = table_, .key = post_key(place, id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  auto post = read_post(id, *found.item);
  if (post.content.message.empty()) co_return std::nullopt;
  content.sender = std::move(post.content.sender);
  content.host_system_id = std::move(post.content.host_system_id);
  content.label = std::move(post.content.label);
  co_return item::Value::decode(item::ValueView(std::string_view(post.content.message)));
}

Async<void> Digests::publish(const Box& box, const std::string& category, int64_t end, int part) {
  const auto key = digest_key(box, category, end, part);
  TABELLA_CO_ASSIGN(const auto rules, co_await settings_.rules(box.place));
  const auto settings = rules.inbox.digests.find(category);
  const bool titled = settings != rules.inbox.digests.end() && !settings->second.title.empty();
  const std::string title = titled ? settings->second.title : kUsualTitle;
  for (int version = 0; version < kMostVersions; ++version) {
    TABELLA_CO_ASSIGN(const auto found,
                      co_await store_.get_item({.table = table_, .key = key, .consistent = true}));
    if (!found.item) co_return store::Result<void>();
    TABELLA_CO_ASSIGN(const bool taken,
                      co_await is_there(post_key(box.place, digest_id(box, category, end, part, version))));
    if (taken) continue;
    auto along =
        store::Delete(table_, key).when(store::equals(kVersion, store::number_of(*found.item, kVersion)));
    const auto now = clock_.now();
    auto items = gathered_items(*found.item, now);
    if (items.empty()) {
      TABELLA_CO_TRY(co_await store_.delete_item(std::move(along)));
      co_return store::Result<void>();
    }
    const auto count = static_cast<int64_t>(items.size());
    Digest digest{.box = box, .content = {}, .channels = channel_plans(rules, category, {})};
    std::optional<item::Value> alone;
    if (count == 1) {
      TABELLA_CO_ASSIGN(alone, co_await restore(box.place, digest.content, items.front().first));
    }
    digest.content.id = digest_id(box, category, end, part, version);
    digest.content.category = category;
    digest.content.received = epoch_milliseconds(now);
    digest.content.expires = epoch_milliseconds(now) / 1000 + rules.time_to_live(category).count();
    digest.content.message =
        item::encode(digest_message(std::move(items), {}, title, category, std::move(alone)));
    digest.content.opt_in = !rules.wants(category, Channel::bell);
    TABELLA_CO_ASSIGN(const bool published, co_await publish_(std::move(digest), std::move(along)));
    if (published) co_return store::Result<void>();
  }
  co_return store::fail(store::ErrorCode::unavailable, "a digest cannot be published");
}

std::vector<ChannelPlan> channel_plans(const Settings::Rules& rules, std::string_view category,
                                       const std::vector<Channel>& asked) {
  std::vector<ChannelPlan> plans;
  const auto add = [&](Channel channel, std::chrono::seconds after) {
    const bool named = std::ranges::find(asked, channel) != asked.end();
    plans.push_back({.channel = channel, .after = after, .wanted = named || rules.wants(category, channel)});
  };
  if (rules.inbox.email) add(Channel::email, rules.inbox.email->after);
  if (rules.inbox.webhook) add(Channel::webhook, rules.inbox.webhook->after);
  return plans;
}

}  // namespace tabella::inbox

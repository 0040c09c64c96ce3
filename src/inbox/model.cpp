#include "inbox/model.h"

#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace tabella::inbox {

using store::Row;
using store::Update;

namespace {

// Of messages.
constexpr const char* kKind = "kind";
constexpr const char* kAudiences = "audiences";
constexpr const char* kTaxonomy = "taxonomy";
constexpr const char* kCategory = "category";
constexpr const char* kMessage = "message";
constexpr const char* kReadAt = "readat";
constexpr const char* kTenantKey = "tenant_key";
constexpr const char* kInboxKey = "inbox_key";
constexpr const char* kUid = "uid";
// Ours, which the source document does not have.
constexpr const char* kArrived = "arrived";
constexpr const char* kUnreadAt = "unreadat";
constexpr const char* kArchivedAt = "archivedat";
constexpr const char* kSnoozedUntil = "snoozeduntil";
constexpr const char* kRedacted = "redacted";
constexpr const char* kReceipt = "receipt";
constexpr const char* kGroup = "group";
constexpr const char* kRemoveAt = "removeat";
constexpr const char* kOptIn = "optin";
// Of counters.
constexpr const char* kReadMark = "readmark";
constexpr const char* kReadBroadcasts = "readbroadcasts";
constexpr const char* kSeenMark = "seenmark";
constexpr const char* kSeenBroadcasts = "seenbroadcasts";
constexpr const char* kReadIn = "readin";
constexpr const char* kBase = "base";
constexpr const char* kRedactions = "redactions";
constexpr const char* kChecked = "checked";
constexpr const char* kWishes = "preferences";
constexpr const char* kBellOn = "bellon";
constexpr const char* kBellOff = "belloff";
constexpr const char* kBellSteps = "bellsteps";

// The item and its `message` are two of the levels that there may be.
constexpr int kDeepest = item::kMaxNesting - 2;

constexpr const char* kKindOfMessage = "UM";
constexpr const char* kKindOfStats = "US";

store::IndexDefinition local_index(const char* name, const char* sort) {
  return {.name = name,
          .key_schema = {{kPartition, store::KeyRole::hash}, {sort, store::KeyRole::range}},
          .projection = store::ProjectionType::keys_only};
}

int64_t removal_of(int64_t expires) { return expires + kGrace.count(); }

void append_text_member(item::ContainerEncoder& map, std::string& out, const char* name,
                        std::string_view text) {
  map.start_member(name);
  item::append_scalar(out, item::Type::S, text);
}

void append_number_member(item::ContainerEncoder& map, std::string& out, const char* name, int64_t number) {
  map.start_member(name);
  item::append_scalar(out, item::Type::N, item::encode_int(number));
}

// As the source has it: its outer object is called what its inner one is.
void append_audiences(std::string& out, const Content& content, int64_t delivered) {
  item::ContainerEncoder outer(out, item::Type::M);
  append_text_member(outer, out, "id", content.id);
  if (!content.host_system_id.empty())
    append_text_member(outer, out, "host_system_id", content.host_system_id);
  append_text_member(outer, out, "sender", content.sender);
  outer.start_member(kAudiences);
  {
    item::ContainerEncoder inner(out, item::Type::M);
    append_text_member(inner, out, "kind", content.everyone ? "everyone" : "users");
    if (!content.label.empty()) append_text_member(inner, out, "label", content.label);
    inner.finish();
  }
  append_number_member(outer, out, "received", content.received);
  append_number_member(outer, out, "delivered", delivered);
  outer.finish();
}

void append_taxonomy(std::string& out, std::string_view category) {
  item::ContainerEncoder map(out, item::Type::M);
  append_text_member(map, out, kCategory, category);
  map.finish();
}

template <class RowOrUpdate>
void set_names(RowOrUpdate& to, const char* kind, const Box& box) {
  to.set(kKind, kind).set(kTenantKey, box.place.tenant).set(kInboxKey, box.place.inbox).set(kUid, box.user);
}

item::Value taxonomy_value(const std::string& category) {
  auto map = item::Value::map();
  map.set_member(kCategory, item::Value::string(category));
  return map;
}

item::Value tally_value(const Tally& tally) {
  auto map = item::Value::map();
  for (const auto& counter : kCounters)
    if (tally.*counter.field != 0) map.set_member(counter.name, item::Value::integer(tally.*counter.field));
  return map;
}

Tally read_tally(item::ItemView row) {
  Tally tally;
  for (const auto& counter : kCounters) tally.*counter.field = store::number_of(row, counter.name);
  return tally;
}

// Calls `take(name, value)` for each member of a map.
template <class Take>
void for_each_member(item::ItemView row, const char* attribute, Take take) {
  const auto map = row.find(attribute);
  if (!map || map->type() != item::Type::M) return;
  for (item::Elements members(*map); members.next();) take(std::string(members.name()), members.value());
}

// Sets or removes an attribute, where it has changed.
void set_optional(Update& update, const char* name, const std::optional<int64_t>& before,
                  const std::optional<int64_t>& after) {
  if (before == after) return;
  if (after)
    update.set(name, *after);
  else
    update.remove(name);
}

}  // namespace

store::TablePlan plan_inbox_table(const std::string& name) {
  auto plan = store::plan_table(name, {{kPartition, item::Type::S}, {kSort, item::Type::S}}, kRemoveAt);
  plan.definition.attributes.push_back({kExpires, item::Type::N});
  plan.definition.attributes.push_back({kSequence, item::Type::N});
  plan.definition.local_indexes = {local_index(kExpiryIndex, kExpires),
                                   local_index(kChangesIndex, kSequence)};
  return plan;
}

Checked<void> append_value(std::string& out, JsonValue json, size_t most, int depth) {
  if (depth > kDeepest) return invalid("its lists and objects stand too deep in each other");
  if (out.size() > most) return invalid(fmt::format("it is longer than {} bytes", most));
  switch (json.kind()) {
    case JsonValue::Kind::null: item::append_null(out); return {};
    case JsonValue::Kind::boolean: item::append_boolean(out, json.boolean()); return {};
    case JsonValue::Kind::string: item::append_scalar(out, item::Type::S, json.string()); return {};
    case JsonValue::Kind::integer:
    case JsonValue::Kind::real: {
      TABELLA_ASSIGN(const auto number, item::parse_number(json.number_text()));
      item::append_scalar(out, item::Type::N, number);
      return {};
    }
    case JsonValue::Kind::array: {
      item::ContainerEncoder list(out, item::Type::L);
      for (JsonElements elements(json); elements.next();) {
        list.start_element();
        TABELLA_TRY(append_value(out, elements.value(), most, depth + 1));
      }
      list.finish();
      return {};
    }
    case JsonValue::Kind::object: {
      item::ContainerEncoder map(out, item::Type::M);
      std::set<std::string_view> names;
      for (JsonElements elements(json); elements.next();) {
        // Programs differ in which of two they take.
        if (!names.insert(elements.key()).second)
          return invalid(fmt::format("it has {} twice", printable(elements.key())));
        map.start_member(elements.key());
        TABELLA_TRY(append_value(out, elements.value(), most, depth + 1));
      }
      map.finish();
      return {};
    }
  }
  return {};
}

void append_plain_json(std::string& out, item::ValueView value) {
  switch (value.type()) {
    case item::Type::S: return append_json_string(out, value.content());
    case item::Type::N: return item::append_number_text(out, value.content());
    case item::Type::BOOL: out.append(value.boolean() ? "true" : "false"); return;
    case item::Type::L: {
      JsonArrayWriter array(out);
      for (item::Elements elements(value); elements.next();)
        append_plain_json(array.element(), elements.value());
      return;
    }
    case item::Type::M: {
      JsonObjectWriter object(out);
      for (item::Elements elements(value); elements.next();)
        append_plain_json(object.key(elements.name()), elements.value());
      return;
    }
    default: out.append("null"); return;  // nothing that was JSON
  }
}

Row message_row(const Box& box, const Content& content, int64_t sequence, int64_t delivered) {
  Row row;
  row.set(kPartition, box.partition()).set(kSort, kMessagePrefix + content.id);
  set_names(row, kKindOfMessage, box);
  row.set_with(kAudiences, [&](std::string& out) { append_audiences(out, content, delivered); });
  if (!content.category.empty())
    row.set_with(kTaxonomy, [&](std::string& out) { append_taxonomy(out, content.category); });
  row.set_with(kMessage, [&](std::string& out) { out.append(content.message); });
  if (!content.group.empty()) row.set(kGroup, content.group);
  if (content.opt_in) row.set(kOptIn, true);
  row.set(kExpires, content.expires).set(kRemoveAt, removal_of(content.expires));
  row.set(kArrived, sequence).set(kSequence, sequence);
  return row;
}

// In one pass: looking up attributes by name walks over all those before them, each time.
StoredMessage read_message(store::Item row) {
  StoredMessage message;
  auto& state = message.state;
  const auto number = [](item::ValueView value) {
    return value.type() == item::Type::N ? item::number_to_int(value.content()).value_or(0) : 0;
  };
  const auto flag = [](item::ValueView value) { return value.type() == item::Type::BOOL && value.boolean(); };
  for (item::Attributes each(row); each.next();) {
    const auto name = each.name();
    const auto value = each.value();
    if (name == kSort)
      message.id = value.content().substr(std::string_view(kMessagePrefix).size());
    else if (name == kSequence)
      message.sequence = number(value);
    else if (name == kExpires)
      message.expires = number(value);
    else if (name == kOptIn)
      message.opt_in = flag(value);
    else if (name == kReceipt)
      state.receipt = flag(value);
    else if (name == kArrived)
      state.arrived = number(value);
    else if (name == kUnreadAt)
      state.unread_at = number(value);
    else if (name == kReadAt)
      state.read_at = number(value);
    else if (name == kArchivedAt)
      state.archived_at = number(value);
    else if (name == kSnoozedUntil)
      state.snoozed_until = number(value);
    else if (name == kRedacted)
      state.redacted = flag(value);
    else if (name == kTaxonomy)
      state.category = store::text_of(value, kCategory);
  }
  message.row = std::move(row);
  return message;
}

void write_content(JsonObjectWriter& out, const StoredMessage& message) {
  const auto audiences = message.row.find(kAudiences);
  const auto write_text = [&](const char* name, std::optional<item::ValueView> value) {
    if (value && value->type() == item::Type::S && !value->content().empty())
      out.string(name, value->content());
  };
  if (audiences && audiences->type() == item::Type::M) {
    write_text("sender", audiences->member("sender"));
    write_text("host_system_id", audiences->member("host_system_id"));
    const auto inner = audiences->member(kAudiences);
    out.boolean("public", inner && inner->type() == item::Type::M && inner->member("kind") &&
                              inner->member("kind")->content() == "everyone");
    if (inner && inner->type() == item::Type::M) write_text("label", inner->member("label"));
    out.number("delivered", store::number_of(*audiences, "delivered"));
  }
  if (const auto said = message.row.find(kMessage)) append_plain_json(out.key("message"), *said);
}

Update state_update(const std::string& table, const Box& box, const StoredMessage& message,
                    const std::optional<State>& before, int64_t sequence) {
  Update update(table, message_key(box, message.id));
  const auto& state = message.state;
  const State old = before.value_or(State{});
  update.set(kSequence, sequence);
  set_optional(update, kReadAt, old.read_at, state.read_at);
  set_optional(update, kArchivedAt, old.archived_at, state.archived_at);
  set_optional(update, kSnoozedUntil, old.snoozed_until, state.snoozed_until);
  if (state.unread_at != old.unread_at) update.set(kUnreadAt, state.unread_at);
  if (state.redacted != old.redacted) update.set(kRedacted, state.redacted);
  if (before) return update;
  set_names(update, kKindOfMessage, box);
  if (!state.category.empty()) update.set(kTaxonomy, taxonomy_value(state.category));
  update.set(kReceipt, true).set(kArrived, state.arrived);
  update.set(kExpires, message.expires).set(kRemoveAt, removal_of(message.expires));
  return update;
}

item::ValueView content_of(const StoredMessage& message) {
  return message.row.find(kMessage).value_or(item::ValueView());
}

Update content_update(const std::string& table, const Box& box, const StoredMessage& message,
                      const item::Value& content, int64_t sequence) {
  Update update(table, message_key(box, message.id));
  update.set(kMessage, content).set(kSequence, sequence).when(store::exists(kPartition));
  return update;
}

store::Put tombstone(const std::string& table, const Box& box, const StoredMessage& message, int64_t sequence,
                     TimePoint now) {
  Row row;
  row.set(kPartition, box.partition()).set(kSort, kMessagePrefix + message.id);
  set_names(row, kKindOfMessage, box);
  row.set(kRedacted, true).set(kArrived, message.state.arrived).set(kSequence, sequence);
  // Until who was away has heard of it; a broadcast's for as long as there may be receipts of it.
  row.set(kRemoveAt, removal_of(std::max(message.expires, epoch_milliseconds(now) / 1000)));
  if (!message.state.category.empty()) row.set(kTaxonomy, taxonomy_value(message.state.category));
  return {table, row};
}

Tally Stats::reported(std::string_view category) const {
  Tally tally;
  if (const auto found = counters.find(category); found != counters.end()) tally = found->second;
  if (const auto found = base.find(category); found != base.end()) tally -= found->second;
  return tally;
}

void read_stats_row(Stats& stats, item::ItemView row) {
  const auto category = store::text_of(row, kSort).substr(std::string_view(kStatsPrefix).size());
  stats.counters[category] = read_tally(row);
  if (category != kAll) return;
  stats.joined = true;
  stats.sequence = store::number_of(row, kLastSequence);
  stats.redactions = store::number_of(row, kRedactions);
  stats.checked = store::number_of(row, kChecked);
  stats.marks.read = {store::number_of(row, kReadMark), store::number_of(row, kReadBroadcasts)};
  stats.marks.seen = {store::number_of(row, kSeenMark), store::number_of(row, kSeenBroadcasts)};
  for_each_member(row, kReadIn, [&](std::string name, item::ValueView mark) {
    stats.marks.read_in[std::move(name)] = {store::number_of(mark, "own"),
                                            store::number_of(mark, "broadcast")};
  });
  stats.wishes = read_wishes(row, kWishes);
  for_each_member(row, kBellSteps, [&](std::string name, item::ValueView list) {
    auto& steps = stats.bell.steps[std::move(name)];
    for (item::Elements each(list); each.next();) {
      const auto on = each.value().member("on");
      steps.push_back({.after = store::number_of(each.value(), "after"),
                       .on = on ? std::optional(on->boolean()) : std::nullopt});
    }
  });
  for_each_member(row, kBase, [&](std::string name, item::ValueView tally) {
    auto& base = stats.base[std::move(name)];
    for (const auto& counter : kCounters) base.*counter.field = store::number_of(tally, counter.name);
  });
}

Stats read_stats(const std::vector<store::Item>& rows) {
  Stats stats;
  for (const auto& row : rows) read_stats_row(stats, row);
  return stats;
}

Update stats_update(const std::string& table, const Box& box, const Stats& stats, int64_t sequence,
                    TimePoint now) {
  Update update(table, stats_key(box, kAll));
  update.set(kLastSequence, sequence);
  if (stats.joined) {
    update.when(store::equals(kLastSequence, stats.sequence));
    return update;
  }
  set_names(update, kKindOfStats, box);
  update.set(kChecked, epoch_milliseconds(now)).when(store::absent(kPartition));
  return update;
}

Update arrival_update(const std::string& table, const Box& box, const Tally& tally, int64_t sequence,
                      TimePoint now) {
  Update update(table, stats_key(box, kAll));
  set_names(update, kKindOfStats, box);
  update.set(kLastSequence, sequence)
      .when(store::absent(kLastSequence) || store::less(kLastSequence, sequence));
  update.set_if_absent(kChecked, epoch_milliseconds(now))
      .set_if_absent(kReadBroadcasts, sequence)
      .set_if_absent(kSeenBroadcasts, sequence)
      .return_old_on_failure();
  add_tally(update, tally);
  return update;
}

store::Condition bell_is_on(const Content& content) {
  auto by_all = content.opt_in ? store::Condition("contains(#, :)", {kBellOn}, {kAll})
                               : store::Condition("NOT contains(#, :)", {kBellOff}, {kAll});
  if (content.category.empty()) return by_all;
  return store::Condition("contains(#, :)", {kBellOn}, {content.category}) ||
         (store::Condition("NOT contains(#, :)", {kBellOff}, {content.category}) && std::move(by_all));
}

bool bell_is_off(item::ItemView row, const Content& content) {
  return !wish_of(read_wishes(row, kWishes), content.category, Channel::bell).value_or(!content.opt_in);
}

item::Value wishes_value(const Wishes& wishes) {
  auto map = item::Value::map();
  for (const auto& [category, channels] : wishes) {
    auto one = item::Value::map();
    for (const auto& [channel, on] : channels)
      one.set_member(std::string(name_of(channel)), item::Value::boolean(on));
    map.set_member(category, std::move(one));
  }
  return map;
}

Wishes read_wishes(item::ItemView row, const char* attribute) {
  Wishes wishes;
  for_each_member(row, attribute, [&](std::string category, item::ValueView channels) {
    if (channels.type() != item::Type::M) return;
    for (item::Elements each(channels); each.next();)
      if (const auto channel = channel_named(each.name()); channel && each.value().type() == item::Type::BOOL)
        wishes[category][*channel] = each.value().boolean();
  });
  return wishes;
}

void set_wishes(Update& update, const Wishes& wishes, const BellHistory& bell) {
  update.set(kWishes, wishes_value(wishes));
  // The same again as sets, for conditions.
  std::vector<std::string> on;
  std::vector<std::string> off;
  for (const auto& [category, channels] : wishes)
    if (const auto wish = channels.find(Channel::bell); wish != channels.end())
      (wish->second ? on : off).push_back(category);
  for (const auto& [name, set] : {std::pair{kBellOn, &on}, std::pair{kBellOff, &off}}) {
    if (set->empty())
      update.remove(name);
    else
      update.set(name, *set);
  }
  auto steps = item::Value::map();
  for (const auto& [category, all] : bell.steps) {
    std::vector<item::Value> list;
    for (const auto& step : all) {
      auto one = item::Value::map();
      one.set_member("after", item::Value::integer(step.after));
      if (step.on) one.set_member("on", item::Value::boolean(*step.on));
      list.push_back(std::move(one));
    }
    steps.set_member(category, item::Value::list(std::move(list)));
  }
  update.set(kBellSteps, steps);
}

int64_t sequence_of(item::ItemView row) { return store::number_of(row, kLastSequence); }
void set_redactions(Update& update, int64_t sequence) { update.set(kRedactions, sequence); }
void set_checked(Update& update, TimePoint now) { update.set(kChecked, epoch_milliseconds(now)); }

void set_marks(Update& update, const Marks& marks, const Tallies& base) {
  update.set(kReadMark, marks.read.own).set(kReadBroadcasts, marks.read.broadcast);
  update.set(kSeenMark, marks.seen.own).set(kSeenBroadcasts, marks.seen.broadcast);
  auto read_in = item::Value::map();
  for (const auto& [category, mark] : marks.read_in) {
    auto one = item::Value::map();
    one.set_member("own", item::Value::integer(mark.own));
    one.set_member("broadcast", item::Value::integer(mark.broadcast));
    read_in.set_member(category, std::move(one));
  }
  update.set(kReadIn, read_in);
  auto all = item::Value::map();
  for (const auto& [category, tally] : base)
    if (tally != Tally{}) all.set_member(category, tally_value(tally));
  update.set(kBase, all);
}

void add_tally(Update& update, const Tally& tally) {
  for (const auto& counter : kCounters)
    if (tally.*counter.field != 0) update.add(counter.name, tally.*counter.field);
}

Update category_update(const std::string& table, const Box& box, std::string_view category,
                       const Tally& tally) {
  Update update(table, stats_key(box, category));
  set_names(update, kKindOfStats, box);
  add_tally(update, tally);
  return update;
}

}  // namespace tabella::inbox

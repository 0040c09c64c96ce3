#include "inbox/post_row.h"

#include <fmt/format.h>

namespace tabella::inbox {
namespace {

constexpr const char* kCount = "count";
constexpr const char* kParts = "parts";
constexpr const char* kKey = "key";
constexpr const char* kDeliverAt = "deliverat";
constexpr const char* kGatheredUntil = "gathereduntil";
constexpr const char* kPlans = "channels";

constexpr std::pair<PostState, std::string_view> kStates[] = {{PostState::scheduled, "scheduled"},
                                                              {PostState::sending, "sending"},
                                                              {PostState::done, "done"},
                                                              {PostState::canceled, "canceled"},
                                                              {PostState::redacted, "redacted"}};

PostState post_state(std::string_view name) {
  for (const auto& [state, its_name] : kStates)
    if (its_name == name) return state;
  return PostState::done;
}

std::string part_sort(int64_t part) { return fmt::format("to#{:06}", part); }

item::Value list_value(std::span<const std::string> texts) {
  std::vector<item::Value> values;
  for (const auto& text : texts) values.push_back(item::Value::string(text));
  return item::Value::list(std::move(values));
}

item::Value plans_value(const std::vector<ChannelPlan>& plans) {
  auto map = item::Value::map();
  for (const auto& plan : plans) {
    auto one = item::Value::map();
    one.set_member("after", item::Value::integer(plan.after.count()));
    one.set_member("wanted", item::Value::boolean(plan.wanted));
    map.set_member(std::string(name_of(plan.channel)), std::move(one));
  }
  return map;
}

std::vector<ChannelPlan> read_plans(item::ItemView row) {
  std::vector<ChannelPlan> plans;
  const auto map = row.find(kPlans);
  if (!map || map->type() != item::Type::M) return plans;
  for (item::Elements each(*map); each.next();) {
    const auto channel = channel_named(each.name());
    const auto after = each.value().member("after");
    const auto wanted = each.value().member("wanted");
    if (channel && after && wanted)
      plans.push_back({.channel = *channel,
                       .after = std::chrono::seconds(item::number_to_int(after->content()).value_or(0)),
                       .wanted = wanted->boolean()});
  }
  return plans;
}

}  // namespace

std::string_view name_of(PostState state) {
  for (const auto& [its_state, name] : kStates)
    if (its_state == state) return name;
  return "done";
}

std::string post_partition(const Place& place, std::string_view id) {
  return fmt::format("t#{}P#{}#{}", place.tenant, place.inbox, id);
}

store::Item post_key(const Place& place, std::string_view id) {
  return store::Row().set(kPartition, post_partition(place, id)).set(kSort, kPostSort);
}

store::Row to_row(const Place& place, const PostRow& whole) {
  const auto& [post, content, users, parts, fingerprint, channels] = whole;
  store::Row row;
  row.set(kPartition, post_partition(place, post.id));
  row.set(kSort, kPostSort).set(kPostId, post.id).set(kPostState, name_of(post.state));
  row.set("everyone", post.everyone).set(kCount, post.count).set(kPostDone, post.done);
  row.set("category", content.category).set("sender", content.sender).set("label", content.label);
  row.set("host_system_id", content.host_system_id).set("group", content.group);
  row.set("received", content.received).set("expires", content.expires).set("optin", content.opt_in);
  if (content.gathered_until != 0) row.set(kGatheredUntil, content.gathered_until);
  if (!post.key.empty()) row.set(kKey, post.key).set(kPostFingerprint, fingerprint);
  if (post.deliver_at) row.set(kDeliverAt, epoch_milliseconds(*post.deliver_at));
  if (!channels.empty()) row.set(kPlans, plans_value(channels));
  // Of what is delivered at once, and goes nowhere else, the messages have it.
  if (post.state != PostState::done || !channels.empty())
    row.set_with(kPostMessage, [&](std::string& out) { out.append(content.message); });
  if (parts == 0)
    row.set(kPostUsers, list_value(users));
  else
    row.set(kParts, parts);
  row.set(kRemovePost, content.expires + kGrace.count());
  return row;
}

PostRow read_post(const std::string& id, item::ItemView row) {
  PostRow read;
  read.post = {.id = id,
               .state = post_state(store::text_of(row, kPostState)),
               .everyone = store::flag_of(row, "everyone"),
               .count = store::number_of(row, kCount),
               .done = store::number_of(row, kPostDone),
               .key = store::text_of(row, kKey)};
  if (row.find(kDeliverAt)) read.post.deliver_at = time_at(store::number_of(row, kDeliverAt));
  read.content = {.id = id,
                  .category = store::text_of(row, "category"),
                  .everyone = read.post.everyone,
                  .sender = store::text_of(row, "sender"),
                  .label = store::text_of(row, "label"),
                  .host_system_id = store::text_of(row, "host_system_id"),
                  .received = store::number_of(row, "received"),
                  .expires = store::number_of(row, "expires"),
                  .group = store::text_of(row, "group"),
                  .opt_in = store::flag_of(row, "optin"),
                  .gathered_until = store::number_of(row, kGatheredUntil)};
  if (const auto message = row.find(kPostMessage)) read.content.message = std::string(message->bytes());
  read.users = users_of_row(row);
  read.parts = store::number_of(row, kParts);
  read.fingerprint = store::text_of(row, kPostFingerprint);
  read.channels = read_plans(row);
  return read;
}

store::Item part_key(const Place& place, std::string_view id, int64_t part) {
  return store::Row().set(kPartition, post_partition(place, id)).set(kSort, part_sort(part));
}

store::Item part_row(const Place& place, std::string_view id, int64_t part,
                     std::span<const std::string> users, int64_t remove) {
  return store::Row()
      .set(kPartition, post_partition(place, id))
      .set(kSort, part_sort(part))
      .set(kPostUsers, list_value(users))
      .set(kRemovePost, remove);
}

std::vector<std::string> users_of_row(item::ItemView row) {
  std::vector<std::string> users;
  if (const auto list = row.find(kPostUsers); list && list->type() == item::Type::L)
    for (item::Elements each(*list); each.next();) users.emplace_back(each.value().content());
  return users;
}

}  // namespace tabella::inbox

// What users want to be told by which channel, and what is known of them.
#include <set>

#include <fmt/format.h>

#include "inbox/api.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

constexpr size_t kMostCategories = 200;
constexpr size_t kMostAddress = 320;
constexpr const char* kWishesExample = R"({"orders": {"bell": true, "email": false}, "*": {"email": null}})";
constexpr const char* kProfileExample = R"({"email": "ann@example.com", "name": "Ann"})";

void write_wishes(std::string& out, const Wishes& wishes) {
  JsonObjectWriter object(out);
  for (const auto& [category, channels] : wishes) {
    JsonObjectWriter one(object.key(category));
    for (const auto& [channel, on] : channels) one.boolean(name_of(channel), on);
  }
}

}  // namespace

std::optional<WishChanges> read_wish_changes(net::Call& call, JsonValue object, std::string_view what) {
  const auto refuse = [&](std::string_view why) {
    call.refuse(400, fmt::format("{}{}expected {}: {}", what, what.empty() ? "" : ": ", kWishesExample, why));
    return std::nullopt;
  };
  if (!object.is_object()) return refuse("this is no object");
  WishChanges changes;
  for (JsonElements category(object); category.next();) {
    if (category.key() != kAll)
      if (const auto problem = problem_with_category(category.key()); !problem.empty())
        return refuse(problem);
    if (!category.value().is_object()) return refuse("a category has an object of channels");
    auto& channels = changes[std::string(category.key())];
    for (JsonElements channel(category.value()); channel.next();) {
      const auto known = channel_named(channel.key());
      if (!known) return refuse("a channel is bell, email or webhook");
      const auto kind = channel.value().kind();
      if (kind != JsonValue::Kind::boolean && kind != JsonValue::Kind::null)
        return refuse("a channel is true, false, or null for as usual");
      channels[*known] =
          kind == JsonValue::Kind::null ? std::nullopt : std::optional(channel.value().boolean());
    }
  }
  if (changes.size() > kMostCategories) return refuse(fmt::format("at most {} categories", kMostCategories));
  return changes;
}

std::optional<Wishes> read_wishes_member(net::Call& call, net::JsonBody& body, std::string_view name) {
  Wishes wishes;
  const auto member = body.any(name);
  if (!member) return wishes;
  const auto changes = read_wish_changes(call, *member, name);
  if (!changes) return {};
  apply_changes(*changes, wishes);
  return wishes;
}

void write_wishes_member(JsonObjectWriter& out, std::string_view name, const Wishes& wishes) {
  write_wishes(out.key(name), wishes);
}

void Api::add_preference_routes(Routes& routes) {
  auto show = user_route("GET", "/inbox/{tenant}/{inbox}/preferences",
                         "Shows what a user wants by which channel, and what holds for each category");
  show.query = {{"user", "whose, where the caller may read everybody's"}};
  routes.add(std::move(show), &Api::show_preferences);
  auto set = user_route("PUT", "/inbox/{tenant}/{inbox}/preferences",
                        "Sets what a user wants; null is as usual, and what is not said stays");
  set.query = {{"user", "whose, where the caller may change everybody's"}};
  set.body = kWishesExample;
  routes.add(std::move(set), &Api::set_preferences);
  routes.add(tenant_route("GET", "/inbox/{tenant}/users/{user}", "Shows what is known of a user"),
             &Api::show_profile);
  auto put = tenant_route("PUT", "/inbox/{tenant}/users/{user}", "Sets a user's address for emails");
  put.body = kProfileExample;
  routes.add(std::move(put), &Api::set_profile);
  routes.add(tenant_route("DELETE", "/inbox/{tenant}/users/{user}", "Forgets a user's address"),
             &Api::remove_profile);
}

awaitable<void> Api::answer_preferences(Call& call, const Box& box, const Wishes& wishes) {
  const auto rules = co_await parts_.settings.rules(box.place);
  if (!rules) co_return house::refuse(call, rules.error());
  std::set<std::string, std::less<>> categories{kAll};
  for (const auto* each : {&wishes, &rules->inbox.wishes, &rules->tenant.wishes})
    for (const auto& [category, channels] : *each) categories.insert(category);
  JsonObjectWriter object(call.answer_json());
  write_wishes(object.key("preferences"), wishes);
  JsonObjectWriter effective(object.key("effective"));
  for (const auto& category : categories) {
    JsonObjectWriter one(effective.key(category));
    for (const auto& [channel, name] : kChannels)
      one.boolean(name, wish_of(wishes, category, channel).value_or(rules->wants(category, channel)));
  }
}

awaitable<void> Api::show_preferences(Call& call) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  const auto wishes = co_await parts_.boxes.wishes(*box);
  if (!wishes) co_return house::refuse(call, wishes.error());
  co_await answer_preferences(call, *box, *wishes);
}

awaitable<void> Api::set_preferences(Call& call) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  JsonDocument document;
  const auto body = document.parse(call.request.body);
  if (!body) co_return call.refuse(400, fmt::format("expected {}", kWishesExample));
  auto changes = read_wish_changes(call, *body, "");
  if (!changes) co_return;
  const auto now = co_await parts_.boxes.wishes(*box);
  if (!now) co_return house::refuse(call, now.error());
  auto after = *now;
  apply_changes(*changes, after);
  if (after.size() > kMostCategories)
    co_return call.refuse(400, fmt::format("at most {} categories", kMostCategories));
  const auto wishes = co_await parts_.boxes.set_wishes(*box, std::move(*changes));
  if (!wishes) co_return house::refuse(call, wishes.error());
  parts_.news.tell(box->partition());
  co_await answer_preferences(call, *box, *wishes);
}

// --- users

awaitable<std::optional<std::string>> Api::user_of(Call& call) {
  const auto tenant = tenant_of(call);
  if (!tenant || !co_await admit_admin(call, *tenant)) co_return std::nullopt;
  const auto& user = call.path("user");
  if (const auto problem = problem_with_name("user", user); !problem.empty()) {
    call.refuse(400, problem);
    co_return std::nullopt;
  }
  co_return user;
}

awaitable<void> Api::show_profile(Call& call) {
  const auto user = co_await user_of(call);
  if (!user) co_return;
  const auto profile = co_await parts_.settings.profile(call.path("tenant"), *user);
  if (!profile) co_return house::refuse(call, profile.error());
  if (!*profile) co_return call.refuse(404, "nothing is known of this user");
  JsonObjectWriter object(call.answer_json());
  object.string("user", *user);
  object.string("email", (*profile)->email);
  object.string("name", (*profile)->name);
}

awaitable<void> Api::set_profile(Call& call) {
  const auto user = co_await user_of(call);
  if (!user) co_return;
  auto body = call.json(kProfileExample);
  if (!body) co_return;
  Profile profile{.email = body->text("email", ""), .name = body->text("name", "")};
  body->no_others();
  const auto& email = profile.email;
  const auto at = email.find('@');
  const bool is_address = at != std::string::npos && at > 0 && at + 1 < email.size() &&
                          email.find_first_of(" \t\r\n<>,;\"") == std::string::npos;
  if (email.size() > kMostAddress || profile.name.size() > kMostAddress || (!email.empty() && !is_address))
    call.refuse(400, "email: expected an address as in ann@example.com");
  if (call.answered()) co_return;
  const auto put = co_await parts_.settings.put(call.path("tenant"), *user, profile);
  if (!put) co_return house::refuse(call, put.error());
  co_await show_profile(call);
}

awaitable<void> Api::remove_profile(Call& call) {
  const auto user = co_await user_of(call);
  if (!user) co_return;
  const auto removed = co_await parts_.settings.remove_profile(call.path("tenant"), *user);
  if (!removed) co_return house::refuse(call, removed.error());
  call.answer_json() = "{}";
}

}  // namespace tabella::inbox

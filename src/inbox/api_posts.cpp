// Publishing, and taking back.
#include <algorithm>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/duration.h"
#include "base/text.h"
#include "base/time_text.h"
#include "inbox/api.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

constexpr size_t kMostPost = 16u << 20;  // with a hundred thousand users
constexpr size_t kMostMessage = 100 * 1024;
constexpr size_t kMostText = 1024;
constexpr size_t kMostInline = 10;       // posts that are redacted before the answer
constexpr size_t kMostRedactions = 500;  // from single users, in one request
constexpr std::chrono::milliseconds kLatest = std::chrono::days{365};
constexpr const char* kPostExample =
    R"({"to": "ann" | ["ann", "bob"] | "everyone", "category": "orders", "message": {"title": "Shipped", "body": "…", "cta_uri": "/orders/1"}, "sender": "shop", "key": "order-1-shipped", "group": "order-1", "deliver_at": "2026-12-01T09:00:00Z", "ttl": "7d", "channels": ["email"]})";
constexpr const char* kRedactExample =
    R"({"ids": ["…"], "key": "…", "group": "…", "uids": ["ann"], "next": "…"})";
constexpr const char* kCancelExample = R"({"ids": ["…"], "key": "…", "group": "…"})";

// A link that a page would run, rather than open.
bool is_dangerous_link(std::string_view uri) {
  std::string scheme;
  for (const char c : uri) {
    if (c == ':') break;
    if (c > ' ' && c != 0x7f) scheme.push_back(lower(c));  // as browsers read it
  }
  return scheme == "javascript" || scheme == "data" || scheme == "vbscript";
}

std::string short_text(net::Call& call, net::JsonBody& body, std::string_view name) {
  auto text = body.text(name, "");
  if (text.size() > kMostText) call.refuse(400, fmt::format("{}: at most {} bytes", name, kMostText));
  return text;
}

void add_user(net::Call& call, std::vector<std::string>& users, JsonValue value) {
  if (value.kind() != JsonValue::Kind::string) return call.refuse(400, "to: expected users, as texts");
  if (const auto problem = problem_with_name("user", value.string()); !problem.empty())
    return call.refuse(400, problem);
  users.emplace_back(value.string());
}

void read_users(net::Call& call, JsonValue list, std::vector<std::string>& users) {
  for (JsonElements each(list); each.next() && !call.answered();) add_user(call, users, each.value());
  if (users.size() > Posts::kMostUsers)
    call.refuse(400, fmt::format("to: at most {} users at once; or everyone", Posts::kMostUsers));
}

bool has_only(JsonValue object, std::initializer_list<std::string_view> names) {
  for (JsonElements each(object); each.next();)
    if (std::ranges::find(names, each.key()) == names.end()) return false;
  return true;
}

// As the source has it: {"kind": "users", "uids": […], "label": "…"}; or in short, as "to".
void read_audience(net::Call& call, net::JsonBody& body, Publication& publication) {
  auto& content = publication.content;
  const auto to = body.any("to");
  const auto audiences = body.any("audiences");
  if (to.has_value() == audiences.has_value())
    return call.refuse(400, "to: expected a user, a list of users, or \"everyone\"");
  if (audiences) {
    if (!audiences->is_object()) return call.refuse(400, "audiences: expected an object");
    if (!has_only(*audiences, {"kind", "uids", "label"}))
      return call.refuse(400, "audiences: it has kind, uids and label, and no other members");
    content.everyone = audiences->text("kind") == "everyone";
    content.label = audiences->text("label");
    if (content.label.size() > kMostText)
      call.refuse(400, fmt::format("audiences: label: at most {} bytes", kMostText));
    const auto uids = audiences->find("uids");
    if (!content.everyone &&
        (audiences->text("kind") != "users" || !uids || uids->kind() != JsonValue::Kind::array))
      return call.refuse(400,
                         R"(audiences: expected {"kind": "everyone"} or {"kind": "users", "uids": […]})");
    if (!content.everyone) read_users(call, *uids, publication.users);
  } else if (to->kind() == JsonValue::Kind::array) {
    read_users(call, *to, publication.users);
  } else {
    content.everyone = to->kind() == JsonValue::Kind::string && to->string() == "everyone";
    if (!content.everyone) add_user(call, publication.users, *to);
  }
  if (!content.everyone && publication.users.empty()) call.refuse(400, "to: expected at least one user");
}

void read_message_of(net::Call& call, net::JsonBody& body, Content& content) {
  const auto message = body.any("message");
  if (!message || !message->is_object()) return call.refuse(400, "message: expected an object with a title");
  const auto title = message->find("title");
  if (!title || title->kind() != JsonValue::Kind::string || title->string().empty())
    return call.refuse(400, "message: title: expected a text");
  if (const auto uri = message->find("cta_uri")) {
    if (uri->kind() != JsonValue::Kind::string) return call.refuse(400, "message: cta_uri: expected a text");
    if (is_dangerous_link(uri->string()))
      return call.refuse(400, "message: cta_uri: this link would run a script in the page that shows it");
  }
  if (const auto made = append_value(content.message, *message, kMostMessage); !made)
    return call.refuse(400, "message: " + made.error().message);
  if (content.message.size() > kMostMessage)
    return call.refuse(413, fmt::format("message: at most {} bytes", kMostMessage));
}

std::optional<TimePoint> time_member(net::Call& call, net::JsonBody& body, std::string_view name,
                                     TimePoint now) {
  const auto text = body.text(name, "");
  if (text.empty()) return {};
  const auto time = parse_time(text);
  if (!time || *time > now + kLatest) {
    call.refuse(400, fmt::format("{}: expected a time as in 2026-12-01T09:00:00Z, within a year", name));
    return {};
  }
  return time;
}

// Where else it is to go, by name.
std::vector<Channel> read_channels(net::Call& call, net::JsonBody& body) {
  std::vector<Channel> channels;
  for (const auto& name : body.texts("channels")) {
    const auto channel = channel_named(name);
    if (!channel || *channel == Channel::bell)
      call.refuse(400, "channels: expected email or webhook");
    else
      channels.push_back(*channel);
  }
  return channels;
}

// What the settings of its inbox say of a message: how long it is kept, what it must be, where it goes.
void apply_rules(net::Call& call, const Settings::Rules& rules, const std::vector<Channel>& asked,
                 Publication& publication) {
  auto& content = publication.content;
  if (publication.time_to_live.count() == 0) publication.time_to_live = rules.time_to_live(content.category);
  content.opt_in = !rules.wants(content.category, Channel::bell);
  publication.channels = channel_plans(rules, content.category, asked);
  for (const auto channel : asked)
    if (std::ranges::find(publication.channels, channel, &ChannelPlan::channel) == publication.channels.end())
      call.refuse(400, fmt::format("channels: this inbox has no settings for {0}; PUT it with \"{0}\"",
                                   name_of(channel)));
  // To everybody there are no addresses.
  if (content.everyone) {
    if (std::ranges::find(asked, Channel::email) != asked.end())
      call.refuse(400, "channels: what is for everyone goes to the bell and to the webhook, not by email");
    std::erase_if(publication.channels, [](const auto& plan) { return plan.channel == Channel::email; });
  }
  const auto digest = rules.inbox.digests.find(content.category);
  const bool gathered = digest != rules.inbox.digests.end() && !content.everyone;
  if (gathered && !asked.empty())
    call.refuse(400,
                "channels: messages of this category come as digests; where those go the preferences say");
  if (gathered)
    publication.gathered_for = std::chrono::duration_cast<std::chrono::seconds>(
        parse_duration(digest->second.every).value_or(std::chrono::milliseconds(0)));
}

void read_taxonomy(net::Call& call, JsonValue taxonomy, Content& content) {
  const auto category = taxonomy.is_object() ? taxonomy.find("category") : std::nullopt;
  if (!category || category->kind() != JsonValue::Kind::string || !has_only(taxonomy, {"category"}))
    return call.refuse(400, R"(taxonomy: expected {"category": "orders"})");
  if (!content.category.empty() && content.category != category->string())
    return call.refuse(400, "taxonomy: another category than category");
  content.category = category->string();
}

std::optional<Publication> read_publication(net::Call& call, Place place, TimePoint now,
                                            const Settings::Rules& rules) {
  auto body = call.json(kPostExample);
  if (!body) return {};
  Publication publication{.place = std::move(place), .users = {}, .content = {}};
  auto& content = publication.content;
  read_audience(call, *body, publication);
  content.category = body->text("category", "");
  if (const auto taxonomy = body->any("taxonomy")) read_taxonomy(call, *taxonomy, content);
  if (!content.category.empty())
    if (const auto problem = problem_with_category(content.category); !problem.empty())
      call.refuse(400, problem);
  content.sender = short_text(call, *body, "sender");
  content.host_system_id = short_text(call, *body, "host_system_id");
  publication.key = short_text(call, *body, "key");
  content.group = short_text(call, *body, "group");
  publication.deliver_at = time_member(call, *body, "deliver_at", now);
  const auto ttl = body->text("ttl", "");
  if (!ttl.empty()) {
    if (const auto problem = problem_with_ttl(ttl); !problem.empty()) call.refuse(400, "ttl: " + problem);
    publication.time_to_live = std::chrono::duration_cast<std::chrono::seconds>(
        parse_duration(ttl).value_or(std::chrono::milliseconds(0)));
  }
  if (!call.answered()) read_message_of(call, *body, content);
  if (!call.answered() && rules.inbox.checked_schema)
    if (const auto mismatch = rules.inbox.checked_schema->mismatch(*body->any("message")); !mismatch.empty())
      call.refuse(400, "message: not as the schema of this inbox has it: " + mismatch);
  const auto asked = read_channels(call, *body);
  body->no_others();
  if (!call.answered()) apply_rules(call, rules, asked, publication);
  if (call.answered()) return {};
  if (!publication.key.empty()) publication.fingerprint = to_hex(sha256(call.request.body));
  return publication;
}

void write_post(std::string& out, const Post& post) {
  JsonObjectWriter object(out);
  object.string("id", post.id);
  object.string("state", name_of(post.state));
  object.string("audience", post.everyone ? "everyone" : "users");
  if (!post.everyone) {
    object.number("users", post.count);
    object.number("delivered", post.done);
  }
  if (!post.key.empty()) object.string("key", post.key);
  if (post.deliver_at) object.string("deliver_at", time_text(*post.deliver_at));
}

void write_ids(std::string& out, const std::vector<std::string>& ids) {
  JsonArrayWriter list(out);
  for (const auto& id : ids) append_json_string(list.element(), id);
}

std::optional<Selection> read_selection(net::Call& call, net::JsonBody& body) {
  Selection selection{.ids = body.texts("ids"), .key = body.text("key", ""), .group = body.text("group", "")};
  if (selection.ids.size() > 50) call.refuse(400, "ids: at most 50");
  if (std::ranges::any_of(selection.ids, [](const auto& id) { return !is_message_id(id); }))
    call.refuse(400, "ids: expected ids of messages");
  if (selection.ids.empty() && selection.key.empty() && selection.group.empty())
    call.refuse(400, "which messages? Send ids, a key or a group");
  if (call.answered()) return {};
  return selection;
}

}  // namespace

void Api::add_post_routes(Routes& routes) {
  auto publish =
      tenant_route("POST", "/inbox/{tenant}/{inbox}/messages/post",
                   "Publishes a message to users or to everyone; 201 once it is theirs, 202 if it goes on");
  publish.body = kPostExample;
  publish.max_body = kMostPost;
  routes.add(std::move(publish), &Api::post);
  routes.add(tenant_route("GET", "/inbox/{tenant}/{inbox}/posts/{id}", "Shows how far a post has come"),
             &Api::show_post);
  auto cancel =
      tenant_route("POST", "/inbox/{tenant}/{inbox}/messages/cancel", "Cancels posts that are scheduled");
  cancel.body = kCancelExample;
  routes.add(std::move(cancel), &Api::cancel_posts);
  auto redact_route = tenant_route("DELETE", "/inbox/{tenant}/{inbox}/messages/redact",
                                   "Takes messages away from some users, or from all who got them");
  redact_route.body = kRedactExample;
  routes.add(std::move(redact_route), &Api::redact);
}

awaitable<void> Api::post(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  const auto rules = co_await parts_.settings.rules(*place);
  if (!rules) co_return house::refuse(call, rules.error());
  auto publication = read_publication(call, *place, parts_.clock.now(), *rules);
  if (!publication) co_return;
  const auto published = co_await parts_.posts.publish(std::move(*publication));
  if (!published && published.error().code == store::ErrorCode::idempotent_parameter_mismatch)
    co_return call.refuse(409, published.error().message);
  if (!published) co_return house::refuse(call, published.error());
  const bool all_there = published->post.state == PostState::done;
  write_post(call.answer_json(published->repeated ? 200 : all_there ? 201 : 202), published->post);
}

awaitable<void> Api::show_post(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  const auto found = is_message_id(call.path("id")) ? co_await parts_.posts.find(*place, call.path("id"))
                                                    : store::Result<std::optional<Post>>(std::nullopt);
  if (!found) co_return house::refuse(call, found.error());
  if (!*found) co_return call.refuse(404, "there is no such post");
  write_post(call.answer_json(), **found);
}

awaitable<void> Api::cancel_posts(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  auto body = call.json(kCancelExample);
  if (!body) co_return;
  auto selection = read_selection(call, *body);
  body->no_others();
  if (call.answered()) co_return;
  const auto ids = co_await parts_.posts.select(*place, std::move(*selection));
  if (!ids) co_return house::refuse(call, ids.error());
  std::vector<Post> posts;
  for (const auto& id : *ids) {
    auto post = co_await parts_.posts.cancel(*place, id);
    if (!post) co_return house::refuse(call, post.error());
    if (*post) posts.push_back(std::move(**post));
  }
  if (posts.empty()) co_return call.refuse(404, "there is no such post");
  const bool all =
      std::ranges::all_of(posts, [](const Post& post) { return post.state == PostState::canceled; });
  JsonObjectWriter object(call.answer_json(all ? 200 : 409));
  if (!all) object.string("error", "some were delivered, or are just being: redact them");
  if (ids->size() >= kMostOfGroup) object.boolean("more", true);
  JsonArrayWriter list(object.key("posts"));
  for (const auto& post : posts) write_post(list.element(), post);
}

awaitable<void> Api::redact(Call& call) {
  const auto place = place_of(call);
  if (!place || !co_await admit_admin(call, place->tenant)) co_return;
  auto body = call.json(kRedactExample);
  if (!body) co_return;
  auto selection = read_selection(call, *body);
  auto users = body->texts("uids");
  const auto next = body->text("next", "");
  body->no_others();
  if (users.size() > 50) call.refuse(400, "uids: at most 50");
  if (!next.empty() && (users.empty() || !is_message_id(next)))
    call.refuse(400, "next: expected what the answer before had as next, with the same group and uids");
  for (const auto& user : users)
    if (const auto problem = problem_with_name("uids", user); !problem.empty()) call.refuse(400, problem);
  if (call.answered()) co_return;
  const bool of_group = !selection->group.empty();
  selection->before = next;
  if (!users.empty()) selection->most = kMostRedactions / users.size();
  const auto most = selection->most;
  const auto ids = co_await parts_.posts.select(*place, std::move(*selection));
  if (!ids) co_return house::refuse(call, ids.error());
  std::vector<std::string> redacted;
  std::vector<std::string> undelivered;
  for (const auto& id : *ids) {
    const auto there = co_await parts_.posts.redact(*place, id, users, ids->size() > kMostInline);
    if (!there && there.error().code == store::ErrorCode::resource_in_use)
      undelivered.push_back(id);
    else if (!there)
      co_return house::refuse(call, there.error());
    else if (*there)
      redacted.push_back(id);
  }
  const bool more = of_group && ids->size() >= most;
  if (redacted.empty() && undelivered.empty() && !more)
    co_return call.refuse(404, "there is no such message");
  JsonObjectWriter object(call.answer_json(undelivered.empty() ? 200 : 409));
  if (!undelivered.empty())
    object.string("error",
                  "some are not delivered yet: cancel them, or redact them for all who are to get them");
  if (more) object.boolean("more", true);
  // From single users: what was taken from them is in the group still.
  if (more && !users.empty()) object.string("next", ids->back());
  write_ids(object.key("redacted"), redacted);
  if (!undelivered.empty()) write_ids(object.key("undelivered"), undelivered);
}

}  // namespace tabella::inbox

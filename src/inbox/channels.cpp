#include "inbox/channels.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time_text.h"
#include "webhook/call.h"
#include "webhook/signature.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr std::chrono::milliseconds kGiveUp = std::chrono::days{3};
constexpr int kMostCalls = 4;  // of one tenant's webhook at once

// A link as a mail program needs it; empty: there is none.
std::string absolute_link(const std::string& link, const std::string& base) {
  if (link.starts_with("https://") || link.starts_with("http://")) return link;
  if (link.empty() || base.empty() || !link.starts_with('/') || link.starts_with("//")) return {};
  return base.ends_with('/') ? base + link.substr(1) : base + link;
}

std::string email_text(item::ValueView message, const std::string& link_base) {
  auto text = store::text_of(message, "body");
  const auto digest = store::member_of(message, "digest");
  if (digest && text.empty())
    if (const auto items = digest->member("items"); items && items->type() == item::Type::L)
      for (item::Elements each(*items); each.next();) {
        text.append("- ").append(store::text_of(each.value(), "title"));
        const auto link = absolute_link(store::text_of(each.value(), "cta_uri"), link_base);
        text.append(link.empty() ? "" : "\n  ").append(link).append("\n");
      }
  const auto link = absolute_link(store::text_of(message, "cta_uri"), link_base);
  if (!link.empty()) text.append(text.empty() ? "" : "\n\n").append(link);
  return text.empty() ? store::text_of(message, "title") : text;
}

}  // namespace

Channels::Channels(Parts parts, SendEmail send_email)
    : parts_(parts), send_email_(std::move(send_email)), places_(parts_.schedule, parts_.clock, kMostCalls) {
  for (const auto channel : {Channel::email, Channel::webhook})
    parts_.schedule.on(Posts::timer_kind(channel),
                       [this](const schedule::Firing& firing) { return fire(firing); });
}

// What it throws has the timer tried again.
awaitable<void> Channels::fire(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  const auto channel = parts.size() == 5 ? channel_named(parts[3]) : std::nullopt;
  if (!channel) co_return log::error("a timer of the inbox names no channel: {}", firing.timer.payload);
  const Place place{.tenant = std::string(parts[0]), .inbox = std::string(parts[1])};
  const auto post = co_await parts_.posts.load_for(firing, place, std::string(parts[2]));
  if (!post) co_return;
  const auto rules = co_await parts_.settings.rules(place);
  if (!rules) throw std::runtime_error(rules.error().message);
  const Sending sending{
      .place = place, .user = std::string(parts[4]), .channel = *channel, .post = *post, .rules = *rules};
  const auto wanted = co_await is_wanted(sending);
  if (!wanted) throw std::runtime_error(wanted.error().message);
  if (!*wanted) co_return;
  const auto sent = co_await send(sending, firing);
  if (!sent) throw std::runtime_error(sent.error().message);
}

Async<bool> Channels::is_wanted(const Sending& sending) {
  const auto& [post, content, users, user_parts, fingerprint, channels] = sending.post;
  if (post.state == PostState::canceled || post.state == PostState::redacted || content.message.empty())
    co_return false;
  if (content.expires <= epoch_milliseconds(parts_.clock.now()) / 1000) co_return false;
  const auto plan = std::ranges::find(channels, sending.channel, &ChannelPlan::channel);
  if (plan == channels.end()) co_return false;
  if (sending.user.empty()) co_return plan->wanted;
  const Box box{.place = sending.place, .user = sending.user};
  TABELLA_CO_ASSIGN(const auto wishes, co_await parts_.boxes.wishes(box));
  if (!wish_of(wishes, content.category, sending.channel).value_or(plan->wanted)) co_return false;
  // With the bell switched off it is in no box, and goes elsewhere all the same.
  TABELLA_CO_ASSIGN(const auto entry, co_await parts_.boxes.find(box, content.id));
  if (entry && entry->state.redacted) co_return false;
  const bool dealt_with = entry && (!entry->unread || entry->state.archived_at);
  co_return plan->after.count() == 0 || !dealt_with;
}

Async<void> Channels::send(const Sending& sending, const schedule::Firing& firing) {
  if (sending.channel == Channel::email) co_return co_await email(sending);
  co_return co_await call_webhook(sending, firing);
}

Async<void> Channels::email(const Sending& sending) {
  const auto& settings = sending.rules.inbox.email;
  TABELLA_CO_ASSIGN(const auto profile, co_await parts_.settings.profile(sending.place.tenant, sending.user));
  if (!settings || !profile || profile->email.empty() || !send_email_) {
    ++dropped_;
    co_return store::Result<void>();
  }
  const auto& content = sending.post.content;
  const item::ValueView message{std::string_view(content.message)};
  std::string json;
  {
    JsonObjectWriter object(json);
    object.string("id", uuid_from(fmt::format("{}#{}#{}#{}", sending.place.tenant, sending.place.inbox,
                                              sending.user, content.id)));
    object.string("from", settings->from);
    {
      JsonArrayWriter to(object.key("to"));
      append_json_string(to.element(), profile->email);
    }
    object.string("subject", printable(store::text_of(message, "title")));
    object.string("body_text", email_text(message, settings->link_base));
    JsonObjectWriter labels(object.key("labels"));
    labels.string("tenant", sending.place.tenant);
    labels.string("inbox", sending.place.inbox);
  }
  const auto taken = co_await send_email_(std::move(json));
  if (!taken && taken.error().code == store::ErrorCode::validation) {
    ++dropped_;
    log::warning("message {} cannot go by email: {}", content.id, taken.error().message);
    co_return store::Result<void>();
  }
  TABELLA_CO_TRY(taken);
  ++sent_;
  co_return store::Result<void>();
}

Async<void> Channels::call_webhook(const Sending& sending, const schedule::Firing& firing) {
  const auto& settings = sending.rules.inbox.webhook;
  if (!settings) {
    ++dropped_;
    co_return store::Result<void>();
  }
  TABELLA_CO_ASSIGN(const auto place, co_await places_.take(firing, sending.place.tenant));
  if (!place) co_return store::Result<void>();
  const auto& content = sending.post.content;
  std::string body;
  {
    JsonObjectWriter object(body);
    object.string("type", "message");
    object.string("id", content.id);
    object.string("tenant", sending.place.tenant);
    object.string("inbox", sending.place.inbox);
    object.boolean("public", content.everyone);
    if (!sending.user.empty()) object.string("user", sending.user);
    if (!content.category.empty()) object.string("category", content.category);
    if (!content.sender.empty()) object.string("sender", content.sender);
    object.string("created", time_text(time_of_id(content.id)));
    append_plain_json(object.key("message"), item::ValueView(std::string_view(content.message)));
  }
  TABELLA_CO_ASSIGN(const auto secret, co_await parts_.keys.secret(sending.place.tenant));
  const auto id = fmt::format("{}-{}", content.id, sending.user.empty() ? "$public" : sending.user);
  const auto failure =
      co_await webhook::call(parts_.outbound, {.url = settings->url, .body = std::move(body)},
                             webhook::secret_of(secret), id, parts_.clock.now());
  if (!failure) {
    ++sent_;
    co_return store::Result<void>();
  }
  if (failure->final || parts_.clock.now() - firing.timer.at > kGiveUp) {
    ++dropped_;
    log::warning("message {} is not taken by the webhook of {}: {}", content.id, sending.place.tenant,
                 failure->why);
    co_return store::Result<void>();
  }
  co_return store::fail(store::ErrorCode::unavailable, "the webhook did not take it: " + failure->why);
}

void Channels::write_metrics(metrics::Exposition& out) const {
  const auto count = [&](const char* outcome, const metrics::Counter& counter) {
    out.counter("tabella_inbox_channels_total", "Messages that left by email or webhook",
                static_cast<double>(counter), {{"outcome", outcome}});
  };
  count("sent", sent_);
  count("dropped", dropped_);
}

}  // namespace tabella::inbox

#include "manhunt/providers.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/text.h"
#include "handlebars/template.h"
#include "manhunt/http_outcome.h"
#include "manhunt/http_provider.h"
#include "manhunt/twilio.h"
#include "mime/field.h"
#include "net/http.h"
#include "net/target.h"
#include "webhook/signature.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using handlebars::Template;

namespace {

bool has(const std::vector<ChannelKind>& kinds, ChannelKind kind) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

// Shows phones that can be answered over HTTP; nobody is called.
class Simulator final : public Provider {
 public:
  Simulator(std::string name, std::vector<ChannelKind> kinds)
      : name_(std::move(name)), kinds_(std::move(kinds)) {}
  std::string_view name() const override { return name_; }
  bool serves(ChannelKind kind) const override { return has(kinds_, kind); }
  bool is_simulator() const override { return true; }
  // What belongs to no search (a code, a test) rings on no phone of the list: it is shown at once.
  awaitable<Sent> send(const Message& message) override {
    if (!message.search.empty()) co_return Sent{};
    co_return Sent{.detail = "simulated: " + message.text};
  }

 private:
  const std::string name_;
  const std::vector<ChannelKind> kinds_;
};

// By the outbox, which takes an id once: sending again sends nothing twice.
class OutboxEmail final : public Provider {
 public:
  OutboxEmail(std::string name, SendEmail send, std::string from)
      : name_(std::move(name)), send_(std::move(send)), from_(std::move(from)) {}
  std::string_view name() const override { return name_; }
  bool serves(ChannelKind kind) const override { return kind == ChannelKind::email; }

  awaitable<Sent> send(const Message& message) override {
    if (!send_)
      co_return Sent{.outcome = Outcome::failed,
                     .detail = "the outbox, which sends emails, is not among --systems"};
    const auto id = uuid_from("manhunt#" + message.id);
    std::string json;
    {
      JsonObjectWriter email(json);
      email.string("id", id);
      email.string("from", from_);
      {
        JsonArrayWriter to(email.key("to"));
        append_json_string(to.element(), message.destination);
      }
      email.string("subject", message.subject);
      email.string("body_text", message.text);
      JsonObjectWriter labels(email.key("labels"));
      labels.string("domain", message.domain);
      if (!message.search.empty()) labels.string("search", message.search);
    }
    const auto taken = co_await send_(std::move(json));
    if (taken) co_return Sent{.reference = id};
    const bool wrong = taken.error().code == store::ErrorCode::validation;
    co_return Sent{.outcome = wrong ? Outcome::failed : Outcome::unknown, .detail = taken.error().message};
  }

 private:
  const std::string name_;
  const SendEmail send_;
  const std::string from_;
};

// Signed as standardwebhooks.com says, by the secret of the domain.
class WebhookCall final : public Provider {
 public:
  explicit WebhookCall(const ProviderParts& parts)
      : outbound_(parts.outbound), clock_(parts.clock), domains_(parts.domains) {}
  std::string_view name() const override { return "webhook"; }
  bool serves(ChannelKind kind) const override { return kind == ChannelKind::webhook; }

  awaitable<Sent> send(const Message& message) override {
    const auto secret = co_await domains_.secret(message.domain);
    if (!secret) co_return Sent{.outcome = Outcome::failed, .detail = secret.error().message};
    net::OutboundRequest request{
        .method = "POST",
        .url = message.destination,
        .headers = {{"Content-Type", "application/json"}, {"Idempotency-Key", message.id}},
        .body = body_of(message)};
    webhook::add_headers(request, webhook::secret_of(*secret), message.id, clock_.now());
    co_return sent_by_http(co_await outbound_.send(std::move(request)));
  }

 private:
  static std::string body_of(const Message& message) {
    std::string json;
    JsonObjectWriter body(json);
    body.string("type", message.search.empty() ? "notice" : "attempt");
    body.string("id", message.id);
    body.string("domain", message.domain);
    if (!message.search.empty()) body.string("search", message.search);
    if (!message.attempt.empty()) body.string("attempt", message.attempt);
    body.string("contact", message.contact_name);
    body.string("text", message.text);
    if (!message.link.empty()) body.string("link", message.link);
    body.key("metadata").append(message.metadata);
    return json;
  }

  net::Outbound& outbound_;
  const Clock& clock_;
  Domains& domains_;
};

// Reading the file. What is wrong is thrown as a sentence.
struct Mistake {
  std::string message;
};

// A value as it is, or that of a variable: "$TWILIO_TOKEN".
std::string value_of(JsonValue object, std::string_view name, std::string_view where, bool needed = true) {
  if (const auto value = object.find(name); value && value->kind() != JsonValue::Kind::string)
    throw Mistake{fmt::format("{}: {}: expected a text", where, name)};
  const auto text = object.text(name);
  if (text.empty() && needed) throw Mistake{fmt::format("{}: {} is missing", where, name)};
  if (!text.starts_with('$')) return std::string(text);
  const auto* const value = std::getenv(std::string(text.substr(1)).c_str());
  if (!value || !*value)
    throw Mistake{fmt::format("{}: {}: the variable {} is not set", where, name, text.substr(1))};
  return value;
}

std::vector<ChannelKind> channels_of(JsonValue object, std::string_view where) {
  std::vector<ChannelKind> kinds;
  const auto list = object.find("channels");
  if (list && list->kind() == JsonValue::Kind::array)
    for (JsonElements each(*list); each.next();) {
      const auto kind =
          channel_named(each.value().kind() == JsonValue::Kind::string ? each.value().string() : "");
      if (!kind)
        throw Mistake{fmt::format("{}: channels: expected a list of phone, text, email, webhook", where)};
      kinds.push_back(*kind);
    }
  if (kinds.empty())
    throw Mistake{fmt::format("{}: channels: expected a list as in [\"phone\", \"text\"]", where)};
  return kinds;
}

void refuse_other_members(JsonValue object, std::string_view where,
                          std::initializer_list<std::string_view> known) {
  for (JsonElements each(object); each.next();)
    if (std::ranges::find(known, each.key()) == known.end())
      throw Mistake{fmt::format("{}: {} is not known here; expected {}", where, printable(each.key()),
                                fmt::join(known, ", "))};
}

Template template_of(std::string_view text, std::string_view where) {
  auto parsed = Template::parse(text);
  if (!parsed) throw Mistake{fmt::format("{}: {}", where, parsed.error().message)};
  return std::move(*parsed);
}

std::chrono::milliseconds timeout_of(JsonValue json, std::string_view where) {
  const auto text = json.text("timeout");
  if (text.empty()) return std::chrono::seconds(15);
  const auto time = parse_duration(text);
  if (!time || *time < std::chrono::milliseconds(100) || *time > std::chrono::minutes(2))
    throw Mistake{fmt::format("{}: timeout: expected a time as in 15s, up to 2m", where)};
  return *time;
}

TwilioAccount read_twilio(JsonValue json, const std::string& where) {
  refuse_other_members(json, where,
                       {"name", "type", "channels", "url", "account", "token", "from", "timeout"});
  TwilioAccount account{.name = std::string(json.text("name")),
                        .channels = channels_of(json, where),
                        .account = value_of(json, "account", where),
                        .token = value_of(json, "token", where),
                        .from = value_of(json, "from", where),
                        .timeout = timeout_of(json, where)};
  if (auto url = value_of(json, "url", where, false); !url.empty()) account.url = std::move(url);
  while (account.url.ends_with('/')) account.url.pop_back();
  if (!net::parse_url(account.url)) throw Mistake{fmt::format("{}: url: it is no address on the web", where)};
  for (const auto kind : account.channels)
    if (kind != ChannelKind::phone && kind != ChannelKind::text)
      throw Mistake{fmt::format("{}: channels: Twilio is for phone and text", where)};
  return account;
}

// "replies": {"key": "$KEY", "from": "{{sender}}", "text": "{{message.body}}"}
HttpReplies read_replies(JsonValue json, const std::string& where) {
  if (!json.is_object()) throw Mistake{fmt::format("{}: expected an object with key, from and text", where)};
  refuse_other_members(json, where, {"key", "from", "text"});
  HttpReplies replies{.key = value_of(json, "key", where),
                      .from = template_of(value_of(json, "from", where), where + ": from"),
                      .text = template_of(value_of(json, "text", where), where + ": text")};
  if (replies.key.size() < 16) throw Mistake{fmt::format("{}: key: expected 16 characters or more", where)};
  return replies;
}

Escape escape_for(std::string_view content_type) {
  if (content_type.contains("json")) return Escape::json;
  if (content_type.contains("x-www-form-urlencoded")) return Escape::form;
  return content_type.contains("xml") ? Escape::xml : Escape::none;
}

void read_headers(JsonValue json, HttpProviderSettings& settings, const std::string& where) {
  if (!json.is_object()) throw Mistake{fmt::format("{}: expected an object of texts", where)};
  for (JsonElements each(json); each.next();) {
    const std::string name(each.key());
    if (!net::is_token(name))
      throw Mistake{fmt::format("{}: {} is no name of a header", where, printable(name))};
    const auto value = value_of(json, name, where);
    settings.headers.emplace_back(name, template_of(value, where));
    if (net::same_header(name, "content-type")) settings.escape = escape_for(lower(value));
  }
}

std::optional<Template> reply_template(JsonValue reply, std::string_view name, const std::string& where) {
  if (!reply.find(name)) return std::nullopt;
  return template_of(value_of(reply, name, where), fmt::format("{}: reply: {}", where, name));
}

HttpProviderSettings read_http(JsonValue json, const std::string& where) {
  refuse_other_members(json, where,
                       {"name", "type", "channels", "secret", "request", "reply", "replies", "timeout"});
  const auto request = json.find("request");
  if (!request || !request->is_object())
    throw Mistake{fmt::format("{}: request: expected an object with url, headers and body", where)};
  refuse_other_members(*request, where + ": request", {"method", "url", "headers", "body"});
  HttpProviderSettings settings{.name = std::string(json.text("name")),
                                .channels = channels_of(json, where),
                                .secret = value_of(json, "secret", where, false),
                                .url = template_of(value_of(*request, "url", where), where + ": url"),
                                .timeout = timeout_of(json, where)};
  if (const auto method = request->text("method"); !method.empty()) settings.method = upper(method);
  if (const auto headers = request->find("headers")) read_headers(*headers, settings, where + ": headers");
  if (request->find("body")) {
    settings.body = template_of(value_of(*request, "body", where), where + ": body");
    // Otherwise what is in a message could end what it stands in.
    if (settings.escape == Escape::none)
      throw Mistake{
          fmt::format("{}: headers: Content-Type: expected application/json, "
                      "application/x-www-form-urlencoded or one of XML, as there is a body",
                      where)};
  }
  if (const auto replies = json.find("replies"))
    settings.replies = read_replies(*replies, where + ": replies");
  if (const auto reply = json.find("reply")) {
    if (!reply->is_object()) throw Mistake{fmt::format("{}: reply: expected an object", where)};
    refuse_other_members(*reply, where + ": reply", {"reference", "error"});
    settings.reference = reply_template(*reply, "reference", where);
    settings.error = reply_template(*reply, "error", where);
  }
  return settings;
}

std::unique_ptr<Provider> read_provider(JsonValue json, const ProviderParts& parts) {
  if (!json.is_object()) throw Mistake{"providers: expected a list of objects"};
  const auto name = json.text("name");
  const auto type = json.text("type");
  const auto where = fmt::format("provider {}", printable(name));
  if (const auto problem = problem_with_name("name", name); !problem.empty()) throw Mistake{problem};
  if (type == "twilio") return std::make_unique<Twilio>(read_twilio(json, where), parts.base, parts.outbound);
  if (type == "http")
    return std::make_unique<HttpProvider>(read_http(json, where), parts.base, parts.outbound);
  if (type == "outbox") {
    refuse_other_members(json, where, {"name", "type", "channels"});
    if (channels_of(json, where) != std::vector{ChannelKind::email})
      throw Mistake{fmt::format("{}: channels: the outbox sends email", where)};
    return std::make_unique<OutboxEmail>(std::string(name), parts.send_email, parts.email_from);
  }
  if (type != "simulator")
    throw Mistake{fmt::format("{}: type: expected twilio, http, outbox or simulator", where)};
  refuse_other_members(json, where, {"name", "type", "channels"});
  return std::make_unique<Simulator>(std::string(name), channels_of(json, where));
}

void read_providers(Providers& providers, const std::string& text, const ProviderParts& parts) {
  JsonDocument document;
  const auto json = document.parse(text);
  const auto list = json && json->is_object() ? json->find("providers") : std::nullopt;
  if (!list || list->kind() != JsonValue::Kind::array)
    throw Mistake{R"(expected JSON as in {"providers": […]})"};
  for (JsonElements each(*list); each.next();) {
    auto made = read_provider(each.value(), parts);
    for (const auto& other : providers)
      if (other->name() == made->name())
        throw Mistake{fmt::format("provider {}: there are two of that name", made->name())};
    providers.push_back(std::move(made));
  }
}

}  // namespace

std::string problem_with_destination(ChannelKind kind, std::string_view destination) {
  const bool plain = is_plain(destination) && !destination.empty() && destination.size() <= 2000;
  switch (kind) {
    case ChannelKind::phone:
    case ChannelKind::text: {
      const auto digits = destination.substr(std::min<size_t>(1, destination.size()));
      const bool number = destination.starts_with('+') && digits.size() >= 5 && digits.size() <= 15 &&
                          std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
      return number ? "" : "destination: expected a number as in +390612345678";
    }
    // One address: whatever has a comma in it would be several.
    case ChannelKind::email:
      return plain && mime::is_mailbox(destination)
                 ? ""
                 : "destination: expected an address as in ann@example.com";
    case ChannelKind::webhook:
      return plain && net::parse_url(destination)
                 ? ""
                 : "destination: expected an address as in https://example.com/hook";
  }
  std::unreachable();
}

std::expected<Providers, std::string> make_providers(const std::string& json, const ProviderParts& parts) {
  Providers providers;
  try {
    if (!json.empty()) read_providers(providers, json, parts);
  } catch (const Mistake& mistake) {
    return std::unexpected(mistake.message);
  }
  const auto served = [&](ChannelKind kind) {
    return std::ranges::any_of(providers, [&](const auto& provider) { return provider->serves(kind); });
  };
  if (!served(ChannelKind::email))
    providers.push_back(std::make_unique<OutboxEmail>("outbox", parts.send_email, parts.email_from));
  if (!served(ChannelKind::webhook)) providers.push_back(std::make_unique<WebhookCall>(parts));
  // Where somebody has said who makes the calls, none is simulated unless they say so.
  if (json.empty())
    providers.push_back(
        std::make_unique<Simulator>("simulator", std::vector{ChannelKind::phone, ChannelKind::text}));
  return providers;
}

const Twilio* find_twilio(const Providers& providers, std::string_view name) {
  for (const auto& provider : providers)
    if (provider->name() == name) return dynamic_cast<const Twilio*>(provider.get());
  return nullptr;
}

const HttpProvider* find_http_provider(const Providers& providers, std::string_view name) {
  for (const auto& provider : providers)
    if (provider->name() == name) return dynamic_cast<const HttpProvider*>(provider.get());
  return nullptr;
}

}  // namespace tabella::manhunt

// Domains: settings, templates, policies, maintenance windows.
#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/api.h"
#include "manhunt/wording.h"
#include "webhook/signature.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr const char* kDomainExample =
    R"({"title": "Shop", "language": "it", "require_verification": false, "events_url": "https://example.com/searches"})";
constexpr const char* kSecretExample = R"({"anew": true})";
constexpr const char* kTemplateExample =
    R"({"subject": "{{summary}}", "text": "{{contact.name}}: {{summary}} {{link}}"})";
constexpr const char* kPolicyExample =
    R"({"title": "Shop", "steps": [{"wait": "5m", "targets": [{"schedule": "primary"}]}, {"wait": "10m", "targets": [{"contact": "…"}]}], "repeat": 1})";
constexpr const char* kMaintenanceExample =
    R"({"from": "2026-11-18T22:00:00Z", "to": "2026-11-19T02:00:00Z", "policies": ["shop"]})";
constexpr size_t kMostTitleBytes = 200;

void write_parts(net::Call& call, std::string_view name, const auto& parts, auto write) {
  JsonObjectWriter object(call.answer_json());
  JsonObjectWriter all(object.key(name));
  for (const auto& [id, part] : parts) {
    JsonObjectWriter one(all.key(id));
    write(one, part);
  }
}

// What was sent, if `read` can read it. Nothing: that was answered.
template <class T>
std::optional<T> read_body(net::Call& call, const char* example, Checked<T> (*read)(JsonValue),
                           std::initializer_list<const char*> members, JsonDocument& document) {
  auto body = call.json(example);
  if (!body) return std::nullopt;
  for (const auto* member : members) body->any(member);
  body->no_others();
  if (call.answered()) return std::nullopt;
  const auto json = document.parse(call.request.body);
  auto value = read(*json);
  if (value) return std::move(*value);
  call.refuse(400, value.error().message);
  return std::nullopt;
}

// Whoever has it opens and ends searches.
Policy without_routing_key(Policy policy) {
  policy.routing_key.clear();
  return policy;
}

std::string text_of_part(const auto& part, auto write) {
  std::string json;
  JsonObjectWriter object(json);
  write(object, part);
  return json;
}

}  // namespace

void Api::add_domain_routes(Routes& routes) {
  const std::string domain = "/manhunt/{domain}";
  routes.add(domain_route("GET", domain, "Shows a domain's settings"), &Api::show_domain);
  routes.add(
      domain_route(
          "PUT", domain,
          "Sets a domain's title, its language, and who is told of its searches; what is left out stays",
          kDomainExample),
      &Api::set_domain);
  auto secret =
      domain_route("POST", domain + "/secret",
                   "Shows the domain's secret, which is good as X-Manhunt-Key, and the one that its "
                   "webhooks are signed with",
                   kSecretExample);
  secret.body_is_optional = true;
  routes.add(std::move(secret), &Api::show_secret);
  routes.add(domain_route("GET", domain + "/templates",
                          "Shows what is said on each channel, where the domain says it itself"),
             &Api::list_templates);
  const auto wording = domain + "/templates/{channel}/{language}";
  routes.add(domain_route("PUT", wording, "Sets what is said on a channel in a language", kTemplateExample),
             &Api::set_template);
  routes.add(domain_route("DELETE", wording, "Says it as usual again"), &Api::remove_template);
  routes.add(domain_route("GET", domain + "/policies", "Lists the policies"), &Api::list_policies);
  const auto policy = domain + "/policies/{policy}";
  routes.add(domain_route("GET", policy, "Shows a policy"), &Api::show_policy);
  routes.add(domain_route("PUT", policy, "Sets a policy: who is asked, and who next", kPolicyExample),
             &Api::set_policy);
  routes.add(domain_route("DELETE", policy, "Removes a policy"), &Api::remove_policy);
  routes.add(domain_route("POST", policy + "/routing-key",
                          "Makes another routing key; the one before is good no longer"),
             &Api::change_routing_key);
  routes.add(domain_route("GET", domain + "/maintenance", "Lists the maintenance windows"),
             &Api::list_maintenance);
  const auto maintenance = domain + "/maintenance/{window}";
  routes.add(domain_route("GET", maintenance, "Shows a maintenance window"), &Api::show_maintenance);
  routes.add(domain_route("PUT", maintenance, "Sets a maintenance window, in which nobody is searched for",
                          kMaintenanceExample),
             &Api::set_maintenance);
  routes.add(domain_route("DELETE", maintenance, "Removes a maintenance window"), &Api::remove_maintenance);
}

awaitable<void> Api::show_domain(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  JsonObjectWriter object(call.answer_json());
  object.string("domain", *domain);
  object.string("title", (*view)->title);
  object.string("language", (*view)->language);
  object.boolean("require_verification", (*view)->uses_verified_only());
  object.string("events_url", (*view)->events_url);
  object.number("policies", static_cast<int64_t>((*view)->policies.size()));
  object.number("schedules", static_cast<int64_t>((*view)->schedules.size()));
}

awaitable<void> Api::set_domain(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto body = call.json(kDomainExample);
  if (!body) co_return;
  const auto before = co_await view_of(call, *domain);
  if (!before) co_return;
  Domain settings{.name = *domain,
                  .title = body->text("title", (*before)->title),
                  .language = body->text("language", (*before)->language),
                  .require_verification = body->flag("require_verification", (*before)->require_verification),
                  .events_url = body->text("events_url", (*before)->events_url)};
  body->no_others();
  if (settings.title.size() > kMostTitleBytes)
    call.refuse(400, fmt::format("title: at most {} bytes", kMostTitleBytes));
  if (!settings.language.empty() && !problem_with_name("language", settings.language).empty())
    call.refuse(400, problem_with_name("language", settings.language));
  if (!settings.events_url.empty())
    if (const auto url = parts_.outbound.check(settings.events_url); !url)
      call.refuse(400, "events_url: " + url.error().message);
  if (call.answered()) co_return;
  const auto put = co_await parts_.domains.put_settings(std::move(settings));
  if (!put) co_return house::refuse(call, put.error());
  co_await show_domain(call);
}

awaitable<void> Api::show_secret(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  bool anew = false;
  if (!call.request.body.empty()) {
    auto body = call.json(kSecretExample);
    if (!body) co_return;
    anew = body->flag("anew", false);
    body->no_others();
    if (call.answered()) co_return;
  }
  if (anew) {
    const auto changed = co_await parts_.domains.change_secret(*domain);
    if (!changed) co_return house::refuse(call, changed.error());
  }
  const auto secret = co_await parts_.domains.secret(*domain);
  if (!secret) co_return house::refuse(call, secret.error());
  JsonObjectWriter object(call.answer_json());
  object.string("secret", *secret);
  object.string("webhook_secret", webhook::secret_of(*secret));
}

awaitable<void> Api::remove_part(Call& call, Part part, const char* what, std::string name) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto removed = co_await parts_.domains.remove(*domain, part, std::move(name));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return not_there(call, what);
  call.response.status = 204;
}

awaitable<void> Api::list_templates(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  JsonObjectWriter object(call.answer_json());
  JsonArrayWriter all(object.key("templates"));
  for (const auto& [name, wording] : (*view)->wordings) {
    const auto hash = name.find('#');
    JsonObjectWriter one(all.element());
    one.string("channel", name.substr(0, hash));
    one.string("language", name.substr(hash + 1));
    one.string("subject", wording.subject);
    one.string("text", wording.text);
  }
}

awaitable<void> Api::set_template(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto language = name_in(call, "language");
  if (!language) co_return;
  const auto kind = channel_named(call.path("channel"));
  if (!kind) co_return call.refuse(400, "channel: expected phone, text, email or webhook");
  auto body = call.json(kTemplateExample);
  if (!body) co_return;
  const auto subject = body->text("subject", "");
  const auto text = body->text("text");
  body->no_others();
  for (const auto& [name, value] : {std::pair{"subject", &subject}, std::pair{"text", &text}})
    if (const auto problem = problem_with_template(*value); !problem.empty())
      call.refuse(400, fmt::format("{}: {}", name, problem));
  if (call.answered()) co_return;
  const auto view = co_await view_of(call, *domain);
  const auto name = fmt::format("{}#{}", name_of(*kind), *language);
  if (!view || !has_room(call, **view, (*view)->wordings, Part::wording, name)) co_return;
  std::string json;
  {
    JsonObjectWriter object(json);
    object.string("subject", subject);
    object.string("text", text);
  }
  const auto put = co_await parts_.domains.put(*domain, Part::wording, name, json);
  if (!put) co_return house::refuse(call, put.error());
  call.answer_json().append(json);
}

awaitable<void> Api::remove_template(Call& call) {
  co_await remove_part(call, Part::wording, "template",
                       fmt::format("{}#{}", call.path("channel"), call.path("language")));
}

awaitable<void> Api::list_policies(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  if (const auto view = co_await view_of(call, *domain))
    write_parts(call, "policies", (*view)->policies, [&](JsonObjectWriter& out, const Policy& policy) {
      write_policy(out, may_write(call) ? policy : without_routing_key(policy));
    });
}

awaitable<void> Api::show_policy(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  const auto found = (*view)->policies.find(call.path("policy"));
  if (found == (*view)->policies.end()) co_return not_there(call, "policy");
  JsonObjectWriter object(call.answer_json());
  object.string("id", found->first);
  write_policy(object, may_write(call) ? found->second : without_routing_key(found->second));
}

awaitable<void> Api::set_policy(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto name = name_in(call, "policy");
  if (!name) co_return;
  JsonDocument document;
  auto policy = read_body(call, kPolicyExample, read_policy, {"title", "steps", "repeat"}, document);
  if (!policy) co_return;
  if (policy->title.size() > kMostTitleBytes) co_return call.refuse(400, "title: at most 200 bytes");
  const auto view = co_await view_of(call, *domain);
  if (!view || !has_room(call, **view, (*view)->policies, Part::policy, *name)) co_return;
  for (const auto& step : policy->steps)
    for (const auto& target : step.targets) {
      if (!target.schedule.empty() && !(*view)->schedules.contains(target.schedule))
        co_return call.refuse(
            400, fmt::format("steps: there is no schedule {} in this domain", printable(target.schedule)));
      if (target.contact.empty()) continue;
      const auto contact = co_await parts_.contacts.find(*domain, target.contact);
      if (!contact) co_return house::refuse(call, contact.error());
      if (!*contact)
        co_return call.refuse(
            400, fmt::format("steps: there is no contact {} in this domain", printable(target.contact)));
    }
  const auto put = co_await parts_.domains.put_policy(*domain, *name, std::move(*policy));
  if (!put) co_return house::refuse(call, put.error());
  co_await show_policy(call);
}

awaitable<void> Api::change_routing_key(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto changed = co_await parts_.domains.change_routing_key(*domain, call.path("policy"));
  if (!changed) co_return house::refuse(call, changed.error());
  if (!*changed) co_return not_there(call, "policy");
  co_await show_policy(call);
}

awaitable<void> Api::remove_policy(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto heartbeat = co_await parts_.heartbeats.first_that_asks(*domain, "", call.path("policy"));
  if (!heartbeat) co_return house::refuse(call, heartbeat.error());
  if (!heartbeat->empty())
    co_return call.refuse(409,
                          fmt::format("heartbeat {} searches by that policy: change that first", *heartbeat));
  co_await remove_part(call, Part::policy, "policy", call.path("policy"));
}

awaitable<void> Api::list_maintenance(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  if (const auto view = co_await view_of(call, *domain))
    write_parts(call, "maintenance", (*view)->maintenance, write_maintenance);
}

awaitable<void> Api::show_maintenance(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  const auto found = (*view)->maintenance.find(call.path("window"));
  if (found == (*view)->maintenance.end()) co_return not_there(call, "maintenance window");
  JsonObjectWriter object(call.answer_json());
  object.string("id", found->first);
  write_maintenance(object, found->second);
}

awaitable<void> Api::set_maintenance(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto name = name_in(call, "window");
  if (!name) co_return;
  JsonDocument document;
  const auto window =
      read_body(call, kMaintenanceExample, read_maintenance, {"from", "to", "policies"}, document);
  if (!window) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view || !has_room(call, **view, (*view)->maintenance, Part::maintenance, *name)) co_return;
  for (const auto& policy : window->policies)
    if (!(*view)->policies.contains(policy))
      co_return call.refuse(400, fmt::format("policies: there is no policy {}", printable(policy)));
  const auto put = co_await parts_.domains.put(*domain, Part::maintenance, *name,
                                               text_of_part(*window, write_maintenance));
  if (!put) co_return house::refuse(call, put.error());
  co_await show_maintenance(call);
}

awaitable<void> Api::remove_maintenance(Call& call) {
  co_await remove_part(call, Part::maintenance, "maintenance window", call.path("window"));
}

}  // namespace tabella::manhunt

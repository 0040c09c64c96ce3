// Heartbeats: what says every so often that it is alive.
#include "base/duration.h"
#include "base/time_text.h"
#include "manhunt/api.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

constexpr const char* kHeartbeatExample = R"({"every": "5m", "policy": "shop"})";

void write_heartbeat(std::string& out, const Heartbeat& heartbeat) {
  JsonObjectWriter object(out);
  object.string("name", heartbeat.name);
  object.string("every", duration_text(heartbeat.every));
  if (!heartbeat.contact.empty()) object.string("contact", heartbeat.contact);
  if (!heartbeat.policy.empty()) object.string("policy", heartbeat.policy);
  object.string("last", time_text(heartbeat.last));
  object.boolean("late", heartbeat.late);
}

}  // namespace

void Api::add_heartbeat_routes(Routes& routes) {
  const std::string heartbeats = "/manhunt/{domain}/heartbeats";
  auto list = domain_route("GET", heartbeats, "Lists the heartbeats by name");
  list.query = kPageParameters;
  routes.add(std::move(list), &Api::list_heartbeats);
  const auto heartbeat = heartbeats + "/{heartbeat}";
  routes.add(domain_route("GET", heartbeat, "Shows a heartbeat"), &Api::show_heartbeat);
  routes.add(domain_route("PUT", heartbeat, "Sets a heartbeat: who is searched for when it is missed",
                          kHeartbeatExample),
             &Api::set_heartbeat);
  routes.add(domain_route("DELETE", heartbeat, "Removes a heartbeat"), &Api::remove_heartbeat);
  routes.add(domain_route("POST", heartbeat + "/beat", "Says that it is alive"), &Api::beat);
}

awaitable<void> Api::list_heartbeats(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto limit = call.number("limit", 50, 1, 1000);
  if (call.answered()) co_return;
  const auto page = co_await parts_.heartbeats.list(*domain, limit, call.text("next"));
  if (!page) co_return house::refuse(call, page.error());
  JsonObjectWriter object(call.answer_json());
  {
    JsonArrayWriter all(object.key("heartbeats"));
    for (const auto& heartbeat : page->heartbeats) write_heartbeat(all.element(), heartbeat);
  }
  if (!page->next.empty()) object.string("next", page->next);
}

awaitable<void> Api::show_heartbeat(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto found = co_await parts_.heartbeats.find(*domain, call.path("heartbeat"));
  if (!found) co_return house::refuse(call, found.error());
  if (!*found) co_return not_there(call, "heartbeat");
  write_heartbeat(call.answer_json(), **found);
}

awaitable<void> Api::set_heartbeat(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto name = name_in(call, "heartbeat");
  if (!name) co_return;
  auto body = call.json(kHeartbeatExample);
  if (!body) co_return;
  Heartbeat heartbeat{.domain = *domain,
                      .name = *name,
                      .every = body->duration("every", std::chrono::days{30}),
                      .contact = body->text("contact", ""),
                      .policy = body->text("policy", "")};
  body->no_others();
  if (heartbeat.every < std::chrono::seconds(1))
    call.refuse(400, "every: expected a time as in 5m, from 1s to 30d");
  if (call.answered()) co_return;
  const auto draft = co_await parts_.searches.draft(
      {.domain = *domain, .contact = heartbeat.contact, .policy = heartbeat.policy});
  if (!draft) co_return house::refuse(call, draft.error());
  const auto put = co_await parts_.heartbeats.put(heartbeat);
  if (!put) co_return house::refuse(call, put.error());
  co_await show_heartbeat(call);
}

awaitable<void> Api::remove_heartbeat(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto removed = co_await parts_.heartbeats.remove(*domain, call.path("heartbeat"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return not_there(call, "heartbeat");
  call.response.status = 204;
}

awaitable<void> Api::beat(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto beaten = co_await parts_.heartbeats.beat(*domain, call.path("heartbeat"));
  if (!beaten) co_return house::refuse(call, beaten.error());
  if (!*beaten) co_return not_there(call, "heartbeat");
  call.response.status = 204;
}

}  // namespace tabella::manhunt

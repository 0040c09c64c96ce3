// Contacts and their methods.
#include <algorithm>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/api.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using std::chrono::milliseconds;

namespace {

constexpr const char* kContactExample =
    R"({"name": "Ann", "timezone": "Europe/Rome", "language": "it", "quiet_hours": {"from": "22:00", "to": "07:00"}, "methods": [{"type": "phone", "destination": "+390612345678", "delay": "0s"}]})";
constexpr const char* kChangeExample =
    R"({"name": "Ann", "timezone": "Europe/Rome", "language": "it", "quiet_hours": {"from": "22:00", "to": "07:00"}})";
constexpr const char* kMethodExample =
    R"({"type": "phone", "destination": "+390612345678", "delay": "10m", "enabled": true, "limit": {"count": 3, "per": "15m"}})";
constexpr const char* kTooMany = "enough was sent to this destination for now: wait a while";
constexpr size_t kMostContactName = 200;
constexpr int64_t kMostOrder = 1'000'000;
constexpr milliseconds kLongestLimit = std::chrono::days{1};

void write_method(std::string& out, const Method& method) {
  JsonObjectWriter object(out);
  object.string("id", method.id);
  object.string("type", name_of(method.kind));
  object.string("destination", method.destination);
  object.string("delay", duration_text(method.delay));
  object.number("order", method.order);
  object.boolean("enabled", method.enabled);
  object.boolean("verified", method.verified);
  if (method.limit.count == 0) return;
  JsonObjectWriter limit(object.key("limit"));
  limit.number("count", method.limit.count);
  limit.string("per", duration_text(method.limit.per));
}

void write_contact(JsonObjectWriter& out, const Contact& contact) {
  out.string("id", contact.id);
  out.string("domain", contact.domain);
  out.string("name", contact.name);
  if (!contact.timezone.empty()) out.string("timezone", contact.timezone);
  if (!contact.language.empty()) out.string("language", contact.language);
  if (contact.quiet) write_window(out.key("quiet_hours"), *contact.quiet);
  out.string("created", time_text(time_at(contact.created)));
}

void write_full(std::string& out, const FullContact& full) {
  JsonObjectWriter object(out);
  write_contact(object, full.contact);
  JsonArrayWriter methods(object.key("methods"));
  for (const auto& method : full.methods) write_method(methods.element(), method);
}

// Into what is there already.
void read_contact(net::Call& call, net::JsonBody& body, Contact& contact) {
  contact.name = body.text("name");
  contact.timezone = body.text("timezone", "");
  contact.language = body.text("language", "");
  contact.quiet.reset();
  if (contact.name.empty() || contact.name.size() > kMostContactName ||
      printable(contact.name) != contact.name)
    call.refuse(400,
                fmt::format("name: expected 1 to {} bytes without control characters", kMostContactName));
  if (!contact.timezone.empty() && !TimeZone::find(contact.timezone))
    call.refuse(400, fmt::format("timezone: {} is no time zone; expected a name as in Europe/Rome",
                                 printable(contact.timezone)));
  if (!contact.language.empty())
    if (const auto problem = problem_with_name("language", contact.language); !problem.empty())
      call.refuse(400, problem);
  const auto quiet = body.any("quiet_hours");
  if (!quiet) return;
  const bool whole = quiet->is_object() && quiet->find("from") && quiet->find("to");
  const auto window =
      whole ? read_window(*quiet) : invalid(R"(expected an object as in {"from": "22:00", "to": "07:00"})");
  if (!window)
    call.refuse(400, "quiet_hours: " + window.error().message);
  else if (window->is_always())
    call.refuse(400, "quiet_hours: these would never end; disable the methods instead");
  else
    contact.quiet = *window;
}

RateLimit read_limit(net::Call& call, JsonValue json) {
  RateLimit limit;
  const auto count = json.is_object() ? json.find("count") : std::nullopt;
  const auto per = json.is_object() ? parse_duration(json.text("per")) : std::nullopt;
  const bool fits = count && count->kind() == JsonValue::Kind::integer && count->integer() >= 1 &&
                    count->integer() <= 1000 && per && *per >= std::chrono::seconds(1) &&
                    *per <= kLongestLimit;
  if (!fits)
    call.refuse(400, R"(limit: expected {"count": 3, "per": "15m"}, 1 to 1000 in 1s to 1d)");
  else
    limit = {.count = count->integer(), .per = *per};
  return limit;
}

}  // namespace

void Api::add_contact_routes(Routes& routes) {
  const std::string contacts = "/manhunt/{domain}/contacts";
  auto list = domain_route("GET", contacts, "Lists the contacts by name");
  list.query = kPageParameters;
  routes.add(std::move(list), &Api::list_contacts);
  routes.add(domain_route("POST", contacts, "Adds a contact", kContactExample), &Api::create_contact);
  const auto contact = contacts + "/{contact}";
  routes.add(domain_route("GET", contact, "Shows a contact with its methods"), &Api::show_contact);
  routes.add(domain_route("PUT", contact, "Changes a contact", kChangeExample), &Api::set_contact);
  routes.add(domain_route("DELETE", contact, "Removes a contact"), &Api::remove_contact);
  auto searches =
      domain_route("GET", contact + "/searches", "Lists the searches for a contact, newest first");
  searches.query = {{"status", "active, canceled, successful or failed"},
                    {"before", "opened before that moment"},
                    {"after", "opened after that moment"},
                    {"limit", "how many, 50 unless told"},
                    {"next", "what the page before gave"}};
  routes.add(std::move(searches), &Api::list_contact_searches);
  routes.add(domain_route("POST", contact + "/methods", "Adds a method", kMethodExample), &Api::add_method);
  const auto method = contact + "/methods/{method}";
  routes.add(domain_route("PUT", method, "Changes a method; what is left out stays", kMethodExample),
             &Api::set_method);
  routes.add(domain_route("DELETE", method, "Removes a method"), &Api::remove_method);
  routes.add(domain_route("POST", method + "/verification", "Sends a code by the method"),
             &Api::begin_verification);
  routes.add(domain_route("POST", method + "/verification/confirm", "Confirms the method by its code",
                          R"({"code": "123456"})"),
             &Api::confirm_verification);
  routes.add(domain_route("POST", method + "/test", "Sends a test by the method"), &Api::test_method);
}

awaitable<std::optional<FullContact>> Api::contact_of(Call& call, const std::string& domain) {
  auto found = co_await parts_.contacts.find_full(domain, call.path("contact"));
  if (!found) {
    house::refuse(call, found.error());
    co_return std::nullopt;
  }
  if (!*found) not_there(call, "contact");
  co_return std::move(*found);
}

awaitable<std::optional<Api::Named>> Api::method_of(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return std::nullopt;
  auto view = co_await view_of(call, *domain);
  if (!view) co_return std::nullopt;
  const auto full = co_await contact_of(call, *domain);
  if (!full) co_return std::nullopt;
  const auto method = std::ranges::find(full->methods, call.path("method"), &Method::id);
  if (method == full->methods.end()) {
    call.refuse(404, "the contact has no such method");
    co_return std::nullopt;
  }
  co_return Named{.domain = std::move(*view), .contact = full->contact, .method = *method};
}

// What is left out stays as it was in `method`. Nothing: that was answered.
std::optional<Method> Api::read_method(Call& call, JsonValue json, Method method) const {
  if (!json.is_object()) {
    call.refuse(400, "methods: expected a list of objects");
    return std::nullopt;
  }
  const auto before = method;
  for (JsonElements each(json); each.next();) {
    const auto name = each.key();
    const auto value = each.value();
    const auto text = value.kind() == JsonValue::Kind::string ? value.string() : std::string_view();
    if (name == "type") {
      const auto kind = channel_named(text);
      if (!kind) call.refuse(400, "type: expected phone, text, email or webhook");
      if (kind) method.kind = *kind;
    } else if (name == "destination") {
      method.destination = text;
    } else if (name == "delay") {
      const auto delay = parse_duration(text);
      if (!delay || *delay > kLongestWait) call.refuse(400, "delay: expected a time as in 10m, up to 30d");
      if (delay) method.delay = *delay;
    } else if (name == "order" && value.kind() == JsonValue::Kind::integer) {
      method.order = value.integer();
      if (method.order < -kMostOrder || method.order > kMostOrder)
        call.refuse(400, fmt::format("order: expected {} to {}", -kMostOrder, kMostOrder));
    } else if (name == "enabled" && value.kind() == JsonValue::Kind::boolean) {
      method.enabled = value.boolean();
    } else if (name == "limit") {
      method.limit = value.kind() == JsonValue::Kind::null ? RateLimit{} : read_limit(call, value);
    } else {
      call.refuse(400, fmt::format("methods: {} is not known here, or not of its type", printable(name)));
    }
  }
  if (const auto problem = problem_with_destination(method.kind, method.destination); !problem.empty())
    call.refuse(400, problem);
  else if (method.kind == ChannelKind::webhook)
    if (const auto url = parts_.outbound.check(method.destination); !url)
      call.refuse(400, "destination: " + url.error().message);
  if (call.answered()) return std::nullopt;
  // What was verified was the destination.
  if (method.destination != before.destination || method.kind != before.kind) method.verified = false;
  return method;
}

awaitable<void> Api::list_contacts(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto limit = call.number("limit", 50, 1, 1000);
  if (call.answered()) co_return;
  const auto page = co_await parts_.contacts.list(*domain, limit, call.text("next"));
  if (!page) co_return house::refuse(call, page.error());
  JsonObjectWriter object(call.answer_json());
  {
    JsonArrayWriter all(object.key("contacts"));
    for (const auto& contact : page->contacts) {
      JsonObjectWriter one(all.element());
      write_contact(one, contact);
    }
  }
  if (!page->next.empty()) object.string("next", page->next);
}

awaitable<void> Api::create_contact(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto body = call.json(kContactExample);
  if (!body) co_return;
  FullContact full{
      .contact = {.id = make_id('c'), .domain = *domain, .created = epoch_milliseconds(parts_.clock.now())}};
  read_contact(call, *body, full.contact);
  if (const auto methods = body->any("methods")) {
    if (methods->kind() != JsonValue::Kind::array) co_return call.refuse(400, "methods: expected a list");
    for (JsonElements each(*methods); each.next();) {
      Method fresh{
          .id = make_id('m'), .contact = full.contact.id, .order = static_cast<int64_t>(full.methods.size())};
      auto method = read_method(call, each.value(), std::move(fresh));
      if (!method) co_return;
      full.methods.push_back(std::move(*method));
    }
  }
  body->no_others();
  if (full.methods.size() > kMostMethods) call.refuse(400, fmt::format("methods: at most {}", kMostMethods));
  if (call.answered()) co_return;
  const auto created = co_await parts_.contacts.create(full);
  if (!created) co_return house::refuse(call, created.error());
  write_full(call.answer_json(201), full);
}

awaitable<void> Api::show_contact(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  if (const auto full = co_await contact_of(call, *domain)) write_full(call.answer_json(), *full);
}

awaitable<void> Api::set_contact(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto full = co_await contact_of(call, *domain);
  if (!full) co_return;
  auto body = call.json(kChangeExample);
  if (!body) co_return;
  read_contact(call, *body, full->contact);
  body->no_others();
  if (call.answered()) co_return;
  const auto updated = co_await parts_.contacts.update(full->contact);
  if (!updated) co_return house::refuse(call, updated.error());
  if (!*updated) co_return not_there(call, "contact");
  write_full(call.answer_json(), *full);
}

awaitable<void> Api::remove_contact(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto view = co_await view_of(call, *domain);
  if (!view) co_return;
  if (const auto use = use_of_contact(**view, call.path("contact"), parts_.clock.now()); !use.empty())
    co_return call.refuse(409, fmt::format("the contact is asked by {}: take it out there first", use));
  const auto heartbeat = co_await parts_.heartbeats.first_that_asks(*domain, call.path("contact"), "");
  if (!heartbeat) co_return house::refuse(call, heartbeat.error());
  if (!heartbeat->empty())
    co_return call.refuse(409,
                          fmt::format("the contact is asked by heartbeat {}: change that first", *heartbeat));
  const auto removed = co_await parts_.contacts.remove(*domain, call.path("contact"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return not_there(call, "contact");
  call.response.status = 204;
}

awaitable<void> Api::add_method(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto full = co_await contact_of(call, *domain);
  if (!full) co_return;
  if (full->methods.size() >= kMostMethods)
    co_return call.refuse(400, fmt::format("a contact has at most {} methods", kMostMethods));
  auto body = call.json(kMethodExample);
  if (!body) co_return;
  JsonDocument document;
  const auto last = full->methods.empty() ? -1 : full->methods.back().order;
  const auto method = read_method(call, *document.parse(call.request.body),
                                  {.id = make_id('m'), .contact = full->contact.id, .order = last + 1});
  if (!method) co_return;
  const auto added = co_await parts_.contacts.add_method(*method);
  if (!added) co_return house::refuse(call, added.error());
  if (!*added) co_return not_there(call, "contact");
  write_method(call.answer_json(201), *method);
}

awaitable<void> Api::set_method(Call& call) {
  const auto named = co_await method_of(call);
  if (!named) co_return;
  auto body = call.json(kMethodExample);
  if (!body) co_return;
  JsonDocument document;
  const auto method = read_method(call, *document.parse(call.request.body), named->method);
  if (!method) co_return;
  const auto changed = co_await parts_.contacts.change_method(*method, named->method);
  if (!changed) co_return house::refuse(call, changed.error());
  if (!*changed)
    co_return call.refuse(409, "somebody else has just changed or removed the method: look at it again");
  write_method(call.answer_json(), *method);
}

awaitable<void> Api::remove_method(Call& call) {
  const auto named = co_await method_of(call);
  if (!named) co_return;
  const auto removed = co_await parts_.contacts.remove_method(named->contact.id, named->method.id);
  if (!removed) co_return house::refuse(call, removed.error());
  call.response.status = 204;
}

awaitable<void> Api::begin_verification(Call& call) {
  const auto named = co_await method_of(call);
  if (!named) co_return;
  const auto sent = co_await parts_.verification.begin(*named->domain, named->contact, named->method);
  if (!sent) co_return house::refuse(call, sent.error());
  if (!*sent) co_return call.refuse(429, kTooMany);
  JsonObjectWriter object(call.answer_json(202));
  object.string("outcome", name_of((*sent)->outcome));
  if (!(*sent)->detail.empty()) object.string("detail", (*sent)->detail);
}

awaitable<void> Api::confirm_verification(Call& call) {
  const auto named = co_await method_of(call);
  if (!named) co_return;
  auto body = call.json(R"({"code": "123456"})");
  if (!body) co_return;
  const auto code = body->text("code");
  body->no_others();
  if (call.answered()) co_return;
  const auto confirmed = co_await parts_.verification.confirm(named->method, code);
  if (!confirmed) co_return house::refuse(call, confirmed.error());
  switch (*confirmed) {
    case Confirmation::confirmed: {
      auto method = named->method;
      method.verified = true;
      co_return write_method(call.answer_json(), method);
    }
    case Confirmation::wrong: co_return call.refuse(400, "code: it is another one");
    case Confirmation::too_many: co_return call.refuse(429, "code: too many wrong ones; have another sent");
    case Confirmation::none: co_return call.refuse(400, "code: none is good at the moment; have one sent");
  }
}

awaitable<void> Api::test_method(Call& call) {
  const auto named = co_await method_of(call);
  if (!named) co_return;
  const auto tested = co_await parts_.verification.test(*named->domain, named->contact, named->method);
  if (!tested) co_return house::refuse(call, tested.error());
  if (!*tested) co_return call.refuse(429, kTooMany);
  const auto& [provider, sent] = **tested;
  JsonObjectWriter object(call.answer_json());
  object.string("outcome", name_of(sent.outcome));
  object.string("provider", provider);
  if (!sent.detail.empty()) object.string("detail", sent.detail);
  if (!sent.reference.empty()) object.string("reference", sent.reference);
}

awaitable<void> Api::list_contact_searches(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto contact = co_await parts_.contacts.find(*domain, call.path("contact"));
  if (!contact) co_return house::refuse(call, contact.error());
  if (!*contact) co_return not_there(call, "contact");
  co_await answer_list(call, (*contact)->id, *domain);
}

}  // namespace tabella::manhunt

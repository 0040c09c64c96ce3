// Searches: opened, shown, ended; dry runs and timelines.
#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/time_text.h"
#include "manhunt/api.h"
#include "manhunt/json.h"
#include "manhunt/wording.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using std::chrono::milliseconds;

namespace {

constexpr const char* kSearchExample =
    R"({"contact": "…", "metadata": {"summary": "Disk full on db1"}, "key": "disk db1", "urgency": "high", "wait": "5m", "repeat": 0})";
constexpr size_t kMostKey = 255;

const std::vector<net::Parameter> kListParameters = {{"status", "active, canceled, successful or failed"},
                                                     {"before", "opened before that moment"},
                                                     {"after", "opened after that moment"},
                                                     {"limit", "how many, 50 unless told"},
                                                     {"next", "what the page before gave"}};

std::optional<TimePoint> moment_in(net::Call& call, std::string_view name) {
  const auto text = call.text(name);
  if (text.empty()) return std::nullopt;
  const auto time = parse_time(text);
  if (!time) call.refuse(400, fmt::format("{}: expected a moment as in 2026-11-18T09:00:00Z", name));
  return time;
}

void write_step(std::string& out, const Step& step) {
  JsonObjectWriter object(out);
  object.number("round", int64_t{step.round});
  object.number("step", int64_t{step.number});
  object.string("started", time_text(time_at(step.started)));
  JsonArrayWriter tracks(object.key("contacts"));
  for (const auto& track : step.tracks) {
    JsonObjectWriter one(tracks.element());
    one.string("contact", track.contact);
    one.string("name", track.name);
    if (!track.schedule.empty()) one.string("schedule", track.schedule);
  }
}

void write_full_search(std::string& out, const FullSearch& full, bool with_links) {
  JsonObjectWriter object(out);
  write_search(object, full.search);
  {
    JsonArrayWriter steps(object.key("steps"));
    for (const auto& step : full.steps) write_step(steps.element(), step);
  }
  JsonArrayWriter attempts(object.key("attempts"));
  for (const auto& attempt : full.attempts) write_attempt(attempts.element(), attempt, with_links);
}

void write_entry(JsonObjectWriter& out, const TimelineEntry& entry, TimePoint begin) {
  out.string("attempt", entry.id.text());
  out.string("at", time_text(entry.at));
  const auto offset = std::chrono::duration_cast<milliseconds>(entry.at - begin);
  out.string("offset", duration_text(std::max(milliseconds{0}, offset)));
  out.string("contact", entry.contact);
  out.string("contact_name", entry.contact_name);
  if (!entry.schedule.empty()) out.string("schedule", entry.schedule);
  out.string("method", entry.method);
  out.string("type", name_of(entry.kind));
  out.string("destination", entry.destination);
  out.string("state", entry.made ? name_of(entry.made->state) : "planned");
  if (entry.bundled) out.string("bundled_until", time_text(*entry.bundled));
}

void write_said(JsonObjectWriter& out, const Occasion& occasion) {
  const auto said = say(occasion);
  out.string("subject", said.subject);
  out.string("text", said.text);
  if (!said.problem.empty()) out.string("problem", said.problem);
  JsonArrayWriter missing(out.key("missing"));
  for (const auto& name : said.missing) append_json_string(missing.element(), name);
}

}  // namespace

void Api::add_search_routes(Routes& routes) {
  const std::string searches = "/manhunt/{domain}/searches";
  auto open = domain_route("POST", searches, "Searches for a contact, or for whoever a policy leads to",
                           kSearchExample);
  routes.add(std::move(open), &Api::open_search);
  auto list = domain_route("GET", searches, "Lists the domain's searches, newest first");
  list.query = kListParameters;
  routes.add(std::move(list), &Api::list_searches);
  auto by_policy = domain_route("GET", "/manhunt/{domain}/policies/{policy}/searches",
                                "Lists a policy's searches, newest first");
  by_policy.query = kListParameters;
  routes.add(std::move(by_policy), &Api::list_policy_searches);
  const auto search = searches + "/{search}";
  routes.add(domain_route("GET", search, "Shows a search with its attempts"), &Api::show_search);
  routes.add(domain_route("POST", search + "/respond", "Answers a search for the person",
                          R"({"answer": "accept", "attempt": "a01.01.01.01", "by": "Ann"})"),
             &Api::respond);
  auto cancel = domain_route("POST", search + "/cancel", "Ends a search", R"({"reason": "a false alarm"})");
  cancel.body_is_optional = true;
  routes.add(std::move(cancel), &Api::cancel_search);
  routes.add(domain_route("POST", search + "/resolve",
                          "Says that what it was for is over: ends it, and frees its key"),
             &Api::resolve_search);
  auto drawn = domain_route("GET", search + "/timeline", "Shows who was asked, and who will be");
  drawn.query = {{"draw", "json, text or svg"}};
  routes.add(std::move(drawn), &Api::timeline);
  auto dry =
      domain_route("POST", "/manhunt/{domain}/dry-run",
                   "Shows what a search would send, when and to whom; nothing is sent", kSearchExample);
  dry.query = {{"draw", "json, text or svg"}};
  routes.add(std::move(dry), &Api::dry_run);
}

awaitable<std::optional<OpenRequest>> Api::read_open_request(Call& call, const std::string& domain) {
  auto body = call.json(kSearchExample);
  if (!body) co_return std::nullopt;
  OpenRequest request{.domain = domain,
                      .contact = body->text("contact", ""),
                      .policy = body->text("policy", ""),
                      .key = body->text("key", ""),
                      .language = body->text("language", "")};
  const auto urgency = body->text("urgency", "high");
  request.low_urgency = urgency == "low";
  if (urgency != "low" && urgency != "high") call.refuse(400, "urgency: expected high or low");
  if (const auto wait = body->text("wait", ""); !wait.empty()) {
    const auto time = parse_duration(wait);
    if (!time || time->count() < 1 || *time > kLongestWait)
      call.refuse(400, "wait: expected a time as in 5m, up to 30d");
    request.wait = time.value_or(request.wait);
    if (!request.policy.empty()) call.refuse(400, "wait: a policy has its own");
  }
  request.repeat = body->number("repeat", 0, 0, kMostRepeats);
  if (request.repeat > 0 && !request.policy.empty()) call.refuse(400, "repeat: a policy has its own");
  if (const auto metadata = body->any("metadata")) {
    if (!metadata->is_object()) call.refuse(400, "metadata: expected an object");
    request.metadata = metadata_json(*metadata);
    if (request.metadata.size() > kMostMetadata)
      call.refuse(400, fmt::format("metadata: at most {} bytes", kMostMetadata));
  }
  if (request.key.size() > kMostKey || printable(request.key) != request.key)
    call.refuse(400, fmt::format("key: at most {} bytes without control characters", kMostKey));
  if (!request.language.empty() && !problem_with_name("language", request.language).empty())
    call.refuse(400, problem_with_name("language", request.language));
  body->no_others();
  if (call.answered()) co_return std::nullopt;
  co_return request;
}

awaitable<void> Api::open_search(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto request = co_await read_open_request(call, *domain);
  if (!request) co_return;
  const auto opened = co_await parts_.searches.open(std::move(*request));
  if (!opened) co_return house::refuse(call, opened.error());
  JsonObjectWriter object(call.answer_json(opened->fresh ? 201 : 200));
  write_search(object, opened->search);
}

awaitable<void> Api::answer_list(Call& call, std::string list, const std::string& domain) {
  SearchList request{
      .list = std::move(list), .limit = call.number("limit", 50, 1, 1000), .from = call.text("next")};
  if (const auto status = call.text("status"); !status.empty()) {
    request.status = status_named(status);
    if (!request.status) call.refuse(400, "status: expected active, canceled, successful or failed");
  }
  request.before = moment_in(call, "before");
  request.after = moment_in(call, "after");
  if (call.answered()) co_return;
  const auto page = co_await parts_.searches.list(std::move(request));
  if (!page) co_return house::refuse(call, page.error());
  JsonObjectWriter object(call.answer_json());
  {
    JsonArrayWriter all(object.key("searches"));
    for (const auto& search : page->searches) {
      if (search.domain != domain) continue;
      JsonObjectWriter one(all.element());
      write_search(one, search);
    }
  }
  if (!page->next.empty()) object.string("next", page->next);
}

awaitable<void> Api::list_searches(Call& call) {
  const auto domain = co_await reader(call);
  if (domain) co_await answer_list(call, domain_list(*domain), *domain);
}

awaitable<void> Api::list_policy_searches(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  const auto policy = name_in(call, "policy");
  if (policy) co_await answer_list(call, policy_list(*domain, *policy), *domain);
}

awaitable<std::optional<FullSearch>> Api::search_of(Call& call, const std::string& domain) {
  auto full = co_await parts_.searches.find_full(call.path("search"));
  if (!full) {
    house::refuse(call, full.error());
    co_return std::nullopt;
  }
  if (*full && (*full)->search.domain == domain) co_return std::move(*full);
  not_there(call, "search");
  co_return std::nullopt;
}

awaitable<void> Api::show_search(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  if (const auto full = co_await search_of(call, *domain))
    write_full_search(call.answer_json(), *full, may_write(call));
}

awaitable<void> Api::answer_ended(Call& call, store::Result<std::optional<Ended>> ended) {
  if (!ended) co_return house::refuse(call, ended.error());
  if (!*ended) co_return not_there(call, "search");
  const auto& search = (*ended)->search;
  if (!(*ended)->won)
    co_return call.refuse(409, fmt::format("the search has ended already: it is {} ({})",
                                           name_of(search.status), printable(search.resolution.how)));
  JsonObjectWriter object(call.answer_json());
  write_search(object, search);
}

awaitable<void> Api::cancel_search(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto full = co_await search_of(call, *domain);
  if (!full) co_return;
  std::string reason;
  if (!call.request.body.empty()) {
    auto body = call.json(R"({"reason": "a false alarm"})");
    if (!body) co_return;
    reason = body->text("reason", "");
    body->no_others();
    if (reason.size() > 1000) call.refuse(400, "reason: at most 1000 bytes");
    if (call.answered()) co_return;
  }
  auto ended = co_await parts_.searches.end(full->search.id, Status::canceled,
                                            {.how = "canceled", .by = call.caller.name, .detail = reason});
  co_await answer_ended(call, std::move(ended));
}

awaitable<void> Api::resolve_search(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto full = co_await search_of(call, *domain);
  if (!full) co_return;
  const auto resolved = co_await parts_.searches.resolve(std::move(full->search), call.caller.name);
  if (!resolved) co_return house::refuse(call, resolved.error());
  if (!*resolved) co_return not_there(call, "search");
  JsonObjectWriter object(call.answer_json());
  write_search(object, **resolved);
}

awaitable<void> Api::respond(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  const auto full = co_await search_of(call, *domain);
  if (!full) co_return;
  auto body = call.json(R"({"answer": "accept", "attempt": "a01.01.01.01", "by": "Ann"})");
  if (!body) co_return;
  const auto answer = body->text("answer");
  const auto attempt = body->text("attempt", "");
  Answer given{.accept = answer == "accept", .how = "api", .by = body->text("by", "")};
  body->no_others();
  if (answer != "accept" && answer != "decline") call.refuse(400, "answer: expected accept or decline");
  if (given.by.size() > 200) call.refuse(400, "by: at most 200 bytes");
  if (!attempt.empty()) {
    given.attempt = AttemptId::parse(attempt);
    const bool there = given.attempt && std::ranges::find(full->attempts, *given.attempt, &Attempt::id) !=
                                            full->attempts.end();
    if (!there) call.refuse(400, "attempt: the search has none of that id");
  }
  if (call.answered()) co_return;
  auto ended = co_await parts_.searches.answer(full->search.id, std::move(given));
  co_await answer_ended(call, std::move(ended));
}

awaitable<void> Api::dry_run(Call& call) {
  const auto domain = co_await writer(call);
  if (!domain) co_return;
  auto request = co_await read_open_request(call, *domain);
  if (!request) co_return;
  auto search = co_await parts_.searches.draft(std::move(*request));
  if (!search) co_return house::refuse(call, search.error());
  FullSearch full{.search = std::move(*search)};
  full.search.id = "dry-run";
  co_await answer_timeline(call, full, true);
}

awaitable<void> Api::timeline(Call& call) {
  const auto domain = co_await reader(call);
  if (!domain) co_return;
  if (const auto full = co_await search_of(call, *domain)) co_await answer_timeline(call, *full, false);
}

awaitable<void> Api::answer_timeline(Call& call, const FullSearch& full, bool with_texts) {
  const auto draw = call.text("draw", "json");
  if (draw != "json" && draw != "text" && draw != "svg")
    co_return call.refuse(400, "draw: expected json, text or svg");
  const auto domain = co_await parts_.domains.find(full.search.domain);
  if (!domain) co_return house::refuse(call, domain.error());
  auto ids = contacts_of(full.search, **domain);
  for (const auto& step : full.steps)
    for (const auto& track : step.tracks)
      if (std::ranges::find(ids, track.contact) == ids.end()) ids.push_back(track.contact);
  const auto directory = co_await load_contacts(parts_.contacts, full.search.domain, std::move(ids));
  if (!directory) co_return house::refuse(call, directory.error());
  std::vector<Method> methods;
  for (const auto& [id, contact] : *directory)
    methods.insert(methods.end(), contact.methods.begin(), contact.methods.end());
  const auto used = co_await parts_.bundles.used(methods);
  if (!used) co_return house::refuse(call, used.error());
  // There may be thousands of attempts in it, each with its text.
  co_await parts_.long_work.run([&] {
    write_timeline(call, full, **domain, *directory, *used, with_texts);
    return true;
  });
}

void Api::write_timeline(Call& call, const FullSearch& full, const Domain& domain, const Directory& directory,
                         const UsedLimits& used, bool with_texts) const {
  const auto draw = call.text("draw", "json");
  const auto now = parts_.clock.now();
  const auto line = timeline_of(full, domain, directory, now, used);
  if (draw == "text") {
    call.response.content_type = "text/plain; charset=utf-8";
    call.response.body = draw_text(line, full.search, now);
    return;
  }
  if (draw == "svg") {
    call.response.content_type = "image/svg+xml";
    call.response.add_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    call.response.add_header("X-Content-Type-Options", "nosniff");
    call.response.body = draw_svg(line, full.search, now);
    return;
  }
  JsonObjectWriter object(call.answer_json());
  object.string("begins", time_text(line.begins));
  {
    JsonArrayWriter entries(object.key("timeline"));
    for (const auto& entry : line.entries) {
      JsonObjectWriter one(entries.element());
      write_entry(one, entry, line.begins);
      if (const auto contact = directory.find(entry.contact); !entry.made && contact != directory.end())
        write_said(one, {.domain = domain,
                         .search = full.search,
                         .contact = contact->second.contact,
                         .kind = entry.kind,
                         .link = with_texts ? "https://…" : "",
                         .code = "CODE",
                         .replies = parts_.sender.takes_replies(entry.kind)});
    }
  }
  if (full.search.status == Status::active) object.string("ends", time_text(line.ends));
  object.string("status", name_of(full.search.status));
  if (!full.search.resolution.how.empty()) object.string("how", full.search.resolution.how);
}

}  // namespace tabella::manhunt

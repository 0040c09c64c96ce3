// A user's own messages: the feed, the counts, and what is done with them.
#include <algorithm>

#include <fmt/format.h>

#include "base/time_text.h"
#include "inbox/api.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

constexpr int64_t kMostInPage = 100;
constexpr size_t kMostIds = 50;
constexpr std::chrono::milliseconds kLongestSnooze = std::chrono::days{365};
constexpr const char* kIdsExample = R"({"ids": ["…"]})";
constexpr const char* kReadExample =
    R"({"ids": ["…"]} | {"all": true, "category": "orders"} | {"until": "2026-11-18T09:00:00Z"})";
constexpr const char* kSnoozeExample =
    R"({"ids": ["…"], "for": "2h"} | {"ids": ["…"], "until": "2026-11-18T09:00:00Z"})";

constexpr std::pair<std::string_view, Show> kShows[] = {{"active", Show::active},
                                                        {"unread", Show::unread},
                                                        {"read", Show::read},
                                                        {"archived", Show::archived},
                                                        {"snoozed", Show::snoozed}};

void write_page(std::string& out, const FeedPage& page) {
  JsonObjectWriter object(out);
  {
    JsonArrayWriter list(object.key("messages"));
    for (const auto& entry : page.entries) write_entry(list.element(), entry);
  }
  if (!page.next.empty()) object.string("next", page.next);
  write_marks(object.key("marks"), page.marks, page.sequence);
  object.string("sequence", sequence_text(page.sequence));
}

// With lengths: whatever a part is, it is not taken for two.
std::string name_of_page(const Box& box, const FeedRequest& request) {
  const auto partition = box.partition();
  return fmt::format("{}:{}{}:{}{}/{}/{}", partition.size(), partition, request.before.size(), request.before,
                     request.limit, static_cast<int>(request.show),
                     request.category ? "=" + *request.category : "");
}

FeedRequest read_feed_request(net::Call& call, int64_t limit) {
  FeedRequest request{.limit = static_cast<size_t>(limit), .before = call.text("next")};
  if (!request.before.empty() && !is_message_id(request.before))
    call.refuse(400, "next: expected what the page before had as next");
  const auto show = call.text("show", "active");
  const auto* found = std::ranges::find(kShows, show, &std::pair<std::string_view, Show>::first);
  if (found == std::end(kShows))
    call.refuse(400, "show: expected active, unread, read, archived or snoozed");
  else
    request.show = found->second;
  if (const auto category = call.text("category"); !category.empty()) request.category = category;
  return request;
}

std::vector<std::string> read_ids(net::Call& call, net::JsonBody& body) {
  auto ids = body.texts("ids");
  if (ids.empty() || ids.size() > kMostIds)
    call.refuse(400, fmt::format("ids: expected 1 to {} of them", kMostIds));
  if (std::ranges::any_of(ids, [](const auto& id) { return !is_message_id(id); }))
    call.refuse(400, "ids: expected ids of messages");
  return ids;
}

void answer_changed(net::Call& call, const std::vector<std::string>& ids) {
  JsonObjectWriter object(call.answer_json());
  JsonArrayWriter list(object.key("ids"));
  for (const auto& id : ids) append_json_string(list.element(), id);
}

net::Route feed_route(std::string path, std::string summary) {
  auto route = user_route("GET", std::move(path), std::move(summary));
  route.query = {{"next", "where to go on: what the page before had as next"},
                 {"show", "active (the default), unread, read, archived or snoozed"},
                 {"category", "only those of it"},
                 {"user", "whose, where the caller may read everybody's"}};
  return route;
}

}  // namespace

void Api::add_message_routes(Routes& routes) {
  const std::string at = "/inbox/{tenant}/{inbox}/";
  const auto put = [&](const char* what, const char* summary, const char* body,
                       boost::asio::awaitable<void> (Api::*handler)(net::Call&)) {
    auto route = user_route("PUT", at + "messages/" + what, summary);
    route.body = body;
    route.query = {{"user", "whose, where the caller may change everybody's"}};
    routes.add(std::move(route), handler);
  };
  routes.add(feed_route(at + "messages/last/{limit}", "Lists the last messages, the newest first"),
             &Api::last_messages);
  auto list = feed_route(at + "messages", "The same, with ?limit=");
  list.query.push_back({"limit", "how many at most; 20"});
  routes.add(std::move(list), &Api::list_messages);
  auto counts = user_route("GET", at + "counts", "Counts messages, in all and by category, exactly");
  counts.query = {{"user", "whose, where the caller may read everybody's"}};
  routes.add(std::move(counts), &Api::show_counts);
  put("read", "Marks messages as read: some, all, or all up to a time", kReadExample, &Api::mark_read);
  put("unread", "Marks messages as unread again", kIdsExample, &Api::mark_unread);
  put("seen", "Marks everything so far as seen", "", &Api::mark_seen);
  put("archive", "Takes messages out of the feed", kIdsExample, &Api::archive);
  put("unarchive", "Puts them back", kIdsExample, &Api::unarchive);
  put("snooze", "Takes messages out of the feed for a while", kSnoozeExample, &Api::snooze);
  put("unsnooze", "Brings them back at once", kIdsExample, &Api::bring_back);
}

awaitable<void> Api::answer_feed(Call& call, Box box, FeedRequest request) {
  auto key = name_of_page(box, request);
  const auto known = pages_.find(key);
  if (known) request.known = known->known;
  const auto page = co_await parts_.boxes.feed(std::move(box), std::move(request));
  if (!page) co_return house::refuse(call, page.error());
  size_t bytes = page->is_known ? known->json.size() : 0;
  for (const auto& entry : page->entries) bytes += entry.message->row.bytes().size();
  if (!call.count_memory(bytes)) co_return;
  if (page->is_known) {
    call.answer_json().append(known->json);
    co_return;
  }
  auto& answer = call.answer_json();
  write_page(answer, *page);
  pages_.keep(std::move(key),
              std::make_shared<const AnsweredPage>(
                  AnsweredPage{.known = {.sequence = page->sequence, .until = page->until}, .json = answer}),
              answer.size());
}

awaitable<void> Api::last_messages(Call& call) {
  auto box = co_await box_of(call);
  if (!box) co_return;
  const auto& limit = call.path("limit");
  int64_t number = 0;
  for (const char c : limit)
    number = c >= '0' && c <= '9' && number <= kMostInPage ? number * 10 + (c - '0') : kMostInPage + 1;
  if (number < 1 || number > kMostInPage)
    co_return call.refuse(400, fmt::format("the number of messages is from 1 to {}", kMostInPage));
  auto request = read_feed_request(call, number);
  if (call.answered()) co_return;
  co_await answer_feed(call, std::move(*box), std::move(request));
}

awaitable<void> Api::list_messages(Call& call) {
  auto box = co_await box_of(call);
  if (!box) co_return;
  auto request = read_feed_request(call, call.number("limit", 20, 1, kMostInPage));
  if (call.answered()) co_return;
  co_await answer_feed(call, std::move(*box), std::move(request));
}

awaitable<void> Api::show_counts(Call& call) {
  auto box = co_await box_of(call);
  if (!box) co_return;
  const auto counts = co_await parts_.boxes.counts(std::move(*box));
  if (!counts) co_return house::refuse(call, counts.error());
  write_counts(call.answer_json(), *counts);
}

awaitable<void> Api::change(Call& call, Boxes::Change change) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  auto body = call.json(kIdsExample);
  if (!body) co_return;
  auto ids = read_ids(call, *body);
  body->no_others();
  if (call.answered()) co_return;
  const auto found = co_await parts_.boxes.change(*box, std::move(ids), std::move(change));
  if (!found) co_return house::refuse(call, found.error());
  parts_.news.tell(box->partition());
  answer_changed(call, *found);
}

awaitable<void> Api::mark_read(Call& call) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  auto body = call.json(kReadExample);
  if (!body) co_return;
  const auto now = epoch_milliseconds(parts_.clock.now());
  if (body->any("ids")) {
    auto ids = read_ids(call, *body);
    body->no_others();
    if (call.answered()) co_return;
    const auto found = co_await parts_.boxes.change(*box, std::move(ids), [now](State& state, int64_t) {
      if (!state.read_at) state.read_at = now;
    });
    if (!found) co_return house::refuse(call, found.error());
    parts_.news.tell(box->partition());
    co_return answer_changed(call, *found);
  }
  const auto until_text = body->text("until", "");
  const auto until = until_text.empty() ? std::optional<TimePoint>() : parse_time(until_text);
  const bool all = body->flag("all", false);
  const auto category = body->text("category", "");
  body->no_others();
  if (!until_text.empty() && !until) call.refuse(400, "until: expected a time as in 2026-11-18T09:00:00Z");
  if (!category.empty())
    if (const auto problem = problem_with_category(category); !problem.empty()) call.refuse(400, problem);
  if (all == until.has_value() || (until && !category.empty()))
    call.refuse(400, fmt::format("expected {}", kReadExample));
  if (call.answered()) co_return;
  const auto marked = until ? co_await parts_.boxes.mark_read_until(*box, *until)
                            : co_await parts_.boxes.mark_read(
                                  *box, category.empty() ? std::nullopt : std::optional(category));
  if (!marked) co_return house::refuse(call, marked.error());
  parts_.news.tell(box->partition());
  call.answer_json() = "{}";
}

awaitable<void> Api::mark_unread(Call& call) {
  return change(call, [](State& state, int64_t sequence) {
    state.read_at.reset();
    state.unread_at = sequence;
  });
}

awaitable<void> Api::archive(Call& call) {
  const auto now = epoch_milliseconds(parts_.clock.now());
  return change(call, [now](State& state, int64_t) {
    if (!state.archived_at) state.archived_at = now;
  });
}

awaitable<void> Api::unarchive(Call& call) {
  return change(call, [](State& state, int64_t) { state.archived_at.reset(); });
}

awaitable<void> Api::bring_back(Call& call) { return change(call, unsnooze); }

awaitable<void> Api::mark_seen(Call& call) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  const auto marked = co_await parts_.boxes.mark_seen(*box);
  if (!marked) co_return house::refuse(call, marked.error());
  parts_.news.tell(box->partition());
  call.answer_json() = "{}";
}

awaitable<void> Api::snooze(Call& call) {
  const auto box = co_await box_of(call);
  if (!box) co_return;
  auto body = call.json(kSnoozeExample);
  if (!body) co_return;
  auto ids = read_ids(call, *body);
  const auto now = parts_.clock.now();
  const auto until_text = body->text("until", "");
  auto until =
      until_text.empty()
          ? std::optional(now + (call.answered() ? kLongestSnooze : body->duration("for", kLongestSnooze)))
          : parse_time(until_text);
  body->no_others();
  if (!until || *until <= now || *until > now + kLongestSnooze)
    call.refuse(400, "until: expected a time to come, within a year");
  if (call.answered()) co_return;
  const auto found = co_await parts_.snoozes.snooze(*box, std::move(ids), *until);
  if (!found) co_return house::refuse(call, found.error());
  parts_.news.tell(box->partition());
  answer_changed(call, *found);
}

}  // namespace tabella::inbox

#include "journal/api.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/time_text.h"
#include "journal/event_json.h"
#include "journal/replay.h"
#include "store/time_slice.h"

namespace tabella::journal {

using boost::asio::awaitable;

namespace {

constexpr int64_t kMostEntities = 1000;
constexpr int64_t kMostWithEvents = 100;

// What stands in a path where otherwise an entity does.
constexpr std::array<std::string_view, 5> kPathWords = {"all", "tags", "slices", "consumers", "entities"};

std::optional<uint64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || read != end || number < 0) return std::nullopt;
  return static_cast<uint64_t>(number);
}

}  // namespace

void Api::add_routes(Routes routes) {
  routes.add({"GET", "/journal", "journal:read", "Lists the journals that have events"}, &Api::list_journals);
  routes.add({"GET",
              "/journal/{journal}/entities",
              "journal:read",
              "Lists the entities of a journal, in no order",
              {},
              {{"limit", "at most so many (100; at most 1000, with events 100)"},
               {"from", "the next of the page before"},
               {"events", "with the last event of each"}}},
             &Api::list_entities);
  add_order_routes(routes);
  add_consumer_routes(routes);
  add_event_routes(routes);
  add_snapshot_routes(routes);
}

void Api::stop() {
  stopping_ = true;
  parts_.watch.stop();
}

std::optional<std::string> Api::journal_of(Call& call) const {
  const auto& name = call.path("journal");
  if (name == "-") return parts_.journal_name;
  if (const auto problem = problem_with_journal(name); !problem.empty()) {
    call.refuse(400, problem);
    return std::nullopt;
  }
  return name;
}

std::optional<Entity> Api::entity_of(Call& call) const {
  auto journal = journal_of(call);
  if (!journal) return std::nullopt;
  const auto& pid = call.path("pid");
  if (std::ranges::find(kPathWords, pid) != kPathWords.end()) {
    call.refuse(400,
                fmt::format("'{}' is a path of its own here, and cannot be an entity's id over HTTP", pid));
    return std::nullopt;
  }
  // Clients take them for steps in the path, and some requests would be for something else.
  if (pid == "." || pid == "..") {
    call.refuse(400, fmt::format("'{}' cannot be an entity's id over HTTP", pid));
    return std::nullopt;
  }
  if (const auto problem = problem_with_pid(pid); !problem.empty()) {
    call.refuse(400, problem);
    return std::nullopt;
  }
  return Entity{.journal = std::move(*journal), .pid = pid};
}

awaitable<void> Api::list_journals(Call& call) {
  const auto journals = co_await parts_.journal.heads().journals();
  if (!journals) co_return house::refuse(call, journals.error());
  std::string list;
  {
    JsonArrayWriter array(list);
    for (const auto& name : *journals) {
      const auto last = co_await parts_.order.last(name);
      if (!last) co_return house::refuse(call, last.error());
      JsonObjectWriter one(array.element());
      one.string("name", name);
      one.number("last_position", static_cast<int64_t>(*last));
    }
  }
  JsonObjectWriter(call.answer_json()).key("journals").append(list);
}

store::Async<std::optional<Event>> Api::last_event(Entity entity, const Head& head) const {
  if (head.highest <= head.deleted_to) co_return std::nullopt;
  auto replay = parts_.journal.replay(std::move(entity), {.from = head.highest, .to = head.highest});
  TABELLA_CO_ASSIGN(auto events, co_await replay.next());
  if (events.empty()) co_return std::nullopt;
  co_return std::move(events.front());
}

awaitable<void> Api::list_entities(Call& call) {
  const auto journal = journal_of(call);
  const bool events = call.flag("events");
  const auto limit = call.number("limit", 100, 1, events ? kMostWithEvents : kMostEntities);
  if (call.answered()) co_return;
  auto page = co_await parts_.journal.heads().list(*journal, static_cast<size_t>(limit), call.text("from"));
  if (!page && page.error().code == store::ErrorCode::validation)
    co_return call.refuse(400, "this page cannot be gone on from: begin anew");
  if (!page) co_return house::refuse(call, page.error());
  store::TimeSlice slice;
  std::string list;
  {
    JsonArrayWriter array(list);
    for (const auto& [entity, head] : page->entities) {
      std::optional<Event> last;
      if (events) {
        auto found = co_await last_event(entity, head);
        if (!found) co_return house::refuse(call, found.error());
        last = std::move(*found);
      }
      if (last && !call.count_memory(list.size() + json_size(*last))) co_return;
      JsonObjectWriter one(array.element());
      one.string("pid", entity.pid);
      one.number("lowest", static_cast<int64_t>(head.deleted_to + 1));
      one.number("highest", static_cast<int64_t>(head.highest));
      one.number("epoch", static_cast<int64_t>(head.epoch));
      if (head.highest > 0) one.string("time", time_text(head.time));
      if (last) append_event_json(one.key("last_event"), *last);
      if (list.size() > kMaxPage && &entity != &page->entities.back().entity) {
        page->next = Heads::next_after(entity);
        break;
      }
      co_await slice.yield_if_over();
    }
  }
  JsonObjectWriter answer(call.answer_json());
  answer.key("entities").append(list);
  if (page->next.empty())
    answer.key("next").append("null");
  else
    answer.string("next", page->next);
}

bool wants_lines(net::Call& call) {
  const auto format = call.text("format");
  if (!format.empty() && format != "ndjson" && format != "json")
    call.refuse(400, "format: expected json or ndjson");
  if (!format.empty()) return format == "ndjson";
  return lower(call.request.header("accept")).contains("application/x-ndjson");
}

Direction direction_of(net::Call& call) {
  const auto word = call.text("direction", "forward");
  if (word != "forward" && word != "backward") call.refuse(400, "direction: expected forward or backward");
  return word == "backward" ? Direction::backward : Direction::forward;
}

std::optional<uint64_t> path_number(net::Call& call, std::string_view name) {
  const auto number = whole_number(call.path(name));
  if (!number) call.refuse(400, fmt::format("{}: expected a whole number from 0 on", name));
  return number;
}

std::optional<uint64_t> resume_after(net::Call& call, std::string_view name) {
  const auto last = net::last_event_id(call);
  const auto given = last.empty() ? call.text(name) : last;
  if (given.empty()) return std::nullopt;
  const auto number = whole_number(given);
  if (!number)
    call.refuse(400,
                fmt::format("{}: expected a whole number from 0 on", last.empty() ? name : "Last-Event-ID"));
  return number;
}

}  // namespace tabella::journal

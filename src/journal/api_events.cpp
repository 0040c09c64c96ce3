// The events of one entity: appended, read, followed, deleted, confirmed.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "journal/api.h"
#include "journal/event_json.h"
#include "journal/replay.h"
#include "store/time_slice.h"

namespace tabella::journal {

using boost::asio::awaitable;

namespace {

// A body that takes longer to be read than others should wait for.
constexpr size_t kLongBody = 128 * 1024;
constexpr size_t kMostConfirmations = 100;
constexpr size_t kMaxConfirmation = 256;

void answer_conflict(net::Call& call, const Conflict& conflict) {
  std::string_view kind;
  std::string sentence;
  switch (conflict.kind) {
    case Conflict::Kind::version:
      kind = "version";
      sentence = fmt::format(
          "the last event is {}, not the expected one: read what is new, decide again and append with "
          "expected {}",
          conflict.actual, conflict.actual);
      break;
    case Conflict::Kind::epoch:
      kind = "epoch";
      sentence = fmt::format(
          "another writer has taken this entity over with epoch {}: this one is to stop, or take a new epoch",
          conflict.actual);
      break;
    case Conflict::Kind::batch:
      kind = "batch";
      sentence = fmt::format(
          "this batch id was used for another append, of {} events: use an id of its own for each",
          conflict.actual);
      break;
  }
  JsonObjectWriter answer(call.answer_json(409));
  answer.string("error", sentence);
  answer.string("conflict", kind);
  answer.number("actual", static_cast<int64_t>(conflict.actual));
}

// A page that begins at its first number reads no more rows than it shows.
Range first_window(Range range, size_t limit) {
  if (range.direction == Direction::forward && range.to >= range.from && limit - 1 < range.to - range.from)
    range.to = range.from + limit - 1;
  return range;
}

// What is left of a range behind a number that was read, or looked at; nothing: it was all.
std::optional<Range> rest_of(Range range, const Extent& extent, uint64_t seen) {
  if (range.direction == Direction::forward) {
    range.from = std::max(seen + 1, extent.lowest);
    range.to = std::min(range.to, extent.highest);
  } else {
    range.from = std::max(range.from, extent.lowest);
    range.to = std::min(seen - 1, extent.highest);
  }
  if (range.from > range.to || range.to == 0) return std::nullopt;
  return range;
}

}  // namespace

void Api::add_event_routes(Routes& routes) {
  routes.add({"GET", "/journal/{journal}/{pid}", "journal:read",
              "Shows the lowest and the highest number of an entity's events, and its writer's epoch"},
             &Api::show_entity);
  routes.add(
      {.method = "POST",
       .path = "/journal/{journal}/{pid}/events",
       .scope = "journal:write",
       .summary = "Appends events, all or none; 409: not what was expected. A body that is not JSON is "
                  "one event, with the parameters of the query",
       .query = {{"expected", "any, none, or the number of the last event (any)"},
                 {"epoch", "the writer's epoch"},
                 {"batch", "the same one twice gives the first answer"},
                 {"ttl", "how long it is kept, as in 30d"},
                 {"type", "what the event is called"},
                 {"tag", "its tags, with commas between them"},
                 {"id", "the event's id"}},
       .body = R"({"events": [{"type": "Opened", "data": {"owner": "ann"}, "tags": ["accounts"]}],)"
               R"( "expected": "none"})",
       .max_body = kMaxAppendBody},
      &Api::append);
  routes.add({"GET",
              "/journal/{journal}/{pid}/events",
              "journal:read",
              "Reads events in their order, or the last first; as lines of JSON without a limit",
              {},
              {{"from", "the first number (1)"},
               {"to", "the last number"},
               {"limit", "at most so many (100; as ndjson all)"},
               {"direction", "forward or backward"},
               {"format", "json or ndjson, as Accept: application/x-ndjson"}}},
             &Api::read_events);
  routes.add({.method = "GET",
              .path = "/journal/{journal}/{pid}/events/live",
              .scope = "journal:read",
              .summary = "Tells of events as they are appended; goes on behind Last-Event-ID",
              .query = {{"from", "the first number; without it what comes from now on"}},
              .answer = "text/event-stream"},
             &Api::follow_events);
  routes.add({"DELETE",
              "/journal/{journal}/{pid}/events",
              "journal:write",
              "Deletes all events up to a number; the highest number stays what it is",
              {},
              {{"to", "the last one that goes"}, {"permanently", "remove their rows, too"}}},
             &Api::delete_events);
  routes.add({.method = "POST",
              .path = "/journal/{journal}/{pid}/events/{number}/confirmations",
              .scope = "journal:write",
              .summary = "Notes by whom an event was confirmed",
              .body = R"({"by": ["channel-1"]})"},
             &Api::confirm);
  routes.add({"POST", "/journal/{journal}/{pid}/epoch", "journal:write",
              "Gives a new writer its epoch; appends of those before it are refused from then on"},
             &Api::take_epoch);
}

awaitable<void> Api::show_entity(Call& call) {
  const auto entity = entity_of(call);
  if (!entity) co_return;
  const auto extent = co_await parts_.journal.extent(*entity);
  if (!extent) co_return house::refuse(call, extent.error());
  if (extent->highest == 0 && extent->epoch == 0)
    co_return call.refuse(404, "there never was an event of it");
  JsonObjectWriter answer(call.answer_json());
  answer.number("lowest", static_cast<int64_t>(extent->lowest));
  answer.number("highest", static_cast<int64_t>(extent->highest));
  answer.number("epoch", static_cast<int64_t>(extent->epoch));
}

awaitable<void> Api::append(Call& call) {
  auto entity = entity_of(call);
  const auto body = call.request.body;
  if (!entity || !call.count_memory(2 * body.size())) co_return;
  const auto read = [&] {
    return is_described(call.request) ? read_append(std::move(*entity), call)
                                      : read_raw_append(std::move(*entity), call);
  };
  auto request = body.size() > kLongBody ? co_await parts_.long_work.run(read) : read();
  if (!request) co_return call.refuse(request.error().status, request.error().message);
  const auto outcome = co_await parts_.journal.append(std::move(*request));
  if (!outcome) co_return house::refuse(call, outcome.error());
  if (const auto* conflict = std::get_if<Conflict>(&*outcome)) {
    ++parts_.counts.conflicts;
    co_return answer_conflict(call, *conflict);
  }
  const auto& appended = std::get<Appended>(*outcome);
  ++(appended.repeated ? parts_.counts.repeated_appends : parts_.counts.appends);
  if (!appended.repeated) parts_.counts.events_appended += appended.last - appended.first + 1;
  JsonObjectWriter answer(call.answer_json(appended.repeated ? 200 : 201));
  answer.number("first", static_cast<int64_t>(appended.first));
  answer.number("last", static_cast<int64_t>(appended.last));
  answer.boolean("repeated", appended.repeated);
}

awaitable<void> Api::read_events(Call& call) {
  auto entity = entity_of(call);
  const Range range{.from = static_cast<uint64_t>(call.number("from", 1, 0, kLastNumber)),
                    .to = static_cast<uint64_t>(call.number("to", kLastNumber, 0, kLastNumber)),
                    .direction = direction_of(call)};
  const bool lines = wants_lines(call);
  const auto limit = static_cast<size_t>(
      call.number("limit", lines ? kLastNumber : 100, 1, lines ? kLastNumber : kMostInPage));
  if (call.answered()) co_return;
  const Range from_one{
      .from = std::max<uint64_t>(range.from, 1), .to = range.to, .direction = range.direction};
  if (lines) co_return co_await answer_history(call, std::move(*entity), from_one, limit);
  co_await answer_page(call, std::move(*entity), from_one, limit);
}

awaitable<void> Api::answer_page(Call& call, Entity entity, Range range, size_t limit) {
  std::string list;
  size_t count = 0;
  Extent extent;
  std::optional<Range> left;
  store::TimeSlice slice;
  {
    JsonArrayWriter array(list);
    for (auto window = first_window(range, limit);; window = *left) {
      // Where the numbers of the first window are deleted, a second one begins behind them.
      auto replay = parts_.journal.replay(entity, window);
      uint64_t seen = window.direction == Direction::forward ? window.to : window.from;
      bool full = false;
      while (!full) {
        const auto events = co_await replay.next();
        if (!events) co_return house::refuse(call, events.error());
        if (events->empty()) break;
        for (const auto& event : *events) {
          if (full) break;
          if (!call.count_memory(list.size() + json_size(event))) co_return;
          append_event_json(array.element(), event);
          full = ++count == limit || list.size() > kMaxPage;
          if (full) seen = event.number();
          co_await slice.yield_if_over();
        }
      }
      extent = replay.extent();
      left = rest_of(range, extent, seen);
      if (full || !left || window.to == range.to) break;
    }
  }
  parts_.counts.events_read += count;
  JsonObjectWriter answer(call.answer_json());
  answer.key("events").append(list);
  answer.number("lowest", static_cast<int64_t>(extent.lowest));
  answer.number("highest", static_cast<int64_t>(extent.highest));
  answer.number("epoch", static_cast<int64_t>(extent.epoch));
  if (left)
    answer.number("next",
                  static_cast<int64_t>(range.direction == Direction::forward ? left->from : left->to));
  else
    answer.key("next").append("null");
}

namespace {

// A history on its way to a client.
struct History {
  Entity entity;
  Replay replay;
  std::vector<Event> events;  // the next ones
  size_t left;
  Counts& counts;
};

awaitable<bool> write_history(net::LineWriter& lines, std::shared_ptr<History> history) {
  store::TimeSlice slice;
  while (!history->events.empty() && history->left > 0) {
    if (history->events.size() > history->left)
      history->events.erase(history->events.begin() + static_cast<std::ptrdiff_t>(history->left),
                            history->events.end());
    for (auto& each : history->events) {
      {
        const auto event = std::move(each);  // goes before it is waited for the client
        append_event_json(lines.line(), event);
      }
      if (!co_await lines.end_line()) co_return false;
      co_await slice.yield_if_over();
    }
    history->counts.events_read += history->events.size();
    history->left -= history->events.size();
    if (history->left == 0) break;
    auto next = co_await history->replay.next();
    if (!next) {
      log::error("the history of {} in {} ends early: {}", history->entity.pid, history->entity.journal,
                 next.error().message);
      co_return false;
    }
    history->events = std::move(*next);
  }
  co_return true;
}

}  // namespace

// What is wrong from the beginning is still answered with a status.
awaitable<void> Api::answer_history(Call& call, Entity entity, Range range, size_t limit) {
  auto history = std::make_shared<History>(History{.entity = entity,
                                                   .replay = parts_.journal.replay(entity, range),
                                                   .events = {},
                                                   .left = limit,
                                                   .counts = parts_.counts});
  auto first = co_await history->replay.next();
  if (!first) co_return house::refuse(call, first.error());
  history->events = std::move(*first);
  net::answer_lines(call, [history](net::LineWriter& lines) { return write_history(lines, history); });
}

awaitable<void> Api::follow_events(Call& call) {
  auto entity = entity_of(call);
  if (!entity) co_return;
  // Last-Event-ID is what the client has; ?from= what it wants first.
  const bool resumes = !net::last_event_id(call).empty();
  const auto given = resume_after(call, "from");
  if (call.answered()) co_return;
  uint64_t from = 0;
  if (given) {
    from = resumes ? *given + 1 : std::max<uint64_t>(*given, 1);
  } else {
    const auto extent = co_await parts_.journal.extent(*entity);
    if (!extent) co_return house::refuse(call, extent.error());
    from = extent->highest + 1;
  }
  net::answer_events(call, [this, entity = std::move(*entity), from](net::EventStream& stream) {
    return tell_events(stream, entity, from);
  });
}

awaitable<void> Api::tell_events(net::EventStream& stream, Entity entity, uint64_t from) {
  const LiveReader counted(parts_.counts);
  store::TimeSlice slice;
  std::string json;
  while (!stream.ended() && !stopping_) {
    auto replay = parts_.journal.replay(entity, {.from = from});
    while (!stream.ended()) {
      const auto events = co_await replay.next();
      // The client comes again, and goes on where it was.
      if (!events)
        co_return log::warning("events of {} cannot be told of: {}", entity.pid, events.error().message);
      if (events->empty()) break;
      for (const auto& event : *events) {
        json.clear();
        append_event_json(json, event);
        if (!co_await stream.send(std::to_string(event.number()), "", json)) co_return;
        from = event.number() + 1;
      }
      parts_.counts.events_read += events->size();
      co_await slice.yield_if_over();
    }
    // Those that were not told of are deleted or have expired, and are no news.
    from = std::max(from, replay.extent().highest + 1);
    co_await slice.yield_if_over();
    if (!co_await stream.keep_alive() || stream.ended() || stopping_) co_return;
    co_await parts_.watch.wait_for_event(entity, from - 1, kLiveWait);
  }
}

awaitable<void> Api::delete_events(Call& call) {
  auto entity = entity_of(call);
  if (!call.target.has("to")) call.refuse(400, "to is missing: the number of the last event that is to go");
  const auto to = call.number("to", 0, 1, kLastNumber);
  const bool permanently = call.flag("permanently");
  if (call.answered()) co_return;
  const auto deleted =
      co_await parts_.journal.delete_to(std::move(*entity), static_cast<uint64_t>(to), permanently);
  if (!deleted) co_return house::refuse(call, deleted.error());
  JsonObjectWriter(call.answer_json()).number("deleted_to", static_cast<int64_t>(*deleted));
}

awaitable<void> Api::confirm(Call& call) {
  auto entity = entity_of(call);
  const auto number = path_number(call, "number");
  auto body = call.json(R"({"by": ["channel-1"]})");
  if (call.answered()) co_return;
  auto by = body->texts("by");
  body->no_others();
  if (call.answered()) co_return;
  if (by.empty() || by.size() > kMostConfirmations)
    co_return call.refuse(400, fmt::format("by: expected from 1 to {} names", kMostConfirmations));
  for (const auto& name : by) {
    const auto good = check_text("by: a name", name, kMaxConfirmation);
    if (!good) co_return call.refuse(400, good.error().message);
    if (name.empty()) co_return call.refuse(400, "by: a name has a character at least");
  }
  // Those who confirm at the same moment may be some more; they are not more and more.
  auto replay = parts_.journal.replay(*entity, {.from = *number, .to = *number, .skip_holes = true});
  const auto found = co_await replay.next();
  if (!found) co_return house::refuse(call, found.error());
  if (found->empty()) co_return call.refuse(404, "there is no such event");
  const auto before = found->front().confirmations();
  std::set<std::string_view> together(before.begin(), before.end());
  together.insert(by.begin(), by.end());
  if (together.size() > std::max(kMostConfirmations, before.size()))
    co_return call.refuse(400, fmt::format("an event has at most {} confirmations, and this one has {}",
                                           kMostConfirmations, before.size()));
  const auto confirmed = co_await parts_.journal.confirm(std::move(*entity), *number, std::move(by));
  if (!confirmed) co_return house::refuse(call, confirmed.error());
  if (!*confirmed) co_return call.refuse(404, "there is no such event");
  call.answer_json() = "{}";
}

awaitable<void> Api::take_epoch(Call& call) {
  auto entity = entity_of(call);
  if (!entity) co_return;
  const auto epoch = co_await parts_.journal.take_epoch(std::move(*entity));
  if (!epoch) co_return house::refuse(call, epoch.error());
  JsonObjectWriter(call.answer_json()).number("epoch", static_cast<int64_t>(*epoch));
}

}  // namespace tabella::journal

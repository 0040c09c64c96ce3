// All events of a journal in their one order, those with a tag, and those of some slices.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "journal/api.h"
#include "journal/event_json.h"
#include "store/time_slice.h"

namespace tabella::journal {

using boost::asio::awaitable;

namespace {

constexpr size_t kAtOnce = 500;
// A client that reads slowly holds so much.
constexpr size_t kBytesAtOnce = 512 * 1024;
// A page that finds few of many says where it has come to, rather than going on.
constexpr std::chrono::seconds kLongestPage{2};

const std::vector<net::Parameter> kOrderQuery = {
    {"after", "the position to go on behind (0)"},
    {"before", "backward: the position to go on before; without it the end"},
    {"limit", "at most so many (100; as ndjson all)"},
    {"direction", "forward or backward"},
    {"format", "json or ndjson, as Accept: application/x-ndjson"}};

// "0-255"
bool read_slices(std::string_view text, Filter& filter) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  const auto read = [](std::string_view digits, int& into) {
    const auto* end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, into);
    return error == std::errc{} && at == end && into >= 0 && into < kSlices;
  };
  return read(text.substr(0, dash), filter.first_slice) && read(text.substr(dash + 1), filter.last_slice) &&
         filter.first_slice <= filter.last_slice;
}

// Whether a page is the last one of what was there when its reading began.
bool is_at_end(const OrderPage& page, Direction direction) {
  return direction == Direction::forward ? page.position >= page.last : page.position <= 1;
}

}  // namespace

void Api::add_order_routes(Routes& routes) {
  struct Selection {
    std::string path;
    std::string summary;
    std::string live_summary;
  };
  const std::vector<Selection> selections = {
      {"/journal/{journal}/all", "Reads all events of a journal, by their positions",
       "Tells of all events of a journal as they come; goes on behind Last-Event-ID"},
      {"/journal/{journal}/tags/{tag}", "Reads the events with a tag, by their positions",
       "Tells of events with a tag as they come; goes on behind Last-Event-ID"},
      {"/journal/{journal}/slices/{slices}",
       "Reads the events of the entities in some of the 1024 slices, as in 0-255, by their positions",
       "Tells of the events of some slices as they come; goes on behind Last-Event-ID"}};
  for (const auto& selection : selections) {
    routes.add({"GET", selection.path, "journal:read", selection.summary, {}, kOrderQuery}, &Api::read_order);
    routes.add({.method = "GET",
                .path = selection.path + "/live",
                .scope = "journal:read",
                .summary = selection.live_summary,
                .query = {{"after", "the position to go on behind; without it what comes from now on"}},
                .answer = "text/event-stream"},
               &Api::follow_order);
  }
}

std::optional<Api::OrderRequest> Api::order_of(Call& call) const {
  auto journal = journal_of(call);
  if (!journal) return std::nullopt;
  OrderRequest request{.journal = std::move(*journal), .filter = {}};
  const auto& selection = call.target.segments[2];  // /journal/{journal}/tags/{tag}
  if (selection == "tags") {
    request.filter.tag = call.path("tag");
    if (const auto problem = problem_with_tag(request.filter.tag); !problem.empty()) {
      call.refuse(400, problem);
      return std::nullopt;
    }
  }
  if (selection == "slices" && !read_slices(call.path("slices"), request.filter)) {
    call.refuse(400, fmt::format("expected slices from 0 to {}, as in 0-255", kSlices - 1));
    return std::nullopt;
  }
  return request;
}

store::Async<OrderPage> Api::read_page(const OrderRequest& request, uint64_t from, Direction direction,
                                       size_t limit) const {
  if (direction == Direction::forward)
    return parts_.order.read(request.journal, from, limit, request.filter, kBytesAtOnce);
  return parts_.order.read_backward(request.journal, from, limit, request.filter, kBytesAtOnce);
}

awaitable<void> Api::read_order(Call& call) {
  auto request = order_of(call);
  const auto direction = direction_of(call);
  const bool forward = direction == Direction::forward;
  if (call.target.has(forward ? "before" : "after"))
    call.refuse(400, forward ? "before is for direction=backward; forward it is after"
                             : "after is for direction=forward; backward it is before");
  const auto from = static_cast<uint64_t>(forward ? call.number("after", 0, 0, kLastNumber)
                                                  : call.number("before", kLastNumber, 1, kLastNumber));
  const bool lines = wants_lines(call);
  const auto limit = static_cast<size_t>(
      call.number("limit", lines ? kLastNumber : 100, 1, lines ? kLastNumber : kMostInPage));
  if (call.answered()) co_return;
  if (lines) co_return co_await answer_order(call, std::move(*request), from, direction, limit);
  co_await answer_order_page(call, std::move(*request), from, direction, limit);
}

awaitable<void> Api::answer_order_page(Call& call, OrderRequest request, uint64_t from, Direction direction,
                                       size_t limit) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestPage;
  store::TimeSlice slice;
  std::string list;
  size_t count = 0;
  uint64_t position = from;
  uint64_t last = 0;
  {
    JsonArrayWriter array(list);
    while (count < limit && list.size() <= kMaxPage) {
      const auto page = co_await read_page(request, position, direction, std::min(limit - count, kAtOnce));
      if (!page) co_return house::refuse(call, page.error());
      last = page->last;
      position = page->position;
      for (const auto& placed : page->events) {
        if (!call.count_memory(list.size() + json_size(placed.event))) co_return;
        append_event_json(array.element(), placed);
        ++count;
        if (list.size() > kMaxPage) {
          position = placed.position;
          break;
        }
        co_await slice.yield_if_over();
      }
      if (list.size() > kMaxPage) break;
      if (is_at_end(*page, direction) || std::chrono::steady_clock::now() > deadline) break;
    }
  }
  parts_.counts.events_read += count;
  JsonObjectWriter answer(call.answer_json());
  answer.key("events").append(list);
  answer.number("position", static_cast<int64_t>(position));
  answer.number("last", static_cast<int64_t>(last));
}

// What is wrong from the beginning is still answered with a status.
awaitable<void> Api::answer_order(Call& call, OrderRequest request, uint64_t from, Direction direction,
                                  size_t limit) {
  auto first = co_await read_page(request, from, direction, std::min(limit, kAtOnce));
  if (!first) co_return house::refuse(call, first.error());
  auto page = std::make_shared<OrderPage>(std::move(*first));
  net::answer_lines(call,
                    [this, request = std::move(request), page, direction, limit](net::LineWriter& lines) {
                      return write_order(lines, request, std::move(*page), direction, limit);
                    });
}

awaitable<bool> Api::write_order(net::LineWriter& lines, OrderRequest request, OrderPage page,
                                 Direction direction, size_t limit) {
  store::TimeSlice slice;
  // What comes meanwhile is for the next request: otherwise there might be no end.
  const auto end = page.last;
  while (true) {
    for (auto& each : page.events) {
      {
        const auto placed = std::move(each);  // goes before it is waited for the client
        append_event_json(lines.line(), placed);
      }
      if (!co_await lines.end_line()) co_return false;
      co_await slice.yield_if_over();
    }
    parts_.counts.events_read += page.events.size();
    limit -= std::min(limit, page.events.size());
    page.last = end;
    if (limit == 0 || is_at_end(page, direction)) co_return true;
    auto next = co_await read_page(request, page.position, direction, std::min(limit, kAtOnce));
    if (!next) {
      log::error("the events of {} end early: {}", request.journal, next.error().message);
      co_return false;
    }
    page = std::move(*next);
  }
}

awaitable<void> Api::follow_order(Call& call) {
  auto request = order_of(call);
  if (!request) co_return;
  auto after = resume_after(call, "after");
  if (call.answered()) co_return;
  if (!after) {
    const auto last = co_await parts_.order.last(request->journal);
    if (!last) co_return house::refuse(call, last.error());
    after = *last;
  }
  net::answer_events(call, [this, request = std::move(*request), position = *after](
                               net::EventStream& stream) { return tell_order(stream, request, position); });
}

awaitable<void> Api::tell_order(net::EventStream& stream, OrderRequest request, uint64_t position) {
  const LiveReader counted(parts_.counts);
  store::TimeSlice slice;
  std::string json;
  while (!stream.ended() && !stopping_) {
    auto page = co_await parts_.order.read(request.journal, position, kAtOnce, request.filter, kBytesAtOnce);
    // The client comes again, and goes on where it was.
    if (!page)
      co_return log::warning("events of {} cannot be told of: {}", request.journal, page.error().message);
    for (auto& each : page->events) {
      json.clear();
      const auto id = std::to_string(each.position);
      {
        const auto placed = std::move(each);
        append_event_json(json, placed);
      }
      if (!co_await stream.send(id, "", json)) co_return;
      co_await slice.yield_if_over();
    }
    parts_.counts.events_read += page->events.size();
    position = std::max(position, page->position);
    co_await slice.yield_if_over();
    if (position < page->last) continue;
    if (!co_await stream.keep_alive() || stream.ended() || stopping_) co_return;
    co_await parts_.watch.wait_for_position(request.journal, position, kLiveWait);
  }
}

}  // namespace tabella::journal

// Named readers of a journal's order.
#include <algorithm>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time_text.h"
#include "journal/api.h"
#include "journal/event_json.h"

namespace tabella::journal {

using boost::asio::awaitable;
using std::chrono::milliseconds;

namespace {

constexpr size_t kMaxName = 128;
constexpr int64_t kMostToConsumer = 1000;
constexpr milliseconds kShortestLease{1'000};
constexpr milliseconds kLongestLease{3'600'000};
constexpr milliseconds kLongestWait{60'000};
// Whoever waits for a part that somebody else holds looks so often whether it was given back: by which
// process nobody knows.
constexpr milliseconds kLookForParts{500};
// More than any position.
constexpr uint64_t kNoPosition = uint64_t{1} << 63;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && printable(text) == text;
}

// A member of the body, "30s" or seconds; answers 400 if it is not between the two.
milliseconds time_of(net::Call& call, net::JsonBody& body, std::string_view name, std::string_view otherwise,
                     milliseconds least, milliseconds most) {
  std::string text(otherwise);
  if (const auto given = body.any(name))
    text = given->is_number()                         ? given->number_text()
           : given->kind() == JsonValue::Kind::string ? std::string(given->string())
                                                      : "";
  const auto time = parse_duration(text);
  if (time && *time >= least && *time <= most) return *time;
  call.refuse(400, fmt::format("{}: expected seconds, or a time as in 30s, from {} to {}", name,
                               duration_text(least), duration_text(most)));
  return least;
}

void write_consumer(JsonObjectWriter& out, const Consumer& consumer) {
  out.string("name", consumer.name);
  if (!consumer.tag.empty()) out.string("tag", consumer.tag);
  out.string("created", time_text(consumer.created));
}

// A part that somebody holds, or held.
void write_part(std::string& out, const ConsumerPart& part) {
  JsonObjectWriter one(out);
  one.number("part", static_cast<int64_t>(part.part));
  one.number("checkpoint", static_cast<int64_t>(part.checkpoint));
  if (!part.holder.empty()) one.string("holder", part.holder);
  if (part.until) one.string("until", time_text(*part.until));
  one.number("lag", static_cast<int64_t>(part.lag));
}

// The part that is furthest behind.
uint64_t lag_of(const std::vector<ConsumerPart>& parts) {
  uint64_t lag = 0;
  for (const auto& part : parts) lag = std::max(lag, part.lag);
  return lag;
}

// What a consumer is to be. No body, as it is with all that is usual.
struct ToCreate {
  std::string tag;
  int parts = 1;
  uint64_t from = 0;
  bool from_end = false;
};

ToCreate read_to_create(net::Call& call) {
  ToCreate wanted;
  if (call.request.body.empty()) return wanted;
  auto body = call.json(R"({"from": "start"|"end"|N, "tag": "…", "parts": 1})");
  if (!body) return wanted;
  wanted.tag = body->text("tag", "");
  wanted.parts = static_cast<int>(body->number("parts", 1, 1, Consumers::kMostParts));
  const auto from = body->any("from");
  if (from && from->kind() == JsonValue::Kind::string) {
    wanted.from_end = from->string() == "end";
    if (!wanted.from_end && from->string() != "start")
      call.refuse(400, "from: expected start, end or a position");
  } else {
    wanted.from = static_cast<uint64_t>(body->number("from", 0, 0, kLastNumber));
  }
  body->no_others();
  if (!wanted.tag.empty())
    if (const auto problem = problem_with_tag(wanted.tag); !problem.empty()) call.refuse(400, problem);
  return wanted;
}

std::string description_of(const std::string& tag, int parts) {
  return fmt::format("{} with {} part{}", tag.empty() ? "of all events" : fmt::format("of the tag {}", tag),
                     parts, parts == 1 ? "" : "s");
}

void answer_moved(net::Call& call, const store::Result<std::optional<Refused>>& refused) {
  if (!refused) return house::refuse(call, refused.error());
  if (!*refused) {
    call.answer_json() = "{}";
    return;
  }
  switch (**refused) {
    case Refused::no_consumer: return call.refuse(404, "there is no such consumer");
    case Refused::lease_lost:
    case Refused::all_held:
      return call.refuse(409, "the lease has ended, and somebody else may have it: read again");
    case Refused::beyond:
      return call.refuse(409,
                         "so far no events were handed out: acknowledge the position that came with them");
  }
}

}  // namespace

void Api::add_consumer_routes(Routes& routes) {
  const std::string consumers = "/journal/{journal}/consumers";
  const std::string one = consumers + "/{name}";
  routes.add(
      {"GET", consumers, "journal:read", "Lists the consumers of a journal, and how far each is behind"},
      &Api::list_consumers);
  routes.add(
      {.method = "PUT",
       .path = one,
       .scope = "journal:write",
       .summary =
           "Makes a consumer: a reader that remembers how far it is. 200: there was one already, which "
           "stays where it is; 409: with another tag or number of parts",
       .body = R"({"from": "start", "tag": "accounts", "parts": 1})",
       .body_is_optional = true},
      &Api::create_consumer);
  routes.add({"GET", one, "journal:read", "Shows a consumer, its parts, who holds them, and its lag"},
             &Api::show_consumer);
  routes.add({"DELETE", one, "journal:write", "Forgets a consumer"}, &Api::delete_consumer);
  routes.add({.method = "POST",
              .path = one + "/read",
              .scope = "journal:write",
              .summary = "Hands out the next events of a part that nobody else holds; 409: others hold all",
              .body = R"({"holder": "worker-1", "limit": 100, "lease": "30s", "wait": "10s"})"},
             &Api::read_consumer);
  routes.add({.method = "POST",
              .path = one + "/acknowledge",
              .scope = "journal:write",
              .summary = "Moves the checkpoint: all events up to a position are done. Once all are that were "
                         "handed out, the part is given back unless it is to be kept",
              .body = R"({"lease": "…", "position": 17, "keep": false})"},
             &Api::acknowledge);
  routes.add({.method = "POST",
              .path = one + "/release",
              .scope = "journal:write",
              .summary = "Gives a part back before its lease ends",
              .body = R"({"lease": "…"})"},
             &Api::release);
  routes.add({.method = "POST",
              .path = one + "/move",
              .scope = "journal:write",
              .summary = "Moves all checkpoints to a position, back or forward; leases are lost",
              .body = R"({"position": 0})"},
             &Api::move_consumer);
}

std::optional<std::string> Api::consumer_of(Call& call) const {
  const auto& name = call.path("name");
  if (is_name(name)) return name;
  call.refuse(400,
              fmt::format("the name of a consumer has from 1 to {} bytes of UTF-8 without control characters",
                          kMaxName));
  return std::nullopt;
}

awaitable<void> Api::list_consumers(Call& call) {
  const auto journal = journal_of(call);
  if (!journal) co_return;
  const auto consumers = co_await parts_.consumers.list(*journal);
  if (!consumers) co_return house::refuse(call, consumers.error());
  std::string list;
  {
    JsonArrayWriter array(list);
    for (const auto& consumer : *consumers) {
      const auto parts = co_await parts_.consumers.parts(consumer);
      if (!parts) co_return house::refuse(call, parts.error());
      JsonObjectWriter one(array.element());
      write_consumer(one, consumer);
      one.number("parts", static_cast<int64_t>(consumer.parts));
      one.number("lag", static_cast<int64_t>(lag_of(*parts)));
    }
  }
  JsonObjectWriter(call.answer_json()).key("consumers").append(list);
}

awaitable<void> Api::create_consumer(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  auto wanted = read_to_create(call);
  if (call.answered()) co_return;
  if (wanted.from_end) {
    const auto last = co_await parts_.order.last(*journal);
    if (!last) co_return house::refuse(call, last.error());
    wanted.from = *last;
  }
  const Consumer consumer{.journal = *journal,
                          .name = *name,
                          .tag = wanted.tag,
                          .parts = wanted.parts,
                          .created = parts_.clock.now()};
  const auto made = co_await parts_.consumers.create(consumer, wanted.from);
  if (!made) co_return house::refuse(call, made.error());
  const auto found = co_await parts_.consumers.find(*journal, *name);
  if (!found) co_return house::refuse(call, found.error());
  if (!*found) co_return call.refuse(409, "somebody else removes this consumer: try again");
  if ((*found)->tag != wanted.tag || (*found)->parts != wanted.parts)
    co_return call.refuse(
        409, fmt::format("there is a consumer of this name already, {}, and not {}: DELETE it first",
                         description_of((*found)->tag, (*found)->parts),
                         description_of(wanted.tag, wanted.parts)));
  co_await answer_consumer(call, *made ? 201 : 200, **found);
}

awaitable<void> Api::show_consumer(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  if (call.answered()) co_return;
  const auto consumer = co_await parts_.consumers.find(*journal, *name);
  if (!consumer) co_return house::refuse(call, consumer.error());
  if (!*consumer) co_return call.refuse(404, "there is no such consumer");
  co_await answer_consumer(call, 200, **consumer);
}

awaitable<void> Api::answer_consumer(Call& call, int status, Consumer consumer) {
  const auto parts = co_await parts_.consumers.parts(consumer);
  if (!parts) co_return house::refuse(call, parts.error());
  JsonObjectWriter answer(call.answer_json(status));
  write_consumer(answer, consumer);
  answer.number("lag", static_cast<int64_t>(lag_of(*parts)));
  JsonArrayWriter list(answer.key("parts"));
  for (const auto& part : *parts) write_part(list.element(), part);
}

awaitable<void> Api::delete_consumer(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  if (call.answered()) co_return;
  const auto removed = co_await parts_.consumers.remove(*journal, *name);
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return call.refuse(404, "there is no such consumer");
  call.answer_json() = "{}";
}

store::Async<std::variant<Delivery, Refused>> Api::read_or_wait(Consumer consumer, std::string holder,
                                                                size_t limit, milliseconds lease,
                                                                milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  const LiveReader counted(parts_.counts);
  while (true) {
    TABELLA_CO_ASSIGN(auto read,
                      co_await parts_.consumers.read(consumer.journal, consumer.name, holder, limit, lease));
    const auto* delivery = std::get_if<Delivery>(&read);
    const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    const bool come_to_nothing =
        delivery ? delivery->events.empty() : std::get<Refused>(read) == Refused::all_held;
    if (!come_to_nothing || stopping_ || left <= milliseconds{0}) co_return read;
    const bool for_a_part = !delivery || delivery->some_held;
    co_await parts_.watch.wait_for_position(consumer.journal, delivery ? delivery->last : kNoPosition,
                                            for_a_part ? std::min(left, kLookForParts) : left);
  }
}

awaitable<void> Api::read_consumer(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  auto body = call.json(R"({"holder": "worker-1", "limit": 100, "lease": "30s", "wait": "10s"})");
  if (call.answered()) co_return;
  const auto holder = body->text("holder");
  const auto limit = static_cast<size_t>(body->number("limit", 100, 1, kMostToConsumer));
  const auto lease = time_of(call, *body, "lease", "30s", kShortestLease, kLongestLease);
  const auto wait = time_of(call, *body, "wait", "0", milliseconds{0}, kLongestWait);
  body->no_others();
  if (!call.answered() && !is_name(holder))
    call.refuse(
        400, fmt::format("holder: expected a name of 1 to {} bytes, another one for each process", kMaxName));
  if (call.answered()) co_return;
  const auto read = co_await read_or_wait({.journal = *journal, .name = *name}, holder, limit, lease, wait);
  if (!read) co_return house::refuse(call, read.error());
  if (const auto* refused = std::get_if<Refused>(&*read)) {
    if (*refused == Refused::no_consumer)
      co_return call.refuse(404, "there is no such consumer: PUT makes one");
    co_return co_await refuse_read(call, {.journal = *journal, .name = *name});
  }
  const auto& delivery = std::get<Delivery>(*read);
  std::string list;
  {
    JsonArrayWriter array(list);
    for (const auto& placed : delivery.events) {
      if (!call.count_memory(list.size() + json_size(placed.event))) co_return;
      append_event_json(array.element(), placed);
    }
  }
  parts_.counts.events_read += delivery.events.size();
  JsonObjectWriter answer(call.answer_json());
  // Without events no part is held.
  if (!delivery.lease.empty()) {
    answer.number("part", static_cast<int64_t>(delivery.part));
    answer.string("lease", delivery.lease);
  }
  answer.key("events").append(list);
  answer.number("position", static_cast<int64_t>(delivery.position));
}

// Says who holds its parts, and until when.
awaitable<void> Api::refuse_read(Call& call, Consumer consumer) {
  const auto found = co_await parts_.consumers.find(consumer.journal, consumer.name);
  if (!found) co_return house::refuse(call, found.error());
  if (!*found) co_return call.refuse(404, "there is no such consumer");
  const auto parts = co_await parts_.consumers.parts(**found);
  if (!parts) co_return house::refuse(call, parts.error());
  call.response.add_header("Retry-After", "1");
  JsonObjectWriter answer(call.answer_json(409));
  answer.string("error", "others hold all parts of this consumer: try again when a lease has ended");
  JsonArrayWriter held(answer.key("held_by"));
  for (const auto& part : *parts) {
    if (part.holder.empty()) continue;
    JsonObjectWriter one(held.element());
    one.number("part", static_cast<int64_t>(part.part));
    one.string("holder", part.holder);
    if (part.until) one.string("until", time_text(*part.until));
  }
}

awaitable<void> Api::acknowledge(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  auto body = call.json(R"({"lease": "…", "position": 17, "keep": false})");
  if (call.answered()) co_return;
  const auto lease = body->text("lease");
  if (!body->any("position")) call.refuse(400, "position is missing");
  const auto position = body->number("position", 0, 0, kLastNumber);
  const bool keep = body->flag("keep", false);
  body->no_others();
  if (call.answered()) co_return;
  answer_moved(call, co_await parts_.consumers.acknowledge(*journal, *name, lease,
                                                           static_cast<uint64_t>(position), keep));
}

awaitable<void> Api::release(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  auto body = call.json(R"({"lease": "…"})");
  if (call.answered()) co_return;
  const auto lease = body->text("lease");
  body->no_others();
  if (call.answered()) co_return;
  const auto refused = co_await parts_.consumers.release(*journal, *name, lease);
  if (refused && *refused == Refused::lease_lost)
    co_return call.refuse(409, "this lease has ended already: there is nothing to give back");
  answer_moved(call, refused);
}

awaitable<void> Api::move_consumer(Call& call) {
  const auto journal = journal_of(call);
  const auto name = consumer_of(call);
  auto body = call.json(R"({"position": 0})");
  if (call.answered()) co_return;
  if (!body->any("position")) call.refuse(400, "position is missing");
  const auto position = body->number("position", 0, 0, kLastNumber);
  body->no_others();
  if (call.answered()) co_return;
  const auto moved = co_await parts_.consumers.move_to(*journal, *name, static_cast<uint64_t>(position));
  if (!moved) co_return house::refuse(call, moved.error());
  if (!*moved) co_return call.refuse(404, "there is no such consumer");
  call.answer_json() = "{}";
}

}  // namespace tabella::journal

// Snapshots of an entity.
#include <fmt/format.h>

#include "base/json.h"
#include "journal/api.h"
#include "journal/event_json.h"

namespace tabella::journal {

using boost::asio::awaitable;

namespace {

constexpr size_t kMaxSnapshotBody = kMaxEvent * 2;  // base64 and escapes take more

SnapshotRange range_of(net::Call& call) {
  return {.from = static_cast<uint64_t>(call.number("from", 0, 0, kLastNumber)),
          .to = static_cast<uint64_t>(call.number("to", kLastNumber, 0, kLastNumber))};
}

}  // namespace

void Api::add_snapshot_routes(Routes& routes) {
  const std::vector<net::Parameter> range = {{"from", "the lowest number (0)"}, {"to", "the highest number"}};
  auto listing = range;
  listing.push_back({"limit", "at most so many (100)"});
  routes.add({"GET",
              "/journal/{journal}/{pid}/snapshots",
              "journal:read",
              "Lists snapshots without what is in them, the newest first",
              {},
              listing},
             &Api::list_snapshots);
  routes.add({"GET",
              "/journal/{journal}/{pid}/snapshots/newest",
              "journal:read",
              "The newest snapshot, to which events behind its number are to be applied",
              {},
              range},
             &Api::newest_snapshot);
  routes.add({"GET", "/journal/{journal}/{pid}/snapshots/{number}", "journal:read", "A snapshot"},
             &Api::show_snapshot);
  routes.add(
      {.method = "PUT",
       .path = "/journal/{journal}/{pid}/snapshots/{number}",
       .scope = "journal:write",
       .summary = "Keeps a snapshot in which all events up to a number are. A body that is not JSON is "
                  "kept as it is",
       .body = R"({"data": {"balance": 120}})",
       .max_body = kMaxSnapshotBody},
      &Api::save_snapshot);
  routes.add(
      {"DELETE", "/journal/{journal}/{pid}/snapshots", "journal:write", "Deletes snapshots", {}, range},
      &Api::delete_snapshots);
}

awaitable<void> Api::list_snapshots(Call& call) {
  auto entity = entity_of(call);
  const auto range = range_of(call);
  const auto limit = call.number("limit", 100, 1, 1000);
  if (call.answered()) co_return;
  const auto found = co_await parts_.snapshots.list(std::move(*entity), range, static_cast<size_t>(limit));
  if (!found) co_return house::refuse(call, found.error());
  JsonObjectWriter answer(call.answer_json());
  JsonArrayWriter list(answer.key("snapshots"));
  for (const auto& snapshot : *found) append_snapshot_json(list.element(), snapshot, WithPayload::no);
}

awaitable<void> Api::newest_snapshot(Call& call) {
  auto entity = entity_of(call);
  const auto range = range_of(call);
  if (call.answered()) co_return;
  co_await answer_snapshot(call, std::move(*entity), range);
}

awaitable<void> Api::show_snapshot(Call& call) {
  auto entity = entity_of(call);
  const auto number = path_number(call, "number");
  if (call.answered()) co_return;
  co_await answer_snapshot(call, std::move(*entity), {.from = *number, .to = *number});
}

awaitable<void> Api::answer_snapshot(Call& call, Entity entity, SnapshotRange range) {
  const auto found = co_await parts_.snapshots.newest(std::move(entity), range);
  if (!found) co_return house::refuse(call, found.error());
  if (!*found) co_return call.refuse(404, "there is no such snapshot");
  if (!call.count_memory(2 * (*found)->payload.size())) co_return;
  append_snapshot_json(call.answer_json(), **found, WithPayload::yes);
}

awaitable<void> Api::save_snapshot(Call& call) {
  const auto entity = entity_of(call);
  const auto number = path_number(call, "number");
  if (number && *number == 0)
    call.refuse(400, "number: a snapshot has the number of the last event that is in it, from 1 on");
  if (call.answered()) co_return;
  const auto body = call.request.body;
  auto snapshot = is_described(call.request) ? read_snapshot(body) : read_raw_snapshot(body);
  if (!snapshot) co_return call.refuse(snapshot.error().status, snapshot.error().message);
  // One of events that do not exist yet would hide them once they do.
  const auto extent = co_await parts_.journal.extent(*entity);
  if (!extent) co_return house::refuse(call, extent.error());
  if (*number > extent->highest)
    co_return call.refuse(
        409, fmt::format("there is no event {} of it: the last one is {}", *number, extent->highest));
  snapshot->number = *number;
  snapshot->time = parts_.clock.now();
  const auto saved = co_await parts_.snapshots.save(*entity, std::move(*snapshot));
  if (!saved) co_return house::refuse(call, saved.error());
  JsonObjectWriter(call.answer_json()).number("number", static_cast<int64_t>(*number));
}

awaitable<void> Api::delete_snapshots(Call& call) {
  auto entity = entity_of(call);
  if (!call.target.has("from") && !call.target.has("to"))
    call.refuse(400, "from and to are missing: say which snapshots are to go; ?from=0 is all of them");
  const auto range = range_of(call);
  if (call.answered()) co_return;
  const auto removed = co_await parts_.snapshots.remove(std::move(*entity), range);
  if (!removed) co_return house::refuse(call, removed.error());
  JsonObjectWriter(call.answer_json()).number("deleted", static_cast<int64_t>(*removed));
}

}  // namespace tabella::journal

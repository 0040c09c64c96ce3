// A user's messages as they come, by server-sent events.
#include <boost/asio/this_coro.hpp>

#include "inbox/api.h"

namespace tabella::inbox {

using boost::asio::awaitable;

namespace {

// Messages expire without anybody doing anything: so often the counts are looked at all the same.
constexpr std::chrono::seconds kLookAgain{15};
// Then a client comes back, and shows again who it is; with a token when that ends.
constexpr std::chrono::hours kLongestStream{1};

}  // namespace

void Api::add_live_routes(Routes& routes) {
  auto route = user_route("GET", "/inbox/{tenant}/{inbox}/live",
                          "Sends messages and counts as they change; goes on behind Last-Event-ID");
  route.answer = "text/event-stream";
  route.query = {{"last-event-id", "where to go on: a page's sequence, or the id of an event"},
                 {"user", "whose, where the caller may read everybody's"}};
  routes.add(std::move(route), &Api::live);
}

awaitable<void> Api::live(Call& call) {
  auto until = parts_.clock.now() + kLongestStream;
  auto box = co_await box_of(call, &until);
  if (!box) co_return;
  const auto last = net::last_event_id(call);
  const auto since = parse_sequence(last);
  if (!last.empty() && !since) co_return call.refuse(400, "Last-Event-ID: expected the id of an event");
  net::answer_events(call, [this, box = std::move(*box), since, until](net::EventStream& stream) {
    return tell(stream, box, since, until);
  });
}

awaitable<void> Api::tell(net::EventStream& stream, Box box, std::optional<Mark> since, TimePoint until) {
  const auto subscription = parts_.news.subscribe(co_await boost::asio::this_coro::executor,
                                                  {box.partition(), public_box(box.place).partition()});
  Told told{.was_away = since.has_value()};
  if (!since) {
    const auto now = co_await parts_.boxes.sequence_of(box);
    if (!now) co_return;
    since = *now;
  }
  told.since = *since;
  bool is_news = true;
  while (!stream.ended() && !parts_.news.stopping()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - parts_.clock.now());
    if (left <= std::chrono::milliseconds(0)) co_return;
    if (is_news && !co_await tell_changes(stream, box, told)) co_return;
    if (!co_await tell_counts(stream, box, told)) co_return;
    is_news = co_await subscription->wait(std::min<std::chrono::milliseconds>(kLookAgain, left));
  }
}

// "marks" says up to where everything was marked as read, before what has changed since; "message" is each
// that is new or has changed, "removed" each that is gone; "reset" where too much has happened since: the
// page reads all again. False: the stream is over; the client comes back, and goes on where it was.
awaitable<bool> Api::tell_changes(net::EventStream& stream, const Box& box, Told& told) {
  const auto changes = co_await parts_.boxes.changes(box, told.since, std::exchange(told.was_away, false));
  if (!changes) co_return false;
  const auto before = sequence_text(told.since), id = sequence_text(changes->sequence);
  if (changes->too_long_ago && !co_await stream.send(id, "reset", "{}")) co_return false;
  std::string json;
  if (told.marks != changes->marks) {
    write_marks(json, changes->marks, changes->sequence);
    if (!co_await stream.send(before, "marks", json)) co_return false;
    told.marks = changes->marks;
  }
  // The id of each is that of what is known already, but for the last: who is cut off in between gets all
  // again.
  auto left_to_tell = changes->entries.size() + changes->removed.size();
  const auto id_of_next = [&] { return --left_to_tell == 0 ? id : before; };
  for (const auto& entry : changes->entries) {
    json.clear();
    write_entry(json, entry);
    if (!co_await stream.send(id_of_next(), "message", json)) co_return false;
  }
  for (const auto& removed : changes->removed) {
    json.clear();
    JsonObjectWriter(json).string("id", removed);
    if (!co_await stream.send(id_of_next(), "removed", json)) co_return false;
  }
  told.since = changes->sequence;
  co_return true;
}

// Whenever they are others.
awaitable<bool> Api::tell_counts(net::EventStream& stream, const Box& box, Told& told) {
  const auto counts = co_await parts_.boxes.counts(box);
  if (!counts) co_return false;
  std::string json;
  write_counts(json, *counts);
  if (json == told.counts) co_return co_await stream.keep_alive();
  told.counts = json;
  co_return co_await stream.send(sequence_text(told.since), "counts", json);
}

}  // namespace tabella::inbox

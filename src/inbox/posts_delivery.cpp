// What timers do with posts, and how they are taken back.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "inbox/arrival.h"
#include "inbox/posts.h"
#include "store/batches.h"
#include "store/conditional.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;

namespace {

// A post whose timer is there and whose row is not: whoever was publishing it was killed, or is just at it.
constexpr int kWaitForRow = 6;

}  // namespace

// --- carrying out

awaitable<std::optional<PostRow>> Posts::load_for(const schedule::Firing& firing, Place place,
                                                  std::string id) {
  auto row = co_await load(std::move(place), std::move(id));
  if (!row) throw std::runtime_error(row.error().message);
  if (!*row && firing.attempt < kWaitForRow) throw std::runtime_error("the post is not there yet");
  co_return std::move(*row);
}

awaitable<void> Posts::carry_on(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 3) co_return log::error("a timer of the inbox names no post: {}", firing.timer.payload);
  const Place place{.tenant = std::string(parts[0]), .inbox = std::string(parts[1])};
  auto row = co_await load_for(firing, place, std::string(parts[2]));
  if (!row) co_return;
  const auto done = row->post.state == PostState::redacted ? co_await carry_out_redaction(place, *row)
                                                           : co_await carry_out(place, std::move(*row));
  if (!done) throw std::runtime_error(done.error().message);
}

Async<bool> Posts::move(const Place& place, const std::string& id, PostState from, PostState to) {
  co_return store::was_made(co_await store_.update_item(store::Update(table_, post_key(place, id))
                                                            .set(kPostState, name_of(to))
                                                            .when(store::equals(kPostState, name_of(from)))));
}

Async<std::vector<std::string>> Posts::users_of(const Place& place, const PostRow& row, int64_t part) {
  if (row.parts == 0) co_return row.users;
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item(
                        {.table = table_, .key = part_key(place, row.post.id, part), .consistent = true}));
  co_return found.item ? users_of_row(*found.item) : std::vector<std::string>();
}

Async<void> Posts::carry_out(const Place& place, PostRow row) {
  auto& post = row.post;
  if (post.state == PostState::scheduled) {
    TABELLA_CO_ASSIGN(const bool begun,
                      co_await move(place, post.id, PostState::scheduled, PostState::sending));
    // Or it has begun already, and nobody knows: of that the answer was lost.
    if (!begun) {
      TABELLA_CO_ASSIGN(auto again, co_await load(place, post.id));
      if (!again) co_return store::Result<void>();
      row = std::move(*again);
    } else {
      post.state = PostState::sending;
    }
  }
  if (post.state != PostState::sending) co_return store::Result<void>();
  if (post.everyone) {
    TABELLA_CO_TRY(co_await set_channel_timers(place, post.id, row.channels, std::vector<std::string>{""}));
    TABELLA_CO_TRY(co_await deliver_to(public_box(place), row.content));
  } else {
    const auto parts = std::max<int64_t>(row.parts, 1);
    for (auto part = post.done / static_cast<int64_t>(kUsersInPart); part < parts; ++part) {
      TABELLA_CO_ASSIGN(const auto users, co_await users_of(place, row, part));
      if (row.content.gathered_until == 0)
        TABELLA_CO_TRY(co_await set_channel_timers(place, post.id, row.channels, users));
      TABELLA_CO_TRY(co_await deliver(place, row.content, users));
      post.done = part * static_cast<int64_t>(kUsersInPart) + static_cast<int64_t>(users.size());
      const auto noted =
          co_await store_.update_item(store::Update(table_, post_key(place, post.id))
                                          .set(kPostDone, post.done)
                                          .when(store::equals(kPostState, name_of(PostState::sending))));
      // Redacted meanwhile: that takes back what was delivered, and goes on from there.
      if (!noted && store::failed_its_condition(noted.error())) co_return store::Result<void>();
      TABELLA_CO_TRY(noted);
    }
  }
  TABELLA_CO_TRY(co_await move(place, post.id, PostState::sending, PostState::done));
  co_return store::Result<void>();
}

// Nobody counts the broadcasts themselves, and so takes off those that have expired. One timer for all that
// expire in a second.
schedule::Timer Posts::expiry_timer(const Place& place, const Content& content) {
  return {.id = fmt::format("{}#{}#{}#{}", kExpiryTimer, place.tenant, place.inbox, content.expires),
          .kind = kExpiryTimer,
          .at = time_at(content.expires * 1000),
          .payload = fmt::format("{}#{}", place.tenant, place.inbox)};
}

awaitable<void> Posts::retire(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 2)
    co_return log::error("a timer of the inbox names no inbox: {}", firing.timer.payload);
  const Place place{.tenant = std::string(parts[0]), .inbox = std::string(parts[1])};
  const auto retired = co_await boxes_.retire(public_box(place), clock_.now());
  if (!retired) throw std::runtime_error(retired.error().message);
}

// Several users in one transaction; where something stands in the way of one, each by himself.
Async<void> Posts::deliver(const Place& place, const Content& content, std::span<const std::string> users) {
  if (content.gathered_until != 0) {
    for (const auto& user : users)
      TABELLA_CO_TRY(co_await gather_for({.place = place, .user = user}, content));
    co_return store::Result<void>();
  }
  const size_t at_once = 90 / writes_of_arrival(content);
  while (!users.empty()) {
    const auto some = users.first(std::min(at_once, users.size()));
    users = users.subspan(some.size());
    std::vector<store::TransactWrite> writes;
    const auto sequence = sequence_.next();
    for (const auto& user : some)
      std::ranges::move(arrival(table_, {.place = place, .user = user}, content, sequence, clock_.now()),
                        std::back_inserter(writes));
    writes.push_back(still_sending(place, content.id));
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    for (const auto& user : some) {
      const Box box{.place = place, .user = user};
      if (made)
        changed_(box.partition());
      else
        TABELLA_CO_TRY(co_await deliver_to(box, content));
    }
  }
  co_return store::Result<void>();
}

Async<void> Posts::deliver_to(const Box& box, const Content& content) {
  int64_t in_the_way = 0;
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    auto writes = arrival(table_, box, content, sequence_.next(in_the_way), clock_.now());
    if (content.everyone) writes.push_back(schedule_.put_write(expiry_timer(box.place, content)));
    writes.push_back(still_sending(box.place, content.id));
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    const auto& reasons = made ? std::vector<store::CancellationReason>() : made.error().reasons;
    const bool there = !reasons.empty() && store::failed_its_condition(reasons.front());
    const bool taken_back = !reasons.empty() && store::failed_its_condition(reasons.back());
    if (made || there || taken_back) {
      changed_(box.partition());
      if (content.everyone) schedule_.was_set(expiry_timer(box.place, content));
      co_return store::Result<void>();
    }
    if (does_not_want(made.error(), 0, content)) co_return store::Result<void>();
    if (made.error().code == store::ErrorCode::validation || is_full(made.error(), 0, content)) {
      // Others are not to wait for an inbox that can take no more.
      log::error("a message cannot be delivered to {}: {}", box.partition(), made.error().message);
      co_return store::Result<void>();
    }
    if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
    in_the_way = std::max(in_the_way, sequence_in_the_way(made.error()));
    co_await pause_before(tries);
  }
  co_return std::unexpected(too_busy_to_publish());
}

// The timer first: what is gathered is published. Set again where it may have fired already.
Async<void> Posts::gather_for(const Box& box, const Content& content) {
  for (int part = 0; part < Digests::kMostParts; ++part) {
    TABELLA_CO_TRY(co_await digests_.set_timer(box, content, part));
    for (int tries = 0;; ++tries) {
      if (tries == kMostDeliveries) co_return std::unexpected(too_busy_to_publish());
      std::vector<store::TransactWrite> writes;
      writes.push_back(digests_.was_gathered(box, content));
      writes.push_back(digests_.gathering(box, content, part));
      writes.push_back(still_sending(box.place, content.id));
      const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
      if (made) {
        if (Digests::is_late(content, clock_.now()))
          TABELLA_CO_TRY(co_await digests_.set_timer(box, content, part));
        co_return store::Result<void>();
      }
      const auto& reasons = made.error().reasons;
      const auto failed = [&](size_t at) {
        return reasons.size() > at && store::failed_its_condition(reasons[at]);
      };
      const bool done_or_taken_back = failed(0) || failed(2);
      if (done_or_taken_back) co_return store::Result<void>();
      const bool full = failed(1);
      if (full) break;
      if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
      co_await pause_before(tries);
    }
  }
  log::error("a digest of {} is full", box.partition());
  co_return store::Result<void>();
}

// --- taking back

Async<std::optional<Post>> Posts::cancel(Place place, std::string id) {
  TABELLA_CO_TRY(co_await move(place, id, PostState::scheduled, PostState::canceled));
  TABELLA_CO_ASSIGN(auto row, co_await load(place, id));
  if (!row) co_return std::nullopt;
  // Also where it was canceled before: whoever did may not have come as far.
  if (row->post.state == PostState::canceled) {
    TABELLA_CO_TRY(co_await leave_group(place, *row));
    TABELLA_CO_TRY(co_await free_key(place, row->post));
  }
  co_return std::move(row->post);
}

Async<void> Posts::redact_broadcast(const Place& place, const std::string& id) {
  const auto box = public_box(place);
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    TABELLA_CO_ASSIGN(auto found, co_await store_.get_item(
                                      {.table = table_, .key = message_key(box, id), .consistent = true}));
    if (!found.item) co_return store::Result<void>();
    const auto message = read_message(std::move(*found.item));
    if (message.state.redacted) co_return store::Result<void>();
    const auto now = clock_.now();
    const auto sequence = sequence_.next(message.sequence);
    const Tally less{.published = -1};
    auto all = arrival_update(table_, box, less, sequence, now);
    set_redactions(all, sequence);
    std::vector<store::TransactWrite> writes;
    writes.push_back(
        tombstone(table_, box, message, sequence, now).when(store::equals(kSequence, message.sequence)));
    writes.push_back(std::move(all));
    if (!message.state.category.empty())
      writes.push_back(category_update(table_, box, message.state.category, less));
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    if (made) {
      changed_(box.partition());
      co_return store::Result<void>();
    }
    if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
    // Numbers of others may be ahead of this clock.
    if (const auto latest = sequence_in_the_way(made.error())) sequence_.next(latest);
    co_await pause_before(tries);
  }
  co_return std::unexpected(too_busy_to_publish());
}

// Out of what is still gathered, and of the digests that were published.
Async<void> Posts::redact_gathered(const Box& box, const Content& content) {
  TABELLA_CO_ASSIGN(const auto digests, co_await digests_.take_out(box, content));
  const auto& id = content.id;
  for (const auto& digest : digests) {
    TABELLA_CO_TRY(co_await boxes_.rewrite(
        box, digest, [&](item::ValueView message) { return Digests::without(message, id); }));
    TABELLA_CO_TRY(co_await redact_from_post(box.place, digest, id));
  }
  co_return store::Result<void>();
}

// What goes elsewhere is taken from the post.
Async<void> Posts::redact_from_post(const Place& place, const std::string& digest, const std::string& id) {
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    TABELLA_CO_ASSIGN(const auto row, co_await load(place, digest));
    if (!row || row->content.message.empty()) co_return store::Result<void>();
    const item::ValueView says{std::string_view(row->content.message)};
    const auto left = Digests::without(says, id);
    store::Update update(table_, post_key(place, digest));
    if (left)
      update.set(kPostMessage, *left);
    else
      update.set(kPostState, name_of(PostState::redacted)).remove(kPostMessage);
    update.when(store::equals(kPostMessage, item::Value::decode(says)));
    TABELLA_CO_ASSIGN(const bool made, store::was_made(co_await store_.update_item(std::move(update))));
    if (made) co_return store::Result<void>();
    co_await pause_before(tries);
  }
  co_return std::unexpected(too_busy_to_publish());
}

// Whether he had it; of what is gathered nobody asks.
Async<bool> Posts::redact_for(const Box& box, const Content& content) {
  const auto& id = content.id;
  bool had = true;
  if (content.gathered_until != 0) {
    TABELLA_CO_TRY(co_await redact_gathered(box, content));
  } else if (content.everyone) {
    TABELLA_CO_ASSIGN(const auto found, co_await boxes_.change(
                                            box, {id}, [](State& state, int64_t) { state.redacted = true; }));
    had = !found.empty();
    if (!had) {
      // It may have been taken away before.
      TABELLA_CO_ASSIGN(const auto entry, co_await boxes_.find(box, id));
      had = entry && entry->state.redacted;
    }
  } else {
    TABELLA_CO_ASSIGN(had, co_await boxes_.redact(box, id));
  }
  if (had) changed_(box.partition());
  co_return had;
}

Async<void> Posts::carry_out_redaction(const Place& place, const PostRow& row) {
  for (int64_t part = 0; part < std::max<int64_t>(row.parts, 1); ++part) {
    TABELLA_CO_ASSIGN(const auto users, co_await users_of(place, row, part));
    for (const auto& user : users)
      TABELLA_CO_TRY(co_await redact_for({.place = place, .user = user}, row.content));
  }
  co_return store::Result<void>();
}

Async<bool> Posts::redact(Place place, std::string id, std::vector<std::string> users, bool many) {
  TABELLA_CO_ASSIGN(const auto row, co_await load(place, id));
  if (!row) co_return false;
  if (!users.empty()) {
    const auto state = row->post.state;
    if (state == PostState::scheduled || state == PostState::sending)
      co_return store::fail(store::ErrorCode::resource_in_use,
                            "it is not delivered yet: cancel it, or redact it for all who are to get it");
    bool had = false;
    for (const auto& user : users) {
      TABELLA_CO_ASSIGN(const bool elsewhere, co_await cancel_channel_timers(place, *row, user));
      TABELLA_CO_ASSIGN(const bool in_box, co_await redact_for({.place = place, .user = user}, row->content));
      had = had || elsewhere || in_box;
    }
    co_return had;
  }
  // Whatever is still to be delivered of it is not; what was is taken back.
  TABELLA_CO_TRY(co_await store_.update_item(store::Update(table_, post_key(place, id))
                                                 .set(kPostState, name_of(PostState::redacted))
                                                 .remove(kPostMessage)
                                                 .when(store::exists(kPartition))));
  if (row->post.everyone)
    TABELLA_CO_TRY(co_await redact_broadcast(place, id));
  else if (!many && row->parts == 0 && row->post.state == PostState::done)
    TABELLA_CO_TRY(co_await carry_out_redaction(place, *row));
  else  // behind the delivery, should that be under way: a timer is handled once at a time
    TABELLA_CO_TRY(co_await set_timer(place, id, clock_.now()));
  TABELLA_CO_TRY(co_await leave_group(place, *row));
  co_return true;
}

}  // namespace tabella::inbox

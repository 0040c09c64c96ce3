#include "inbox/posts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "inbox/arrival.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/rows.h"

namespace tabella::inbox {

using store::Async;

namespace {

// How long a post may take to be written down, before its timer looks for it.
constexpr std::chrono::seconds kToWriteDown{5};
constexpr const char* kKeyUntil = "until";  // a key is free once the message has expired

store::Row key_of(const Place& place, std::string_view key) {
  return store::Row()
      .set(kPartition, fmt::format("t#{}K#{}#{}", place.tenant, place.inbox, key))
      .set(kSort, kPostSort);
}
std::string group_partition(const Place& place, std::string_view group) {
  return fmt::format("t#{}R#{}#{}", place.tenant, place.inbox, group);
}

std::string timer_payload(const Place& place, std::string_view id) {
  return fmt::format("{}#{}#{}", place.tenant, place.inbox, id);
}

std::string channel_payload(const Place& place, std::string_view id, Channel channel, std::string_view user) {
  return fmt::format("{}#{}#{}", timer_payload(place, id), name_of(channel), user);
}
std::string channel_timer(const Place& place, std::string_view id, Channel channel, std::string_view user) {
  return fmt::format("{}#{}", Posts::timer_kind(channel), channel_payload(place, id, channel, user));
}

// Where the others are written down.
PostRow row_of(const Publication& publication, const Post& post) {
  PostRow row{.post = post,
              .content = publication.content,
              .users = {},
              .parts = 0,
              .fingerprint = publication.fingerprint,
              .channels = publication.channels};
  if (publication.users.size() <= Posts::kFew)
    row.users = publication.users;
  else
    row.parts = static_cast<int64_t>((publication.users.size() + kUsersInPart - 1) / kUsersInPart);
  return row;
}

}  // namespace

Posts::Posts(Parts parts, std::string table, Changed changed)
    : store_(parts.store),
      clock_(parts.clock),
      boxes_(parts.boxes),
      sequence_(parts.sequence),
      schedule_(parts.schedule),
      digests_(parts.digests),
      table_(std::move(table)),
      changed_(std::move(changed)) {
  digests_.publish_by([this](Digests::Digest digest, store::TransactWrite along) {
    return publish_digest(std::move(digest), std::move(along));
  });
  schedule_.on(kTimer, [this](const schedule::Firing& firing) { return carry_on(firing); });
  schedule_.on(kExpiryTimer, [this](const schedule::Firing& firing) { return retire(firing); });
}

Async<std::optional<PostRow>> Posts::load(Place place, std::string id) {
  TABELLA_CO_ASSIGN(const auto found, co_await store_.get_item(
                                          {.table = table_, .key = post_key(place, id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return read_post(id, *found.item);
}

Async<std::optional<Post>> Posts::find(Place place, std::string id) {
  TABELLA_CO_ASSIGN(auto row, co_await load(std::move(place), std::move(id)));
  if (!row) co_return std::nullopt;
  co_return std::move(row->post);
}

// --- publishing

Async<Published> Posts::publish(Publication publication) {
  const auto now = clock_.now();
  const auto at = std::max(publication.deliver_at.value_or(now), now);
  auto& content = publication.content;
  std::ranges::sort(publication.users);
  publication.users.erase(std::ranges::unique(publication.users).begin(), publication.users.end());
  const bool later = publication.deliver_at && *publication.deliver_at > now;
  content.id = make_message_id(later ? microseconds_of(at) : sequence_.next());
  content.received = epoch_milliseconds(now);
  content.expires = epoch_milliseconds(at) / 1000 + publication.time_to_live.count();
  Post post{.id = content.id,
            .everyone = content.everyone,
            .count = static_cast<int64_t>(publication.users.size()),
            .key = publication.key,
            .deliver_at = publication.deliver_at};
  const bool gathered = publication.gathered_for.count() > 0 && !content.everyone;
  if (gathered)
    content.gathered_until = epoch_milliseconds(Digests::end_of_window(at, publication.gathered_for));
  if (!later && !gathered && publication.users.size() <= kFew)
    co_return co_await publish_now(std::move(publication), std::move(post), {});
  post.state = later ? PostState::scheduled : PostState::sending;
  co_return co_await publish_later(std::move(publication), std::move(post));
}

// The rows by which a post is found: the post itself, then its key and its group.
std::vector<store::TransactWrite> Posts::records(const Publication& publication, const Post& post) const {
  const auto& place = publication.place;
  const auto remove = publication.content.expires + kGrace.count();
  std::vector<store::TransactWrite> writes;
  writes.push_back(
      store::Put(table_, to_row(place, row_of(publication, post))).when(store::absent(kPartition)));
  if (!post.key.empty())
    writes.push_back(store::Put(table_, key_of(place, post.key)
                                            .set(kPostId, post.id)
                                            .set(kPostFingerprint, publication.fingerprint)
                                            .set(kKeyUntil, publication.content.expires)
                                            .set(kRemovePost, remove))
                         .when(store::absent(kPartition) ||
                               store::at_most(kKeyUntil, epoch_milliseconds(clock_.now()) / 1000)));
  if (!publication.content.group.empty())
    writes.push_back(
        store::Put(table_, store::Row()
                               .set(kPartition, group_partition(place, publication.content.group))
                               .set(kSort, kMessagePrefix + post.id)
                               .set(kRemovePost, remove)));
  return writes;
}

// What was to go elsewhere does not, unless it is just going.
Async<bool> Posts::cancel_channel_timers(const Place& place, const PostRow& row, const std::string& user) {
  bool any = false;
  for (const auto& plan : row.channels) {
    TABELLA_CO_ASSIGN(const auto cancelled,
                      co_await schedule_.cancel(channel_timer(place, row.post.id, plan.channel, user)));
    any = any || cancelled == schedule::Cancelled::yes;
  }
  co_return any;
}

std::string Posts::timer_kind(Channel channel) { return fmt::format("inbox-{}", name_of(channel)); }

// What is carried out by a timer is delivered only while nobody has taken it back.
store::TransactWrite Posts::still_sending(const Place& place, std::string_view id) const {
  return store::Check(table_, post_key(place, id))
      .when(store::equals(kPostState, name_of(PostState::sending)));
}

// The digest of one user's messages.
Async<bool> Posts::publish_digest(Digests::Digest digest, store::TransactWrite along) {
  Publication publication{.place = digest.box.place,
                          .users = {digest.box.user},
                          .content = std::move(digest.content),
                          .channels = std::move(digest.channels)};
  Post post{.id = publication.content.id, .count = 1};
  TABELLA_CO_ASSIGN(const auto published,
                    co_await publish_now(std::move(publication), std::move(post), std::move(along)));
  co_return !published.repeated;
}

// Before it is there: what goes elsewhere is not forgotten.
Async<void> Posts::set_channel_timers(const Place& place, const std::string& id,
                                      const std::vector<ChannelPlan>& channels,
                                      std::span<const std::string> users) {
  for (const auto& plan : channels)
    for (const auto& user : users) {
      // A moment later, when it is there.
      const auto at = clock_.now() + std::max(plan.after, std::chrono::seconds(1));
      TABELLA_CO_TRY(co_await schedule_.put({.id = channel_timer(place, id, plan.channel, user),
                                             .kind = timer_kind(plan.channel),
                                             .at = at,
                                             .payload = channel_payload(place, id, plan.channel, user)}));
    }
  co_return store::Result<void>();
}

// In one transaction with `along`, where there is something; then a post of that id is no answer that was
// lost, or is one: who calls looks.
Async<Published> Posts::publish_now(Publication publication, Post post,
                                    std::optional<store::TransactWrite> along) {
  post.done = post.count;
  const auto& content = publication.content;
  std::vector<Box> boxes;
  if (content.everyone) boxes.push_back(public_box(publication.place));
  for (const auto& user : publication.users) boxes.push_back({.place = publication.place, .user = user});
  // Timers that are set for nothing fail a few times before they end.
  if (!publication.channels.empty() && !publication.key.empty()) {
    TABELLA_CO_ASSIGN(const bool taken, co_await is_key_taken(publication));
    if (taken) co_return co_await repeated(publication, too_busy_to_publish());
  }
  const std::vector<std::string> everybody{""};
  TABELLA_CO_TRY(co_await set_channel_timers(publication.place, post.id, publication.channels,
                                             content.everyone ? everybody : publication.users));
  int64_t in_the_way = 0;
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    auto writes = records(publication, post);
    const auto first_arrival = writes.size();
    const auto sequence = sequence_.next(in_the_way);
    for (const auto& box : boxes)
      std::ranges::move(arrival(table_, box, content, sequence, clock_.now()), std::back_inserter(writes));
    if (content.everyone) writes.push_back(schedule_.put_write(expiry_timer(publication.place, content)));
    if (along) writes.push_back(*along);
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    const auto& reasons = made ? std::vector<store::CancellationReason>() : made.error().reasons;
    const bool there = !reasons.empty() && store::failed_its_condition(reasons[0]);
    // The post is there: of ours the answer was lost.
    if (made || there) {
      for (const auto& box : boxes) changed_(box.partition());
      if (content.everyone) schedule_.was_set(expiry_timer(publication.place, content));
      co_return Published{.post = std::move(post), .repeated = along && !made};
    }
    if (along && !reasons.empty() && store::failed_its_condition(reasons.back()))
      co_return std::unexpected(made.error());
    if (!post.key.empty() && reasons.size() > 1 && store::failed_its_condition(reasons[1]))
      co_return co_await repeated(publication, made.error());
    if (content.everyone && is_full(made.error(), first_arrival, content))
      co_return std::unexpected(too_many_broadcasts());
    in_the_way = std::max(in_the_way, sequence_in_the_way(made.error()));
    // Who has switched the bell off is left out; and others are not to wait for a box that can take no more.
    size_t first = first_arrival;
    const auto left_out = std::erase_if(boxes, [&](const Box& box) {
      const auto at = std::exchange(first, first + writes_of_arrival(content));
      const bool full = is_full(made.error(), at, content);
      if (full) log::error("a message cannot be delivered to {}", box.partition());
      return full || does_not_want(made.error(), at, content);
    });
    if (left_out == 0 && !made.error().unsure && !store::lost_a_race(made.error()))
      co_return std::unexpected(made.error());
    co_await pause_before(tries);
  }
  co_return std::unexpected(too_busy_to_publish());
}

Async<bool> Posts::is_key_taken(const Publication& publication) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item(
          {.table = table_, .key = key_of(publication.place, publication.key), .consistent = true}));
  co_return found.item&& store::number_of(*found.item, kKeyUntil) > epoch_milliseconds(clock_.now()) / 1000;
}

Async<Published> Posts::repeated(const Publication& publication, const store::Error& failed) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item(
          {.table = table_, .key = key_of(publication.place, publication.key), .consistent = true}));
  if (!found.item) co_return std::unexpected(failed);
  if (store::text_of(*found.item, kPostFingerprint) != publication.fingerprint)
    co_return store::fail(store::ErrorCode::idempotent_parameter_mismatch,
                          "this key was used for another message; take a new one");
  TABELLA_CO_ASSIGN(auto row, co_await load(publication.place, store::text_of(*found.item, kPostId)));
  if (!row) co_return std::unexpected(failed);
  // Whoever published it first may have been killed before its timer was set for good.
  if (row->post.state == PostState::scheduled || row->post.state == PostState::sending)
    TABELLA_CO_TRY(
        co_await set_timer(publication.place, row->post.id, row->post.deliver_at.value_or(clock_.now())));
  co_return Published{.post = std::move(row->post), .repeated = true};
}

Async<void> Posts::set_timer(const Place& place, const std::string& id, TimePoint at) {
  return schedule_.put({.id = fmt::format("{}#{}", kTimer, timer_payload(place, id)),
                        .kind = kTimer,
                        .at = at,
                        .payload = timer_payload(place, id)});
}

// The timer first: a post that is there is carried out. Its users next: what is acknowledged is whole.
Async<Published> Posts::publish_later(Publication publication, Post post) {
  const auto& place = publication.place;
  const auto at = post.deliver_at.value_or(clock_.now());
  TABELLA_CO_TRY(co_await set_timer(place, post.id, std::max(at, clock_.now() + kToWriteDown)));
  if (publication.users.size() > kFew) {
    std::vector<store::BatchWrite> parts;
    const std::span<const std::string> users(publication.users);
    for (size_t from = 0; from < users.size(); from += kUsersInPart) {
      const auto some = users.subspan(from, std::min(kUsersInPart, users.size() - from));
      parts.push_back({.item = part_row(place, post.id, static_cast<int64_t>(from / kUsersInPart), some,
                                        publication.content.expires + kGrace.count())});
    }
    TABELLA_CO_TRY(co_await store::write_all(store_, table_, std::move(parts)));
  }
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    const auto made = co_await store_.transact_write_items({.writes = records(publication, post)});
    const auto& reasons = made ? std::vector<store::CancellationReason>() : made.error().reasons;
    const bool there = !reasons.empty() && store::failed_its_condition(reasons[0]);
    if (made || there) {
      TABELLA_CO_TRY(co_await set_timer(place, post.id, at));
      co_return Published{.post = std::move(post)};
    }
    if (reasons.size() > 1 && store::failed_its_condition(reasons[1]))
      co_return co_await repeated(publication, made.error());
    if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
    co_await pause_before(tries);
  }
  co_return std::unexpected(too_busy_to_publish());
}

// --- finding

Async<std::vector<std::string>> Posts::select(Place place, Selection selection) {
  auto ids = std::move(selection.ids);
  if (!selection.key.empty()) {
    TABELLA_CO_ASSIGN(
        const auto found,
        co_await store_.get_item({.table = table_, .key = key_of(place, selection.key), .consistent = true}));
    if (found.item) ids.push_back(store::text_of(*found.item, kPostId));
  }
  if (!selection.group.empty()) {
    auto query = store::Query(table_)
                     .partition(kPartition, group_partition(place, selection.group))
                     .descending()  // what is still to come before all else
                     .consistent()
                     .limit(static_cast<int64_t>(selection.most));
    if (!selection.before.empty()) query.where(store::less(kSort, kMessagePrefix + selection.before));
    TABELLA_CO_ASSIGN(const auto rows, co_await store_.query(std::move(query)));
    for (const auto& row : rows.items) ids.push_back(store::text_of(row, kSort).substr(2));
  }
  co_return ids;
}

// What was canceled was not published.
Async<void> Posts::free_key(const Place& place, const Post& post) {
  if (post.key.empty()) co_return store::Result<void>();
  TABELLA_CO_TRY(store::was_made(co_await store_.delete_item(
      store::Delete(table_, key_of(place, post.key)).when(store::equals(kPostId, post.id)))));
  co_return store::Result<void>();
}

// Who asks for the group again finds the others.
Async<void> Posts::leave_group(const Place& place, const PostRow& row) {
  if (row.content.group.empty()) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await store_.delete_item(
      store::Delete(table_, store::Row()
                                .set(kPartition, group_partition(place, row.content.group))
                                .set(kSort, kMessagePrefix + row.post.id))));
  co_return store::Result<void>();
}

}  // namespace tabella::inbox

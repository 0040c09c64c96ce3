#include "inbox/posts.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/pause.h"
#include "store/rows.h"

namespace tabella::inbox {

using boost::asio::awaitable;
using store::Async;

namespace {

constexpr const char* kPostSort = "post";
constexpr const char* kState = "state";
constexpr const char* kCount = "count";
constexpr const char* kDone = "done";
constexpr const char* kParts = "parts";
constexpr const char* kUids = "uids";
constexpr const char* kKey = "key";
constexpr const char* kFingerprint = "fingerprint";
constexpr const char* kDeliverAt = "deliverat";
constexpr const char* kPostMessage = "message";
constexpr const char* kRemovePost = "removeat";
constexpr const char* kPostId = "id";
constexpr size_t kUsersInPart = 500;
constexpr int kMostDeliveries = 100;
// How long a post may take to be written down, before its timer looks for it.
constexpr std::chrono::minutes kToWriteDown{1};
// A post whose timer is there and whose row is not: whoever was publishing it was killed, or is just at it.
constexpr int kWaitForRow = 6;

constexpr std::pair<PostState, std::string_view> kStates[] = {{PostState::scheduled, "scheduled"},
                                                              {PostState::sending, "sending"},
                                                              {PostState::done, "done"},
                                                              {PostState::canceled, "canceled"},
                                                              {PostState::redacted, "redacted"}};

PostState post_state(std::string_view name) {
  for (const auto& [state, its_name] : kStates)
    if (its_name == name) return state;
  return PostState::done;
}

std::string key_partition(const Place& place, std::string_view key) {
  return fmt::format("t#{}K#{}#{}", place.tenant, place.inbox, key);
}
std::string group_partition(const Place& place, std::string_view group) {
  return fmt::format("t#{}R#{}#{}", place.tenant, place.inbox, group);
}
std::string part_sort(int64_t part) { return fmt::format("to#{:06}", part); }

item::Value list_value(std::span<const std::string> texts) {
  std::vector<item::Value> values;
  for (const auto& text : texts) values.push_back(item::Value::string(text));
  return item::Value::list(std::move(values));
}

std::vector<std::string> texts_of(item::ItemView row, const char* name) {
  std::vector<std::string> texts;
  if (const auto list = row.find(name); list && list->type() == item::Type::L)
    for (item::Elements each(*list); each.next();) texts.emplace_back(each.value().content());
  return texts;
}

std::string timer_payload(const Place& place, std::string_view id) {
  return fmt::format("{}#{}#{}", place.tenant, place.inbox, id);
}

Tally one_more(bool everyone) {
  return everyone ? Tally{.published = 1} : Tally{.published = 1, .total = 1, .unread = 1, .unseen = 1};
}

// The latest sequence that stood in the way, of rows c#* that a transaction failed on.
int64_t sequence_in_the_way(const store::Error& error) {
  int64_t latest = 0;
  for (const auto& reason : error.reasons)
    if (reason.item) latest = std::max(latest, sequence_of(*reason.item));
  return latest;
}

// Whether a transaction failed since this user has the bell switched off.
bool does_not_want(const store::Error& error, const Box& box, const Content& content) {
  return !content.everyone && std::ranges::any_of(error.reasons, [&](const auto& reason) {
    return reason.item && store::text_of(*reason.item, kPartition) == box.partition() &&
           bell_is_off(*reason.item, content);
  });
}

awaitable<void> pause_before(int tries) {
  return store::pause_for(std::chrono::milliseconds(std::min(tries, 20)));
}

store::Error busy() {
  return {store::ErrorCode::unavailable, "the store is too busy to publish this; try again"};
}

}  // namespace

std::string_view name_of(PostState state) {
  for (const auto& [its_state, name] : kStates)
    if (its_state == state) return name;
  return "done";
}

// A post, with what it takes to carry it out.
struct Posts::Row {
  Post post;
  Content content;
  std::vector<std::string> users;  // where they are few
  int64_t parts = 0;               // rows of users, where they are many
  std::string fingerprint;
};

Posts::Posts(store::Store& store, const Clock& clock, Boxes& boxes, Sequence& sequence,
             schedule::Schedule& schedule, std::string table, Changed changed)
    : store_(store),
      clock_(clock),
      boxes_(boxes),
      sequence_(sequence),
      schedule_(schedule),
      table_(std::move(table)),
      changed_(std::move(changed)) {
  schedule_.on(kTimer, [this](const schedule::Firing& firing) { return carry_on(firing); });
}

store::Item Posts::key_of(const Place& place, std::string_view id) const {
  return store::Row()
      .set(kPartition, fmt::format("t#{}P#{}#{}", place.tenant, place.inbox, id))
      .set(kSort, kPostSort);
}

store::Row Posts::to_row(const Publication& publication, const Post& post) const {
  const auto& content = publication.content;
  store::Row row;
  row.set(kPartition, fmt::format("t#{}P#{}#{}", publication.place.tenant, publication.place.inbox, post.id));
  row.set(kSort, kPostSort).set(kPostId, post.id).set(kState, name_of(post.state));
  row.set("everyone", post.everyone).set(kCount, post.count).set(kDone, post.done);
  row.set("category", content.category).set("sender", content.sender).set("label", content.label);
  row.set("host_system_id", content.host_system_id).set("group", content.group);
  row.set("received", content.received).set("expires", content.expires).set("optin", content.opt_in);
  if (!post.key.empty()) row.set(kKey, post.key).set(kFingerprint, publication.fingerprint);
  if (post.deliver_at) row.set(kDeliverAt, epoch_milliseconds(*post.deliver_at));
  // Of what is delivered at once the messages have it.
  if (post.state != PostState::done)
    row.set_with(kPostMessage, [&](std::string& out) { out.append(content.message); });
  if (publication.users.size() <= kFew)
    row.set(kUids, list_value(publication.users));
  else
    row.set(kParts, (publication.users.size() + kUsersInPart - 1) / kUsersInPart);
  row.set(kRemovePost, content.expires + kGrace.count());
  return row;
}

Async<std::optional<Posts::Row>> Posts::load(Place place, std::string id) {
  TABELLA_CO_ASSIGN(const auto found, co_await store_.get_item(
                                          {.table = table_, .key = key_of(place, id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  const auto& row = *found.item;
  Row loaded;
  loaded.post = {.id = id,
                 .state = post_state(store::text_of(row, kState)),
                 .everyone = store::flag_of(row, "everyone"),
                 .count = store::number_of(row, kCount),
                 .done = store::number_of(row, kDone),
                 .key = store::text_of(row, kKey)};
  if (row.find(kDeliverAt)) loaded.post.deliver_at = time_at(store::number_of(row, kDeliverAt));
  loaded.content = {.id = id,
                    .category = store::text_of(row, "category"),
                    .everyone = loaded.post.everyone,
                    .sender = store::text_of(row, "sender"),
                    .label = store::text_of(row, "label"),
                    .host_system_id = store::text_of(row, "host_system_id"),
                    .received = store::number_of(row, "received"),
                    .expires = store::number_of(row, "expires"),
                    .group = store::text_of(row, "group"),
                    .opt_in = store::flag_of(row, "optin")};
  if (const auto message = row.find(kPostMessage)) loaded.content.message = std::string(message->bytes());
  loaded.users = texts_of(row, kUids);
  loaded.parts = store::number_of(row, kParts);
  loaded.fingerprint = store::text_of(row, kFingerprint);
  co_return loaded;
}

Async<std::optional<Post>> Posts::find(Place place, std::string id) {
  TABELLA_CO_ASSIGN(auto row, co_await load(std::move(place), std::move(id)));
  if (!row) co_return std::nullopt;
  co_return std::move(row->post);
}

// --- publishing

Async<Published> Posts::publish(Publication publication) {
  const auto now = clock_.now();
  const auto at = publication.deliver_at.value_or(now);
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
  if (!later && publication.users.size() <= kFew)
    co_return co_await publish_now(std::move(publication), std::move(post));
  post.state = later ? PostState::scheduled : PostState::sending;
  co_return co_await publish_later(std::move(publication), std::move(post));
}

// The rows by which a post is found: the post itself, then its key and its group.
std::vector<store::TransactWrite> Posts::records(const Publication& publication, const Post& post) const {
  const auto& place = publication.place;
  const auto remove = publication.content.expires + kGrace.count();
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, to_row(publication, post)).when(store::absent(kPartition)));
  if (!post.key.empty())
    writes.push_back(store::Put(table_, store::Row()
                                            .set(kPartition, key_partition(place, post.key))
                                            .set(kSort, kPostSort)
                                            .set(kPostId, post.id)
                                            .set(kFingerprint, publication.fingerprint)
                                            .set(kRemovePost, remove))
                         .when(store::absent(kPartition)));
  if (!publication.content.group.empty())
    writes.push_back(
        store::Put(table_, store::Row()
                               .set(kPartition, group_partition(place, publication.content.group))
                               .set(kSort, kMessagePrefix + post.id)
                               .set(kRemovePost, remove)));
  return writes;
}

// What is carried out by a timer is delivered only while nobody has taken it back.
store::TransactWrite Posts::still_sending(const Place& place, std::string_view id) const {
  return store::Check(table_, key_of(place, id)).when(store::equals(kState, name_of(PostState::sending)));
}

std::vector<store::TransactWrite> Posts::arrival(const Box& box, const Content& content,
                                                 int64_t sequence) const {
  const auto now = clock_.now();
  const auto tally = one_more(content.everyone);
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, message_row(box, content, sequence, epoch_milliseconds(now)))
                       .when(store::absent(kPartition)));
  auto all = arrival_update(table_, box, tally, sequence, now);
  if (!content.everyone) all.when(bell_is_on(content));
  writes.push_back(std::move(all));
  if (!content.category.empty()) writes.push_back(category_update(table_, box, content.category, tally));
  return writes;
}

Async<Published> Posts::publish_now(Publication publication, Post post) {
  post.done = post.count;
  const auto& content = publication.content;
  std::vector<Box> boxes;
  if (content.everyone) boxes.push_back(public_box(publication.place));
  for (const auto& user : publication.users) boxes.push_back({.place = publication.place, .user = user});
  int64_t in_the_way = 0;
  for (int tries = 0; tries < kMostDeliveries; ++tries) {
    auto writes = records(publication, post);
    const auto sequence = sequence_.next(in_the_way);
    for (const auto& box : boxes)
      std::ranges::move(arrival(box, content, sequence), std::back_inserter(writes));
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    const auto& reasons = made ? std::vector<store::CancellationReason>() : made.error().reasons;
    const bool there = !reasons.empty() && store::failed_its_condition(reasons[0]);
    // The post is there: of ours the answer was lost.
    if (made || there) {
      for (const auto& box : boxes) changed_(box.partition());
      co_return Published{.post = std::move(post)};
    }
    if (!post.key.empty() && reasons.size() > 1 && store::failed_its_condition(reasons[1]))
      co_return co_await repeated(publication, made.error());
    if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
    in_the_way = std::max(in_the_way, sequence_in_the_way(made.error()));
    // Who has switched the bell off is left out.
    std::erase_if(boxes, [&](const Box& box) { return does_not_want(made.error(), box, content); });
    co_await pause_before(tries);
  }
  co_return std::unexpected(busy());
}

Async<Published> Posts::repeated(const Publication& publication, const store::Error& failed) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_,
                                .key = store::Row()
                                           .set(kPartition, key_partition(publication.place, publication.key))
                                           .set(kSort, kPostSort),
                                .consistent = true}));
  if (!found.item) co_return std::unexpected(failed);
  if (store::text_of(*found.item, kFingerprint) != publication.fingerprint)
    co_return store::fail(store::ErrorCode::idempotent_parameter_mismatch,
                          "this key was used for another message; take a new one");
  TABELLA_CO_ASSIGN(auto row, co_await load(publication.place, store::text_of(*found.item, kPostId)));
  if (!row) co_return std::unexpected(failed);
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
      parts.push_back(
          {.item = store::Row()
                       .set(kPartition, fmt::format("t#{}P#{}#{}", place.tenant, place.inbox, post.id))
                       .set(kSort, part_sort(static_cast<int64_t>(from / kUsersInPart)))
                       .set(kUids, list_value(some))
                       .set(kRemovePost, publication.content.expires + kGrace.count())});
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
  co_return std::unexpected(busy());
}

// --- carrying out

awaitable<void> Posts::carry_on(const schedule::Firing& firing) {
  const auto parts = split(firing.timer.payload, '#');
  if (parts.size() != 3) co_return log::error("a timer of the inbox names no post: {}", firing.timer.payload);
  const Place place{.tenant = std::string(parts[0]), .inbox = std::string(parts[1])};
  auto row = co_await load(place, std::string(parts[2]));
  if (!row) throw std::runtime_error(row.error().message);
  if (!*row) {
    if (firing.attempt < kWaitForRow) throw std::runtime_error("the post is not there yet");
    co_return;  // it was never acknowledged
  }
  const auto done = (*row)->post.state == PostState::redacted ? co_await carry_out_redaction(place, **row)
                                                              : co_await carry_out(place, std::move(**row));
  if (!done) throw std::runtime_error(done.error().message);
}

Async<bool> Posts::move(const Place& place, const std::string& id, PostState from, PostState to) {
  co_return store::was_made(co_await store_.update_item(store::Update(table_, key_of(place, id))
                                                            .set(kState, name_of(to))
                                                            .when(store::equals(kState, name_of(from)))));
}

Async<std::vector<std::string>> Posts::users_of(const Place& place, const Row& row, int64_t part) {
  if (row.parts == 0) co_return row.users;
  auto key = store::Row()
                 .set(kPartition, fmt::format("t#{}P#{}#{}", place.tenant, place.inbox, row.post.id))
                 .set(kSort, part_sort(part));
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item({.table = table_, .key = std::move(key), .consistent = true}));
  co_return found.item ? texts_of(*found.item, kUids) : std::vector<std::string>();
}

Async<void> Posts::carry_out(const Place& place, Row row) {
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
    TABELLA_CO_TRY(co_await deliver_to(public_box(place), row.content));
  } else {
    const auto parts = std::max<int64_t>(row.parts, 1);
    for (auto part = post.done / static_cast<int64_t>(kUsersInPart); part < parts; ++part) {
      TABELLA_CO_ASSIGN(const auto users, co_await users_of(place, row, part));
      TABELLA_CO_TRY(co_await deliver(place, row.content, users));
      post.done = part * static_cast<int64_t>(kUsersInPart) + static_cast<int64_t>(users.size());
      const auto noted =
          co_await store_.update_item(store::Update(table_, key_of(place, post.id))
                                          .set(kDone, post.done)
                                          .when(store::equals(kState, name_of(PostState::sending))));
      // Redacted meanwhile: that takes back what was delivered, and goes on from there.
      if (!noted && store::failed_its_condition(noted.error())) co_return store::Result<void>();
      TABELLA_CO_TRY(noted);
    }
  }
  TABELLA_CO_TRY(co_await move(place, post.id, PostState::sending, PostState::done));
  co_return store::Result<void>();
}

// Several users in one transaction; where something stands in the way of one, each by himself.
Async<void> Posts::deliver(const Place& place, const Content& content, std::span<const std::string> users) {
  const size_t each = content.category.empty() ? 2 : 3;
  const size_t at_once = 90 / each;
  while (!users.empty()) {
    const auto some = users.first(std::min(at_once, users.size()));
    users = users.subspan(some.size());
    std::vector<store::TransactWrite> writes;
    const auto sequence = sequence_.next();
    for (const auto& user : some)
      std::ranges::move(arrival({.place = place, .user = user}, content, sequence),
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
    auto writes = arrival(box, content, sequence_.next(in_the_way));
    writes.push_back(still_sending(box.place, content.id));
    const auto made = co_await store_.transact_write_items({.writes = std::move(writes)});
    const auto& reasons = made ? std::vector<store::CancellationReason>() : made.error().reasons;
    const bool there = !reasons.empty() && store::failed_its_condition(reasons.front());
    const bool taken_back = !reasons.empty() && store::failed_its_condition(reasons.back());
    if (made || there || taken_back) {
      changed_(box.partition());
      co_return store::Result<void>();
    }
    if (does_not_want(made.error(), box, content)) co_return store::Result<void>();
    if (made.error().code == store::ErrorCode::validation) {
      // Others are not to wait for an inbox that can take no more.
      log::error("a message cannot be delivered to {}: {}", box.partition(), made.error().message);
      co_return store::Result<void>();
    }
    if (!made.error().unsure && !store::lost_a_race(made.error())) co_return std::unexpected(made.error());
    in_the_way = std::max(in_the_way, sequence_in_the_way(made.error()));
    co_await pause_before(tries);
  }
  co_return std::unexpected(busy());
}

// --- taking back

Async<std::vector<std::string>> Posts::select(Place place, Selection selection) {
  auto ids = std::move(selection.ids);
  if (!selection.key.empty()) {
    TABELLA_CO_ASSIGN(
        const auto found,
        co_await store_.get_item(
            {.table = table_,
             .key = store::Row().set(kPartition, key_partition(place, selection.key)).set(kSort, kPostSort),
             .consistent = true}));
    if (found.item) ids.push_back(store::text_of(*found.item, kPostId));
  }
  if (!selection.group.empty()) {
    TABELLA_CO_ASSIGN(
        const auto rows,
        co_await store::query_all(store_, store::Query(table_)
                                              .partition(kPartition, group_partition(place, selection.group))
                                              .consistent()));
    for (const auto& row : rows) ids.push_back(store::text_of(row, kSort).substr(2));
  }
  co_return ids;
}

Async<std::optional<Post>> Posts::cancel(Place place, std::string id) {
  TABELLA_CO_TRY(co_await move(place, id, PostState::scheduled, PostState::canceled));
  co_return co_await find(std::move(place), std::move(id));
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
  co_return std::unexpected(busy());
}

Async<void> Posts::redact_for(const Box& box, const std::string& id, bool broadcast) {
  if (broadcast) {
    TABELLA_CO_TRY(co_await boxes_.change(box, {id}, [](State& state, int64_t) { state.redacted = true; }));
  } else {
    TABELLA_CO_TRY(co_await boxes_.redact(box, id));
  }
  changed_(box.partition());
  co_return store::Result<void>();
}

Async<void> Posts::carry_out_redaction(const Place& place, const Row& row) {
  for (int64_t part = 0; part < std::max<int64_t>(row.parts, 1); ++part) {
    TABELLA_CO_ASSIGN(const auto users, co_await users_of(place, row, part));
    for (const auto& user : users)
      TABELLA_CO_TRY(co_await redact_for({.place = place, .user = user}, row.post.id, false));
  }
  co_return store::Result<void>();
}

Async<bool> Posts::redact(Place place, std::string id, std::vector<std::string> users) {
  TABELLA_CO_ASSIGN(const auto row, co_await load(place, id));
  if (!row) co_return false;
  if (!users.empty()) {
    const auto state = row->post.state;
    if (state == PostState::scheduled || state == PostState::sending)
      co_return store::fail(store::ErrorCode::resource_in_use,
                            "it is not delivered yet: cancel it, or redact it for all who are to get it");
    for (const auto& user : users)
      TABELLA_CO_TRY(co_await redact_for({.place = place, .user = user}, id, row->post.everyone));
    co_return true;
  }
  // Whatever is still to be delivered of it is not; what was is taken back.
  TABELLA_CO_TRY(co_await store_.update_item(store::Update(table_, key_of(place, id))
                                                 .set(kState, name_of(PostState::redacted))
                                                 .remove(kPostMessage)
                                                 .when(store::exists(kPartition))));
  if (row->post.everyone)
    TABELLA_CO_TRY(co_await redact_broadcast(place, id));
  else if (row->parts == 0 && row->post.state == PostState::done)
    TABELLA_CO_TRY(co_await carry_out_redaction(place, *row));
  else  // behind the delivery, should that be under way: a timer is handled once at a time
    TABELLA_CO_TRY(co_await set_timer(place, id, clock_.now()));
  co_return true;
}

}  // namespace tabella::inbox

// What is published: to some users, to many, or to everybody; now or later; once for each key.
//
// A post is a row of its own, which says whom it is for and how far it has come: by it a message can be
// cancelled, redacted and asked about. To a few users it is one transaction with their messages and counters.
// To many the users are written down first, and a timer carries it out, some at a time; whatever is killed,
// it goes on, and nobody gets it twice.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "inbox/boxes.h"
#include "inbox/digests.h"
#include "inbox/post_row.h"
#include "inbox/sequence.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::inbox {

struct Publication {
  Place place;
  std::vector<std::string> users;  // unless it is for everyone
  Content content;                 // without id and times
  std::chrono::seconds time_to_live{0};
  std::string key = {};          // the same twice is one
  std::string fingerprint = {};  // of the request, where there is a key
  std::optional<TimePoint> deliver_at = {};
  std::vector<ChannelPlan> channels = {};
  std::chrono::seconds gathered_for{0};  // the length of its digest's windows; 0: it comes by itself
};

struct Published {
  Post post;
  bool repeated = false;  // it was there already
};

// Of a group, so many at a time.
inline constexpr size_t kMostOfGroup = 500;

// Which posts.
struct Selection {
  std::vector<std::string> ids;
  std::string key;
  std::string group;
  size_t most = kMostOfGroup;  // of a group
  std::string before = {};     // an id of a group: those before it; empty: from the newest on
};

// Thread-safe.
class Posts {
 public:
  // Called for each box that has changed, with its partition.
  using Changed = std::function<void(const std::string& partition)>;

  struct Parts {
    store::Store& store;
    const Clock& clock;
    Boxes& boxes;
    Sequence& sequence;
    schedule::Schedule& schedule;
    Digests& digests;
  };
  Posts(Parts parts, std::string table, Changed changed);

  // Who it is for at once; for more a timer does it.
  static constexpr size_t kFew = 30;
  static constexpr size_t kMostUsers = 100'000;

  // An error of the kind idempotent_parameter_mismatch: the key was used for something else.
  store::Async<Published> publish(Publication publication);
  store::Async<std::optional<Post>> find(Place place, std::string id);
  // With what it says, where it is not delivered yet or goes elsewhere too.
  store::Async<std::optional<PostRow>> load(Place place, std::string id);
  // For a timer that was set before its post was there. Nothing: it was never acknowledged. Throws what has
  // the timer tried again.
  boost::asio::awaitable<std::optional<PostRow>> load_for(const schedule::Firing& firing, Place place,
                                                          std::string id);
  // The posts that are selected. Of a group those that are still there, the newest first: one that is
  // cancelled, or redacted for all, leaves it.
  store::Async<std::vector<std::string>> select(Place place, Selection selection);
  // Nothing: there is none. One that has begun goes on, as its state says.
  store::Async<std::optional<Post>> cancel(Place place, std::string id);
  // Takes it away from these users, or from all who got it. False: there is none, or none of them has it.
  // From many it goes on after the answer, and so it does where it is one of `many`. An error of the kind
  // resource_in_use: from some of them it can be taken once they have it.
  store::Async<bool> redact(Place place, std::string id, std::vector<std::string> users, bool many = false);

  // Of timers.
  boost::asio::awaitable<void> carry_on(const schedule::Firing& firing);
  // Takes broadcasts that have expired off their counters.
  boost::asio::awaitable<void> retire(const schedule::Firing& firing);
  static constexpr const char* kTimer = "inbox-post";
  static constexpr const char* kExpiryTimer = "inbox-expiry";
  // Of what goes elsewhere (channels.h): tenant#inbox#id#channel#user. Each channel has a kind of its own, so
  // that one cannot keep the others waiting.
  static std::string timer_kind(Channel channel);

 private:
  std::vector<store::TransactWrite> records(const Publication& publication, const Post& post) const;
  store::TransactWrite still_sending(const Place& place, std::string_view id) const;

  store::Async<Published> publish_now(Publication publication, Post post,
                                      std::optional<store::TransactWrite> along);
  store::Async<bool> publish_digest(Digests::Digest digest, store::TransactWrite along);
  store::Async<void> set_channel_timers(const Place& place, const std::string& id,
                                        const std::vector<ChannelPlan>& channels,
                                        std::span<const std::string> users);
  // Whether there were any.
  store::Async<bool> cancel_channel_timers(const Place& place, const PostRow& row, const std::string& user);
  store::Async<void> leave_group(const Place& place, const PostRow& row);
  store::Async<void> free_key(const Place& place, const Post& post);
  static schedule::Timer expiry_timer(const Place& place, const Content& content);
  store::Async<bool> is_key_taken(const Publication& publication);
  store::Async<Published> publish_later(Publication publication, Post post);
  store::Async<Published> repeated(const Publication& publication, const store::Error& failed);
  store::Async<void> set_timer(const Place& place, const std::string& id, TimePoint at);

  store::Async<void> deliver(const Place& place, const Content& content, std::span<const std::string> users);
  store::Async<void> deliver_to(const Box& box, const Content& content);
  store::Async<void> gather_for(const Box& box, const Content& content);
  store::Async<void> carry_out(const Place& place, PostRow row);
  store::Async<void> carry_out_redaction(const Place& place, const PostRow& row);
  store::Async<bool> move(const Place& place, const std::string& id, PostState from, PostState to);
  store::Async<bool> redact_for(const Box& box, const Content& content);
  store::Async<void> redact_gathered(const Box& box, const Content& content);
  store::Async<void> redact_from_post(const Place& place, const std::string& digest, const std::string& id);
  store::Async<void> redact_broadcast(const Place& place, const std::string& id);
  store::Async<std::vector<std::string>> users_of(const Place& place, const PostRow& row, int64_t part);

  store::Store& store_;
  const Clock& clock_;
  Boxes& boxes_;
  Sequence& sequence_;
  schedule::Schedule& schedule_;
  Digests& digests_;
  const std::string table_;
  const Changed changed_;
};

}  // namespace tabella::inbox

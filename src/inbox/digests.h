// Messages of a category that come as one: gathered for each user, and published together when their window
// ends. Windows begin at multiples of their length, as hours do.
//
// What is gathered is a row d#… in the user's box, with an attribute for each message, and a row g#… that
// says that it was: gathering twice is gathering once. The digest is a post of its own, whose transaction
// takes the first away; so a message is in one digest, or still in the row. What comes behind its window's
// end, as after a crash, is a second digest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "inbox/model.h"
#include "inbox/post_row.h"
#include "inbox/settings.h"
#include "schedule/schedule.h"
#include "store/store.h"

namespace tabella::inbox {

// Thread-safe.
class Digests {
 public:
  Digests(store::Store& store, const Clock& clock, Settings& settings, schedule::Schedule& schedule,
          std::string table);

  // Publishes the digest under that id, and makes `along` with it. False: there is a post of that id.
  struct Digest {
    Box box;
    Content content;
    std::vector<ChannelPlan> channels;
  };
  using Publish = std::function<store::Async<bool>(Digest digest, store::TransactWrite along)>;
  void publish_by(Publish publish) { publish_ = std::move(publish); }

  static TimePoint end_of_window(TimePoint at, std::chrono::seconds every);

  // A row has room for some; what finds it full goes to its next part.
  static constexpr int kMostParts = 100;
  // Before something is gathered.
  store::Async<void> set_timer(const Box& box, const Content& content, int part);
  store::Update gathering(const Box& box, const Content& content, int part) const;
  // That it has not been before: it may be in a digest already, whose row is gone.
  store::Put was_gathered(const Box& box, const Content& content) const;
  // Whether its window has ended, or is about to.
  static bool is_late(const Content& content, TimePoint now);

  // Takes a message out of what is still gathered. The ids of the digests that it may be in.
  store::Async<std::vector<std::string>> take_out(const Box& box, const Content& content);
  // What a digest says without it; nothing: it says nothing more.
  static std::optional<item::Value> without(item::ValueView digest, const std::string& id);

  // Of timers.
  boost::asio::awaitable<void> carry_out(const schedule::Firing& firing);

 private:
  store::Async<std::optional<item::Value>> restore(const Place& place, Content& content,
                                                   const std::string& id);
  store::Async<void> publish(const Box& box, const std::string& category, int64_t end, int part);
  store::Async<bool> is_there(const store::Item& key);

  store::Store& store_;
  const Clock& clock_;
  Settings& settings_;
  schedule::Schedule& schedule_;
  const std::string table_;
  Publish publish_;
};

// Where messages of an inbox go besides the bell. What was asked for by name is wanted unless a user says
// otherwise.
std::vector<ChannelPlan> channel_plans(const Settings::Rules& rules, std::string_view category,
                                       const std::vector<Channel>& asked);

}  // namespace tabella::inbox

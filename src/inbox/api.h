// /inbox over HTTP: for tenants (api_tenants.cpp), for who publishes (api_posts.cpp), for users
// (api_messages.cpp, api_preferences.cpp), as it happens (api_live.cpp), and the bell itself
// (api_script.cpp). Who may do what is in api.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "house/routes.h"
#include "inbox/boxes.h"
#include "inbox/channels.h"
#include "inbox/news.h"
#include "inbox/posts.h"
#include "inbox/settings.h"
#include "inbox/snoozes.h"
#include "inbox/tenant_keys.h"
#include "inbox/user_tokens.h"
#include "net/outbound.h"
#include "net/streams.h"

namespace tabella::inbox {

class Api {
 public:
  struct Parts {
    Settings& settings;
    Boxes& boxes;
    Posts& posts;
    Snoozes& snoozes;
    News& news;
    TenantKeys& keys;
    Channels& channels;
    net::Outbound& outbound;
    const Clock& clock;
  };
  explicit Api(Parts parts) : parts_(parts) {}

  using Routes = house::Routes<Api>;
  static void add_routes(Routes routes);

 private:
  using Task = boost::asio::awaitable<void>;
  using Call = net::Call;

  // What a path names; if it is none, that was answered.
  static std::optional<std::string> tenant_of(Call& call);
  static std::optional<Place> place_of(Call& call);

  // Who may publish and set: an API token with inbox:admin, a person, or the tenant's secret. False: that was
  // answered.
  boost::asio::awaitable<bool> admit_admin(Call& call, const std::string& tenant);
  boost::asio::awaitable<bool> is_admin(Call& call, const std::string& tenant);
  // Whose inbox it is. Nothing: that was answered.
  // `until` becomes the end of a token, where that is earlier.
  boost::asio::awaitable<std::optional<Box>> box_of(Call& call, TimePoint* until = nullptr);
  static void refuse_stranger(Call& call);
  // Nothing: that was answered.
  boost::asio::awaitable<std::optional<TokenKeys>> keys_of(Call& call, const std::string& tenant);

  static void add_tenant_routes(Routes& routes);
  Task show_tenant(Call& call);
  Task set_tenant(Call& call);
  Task show_inbox(Call& call);
  Task set_inbox(Call& call);
  Task show_secret(Call& call);
  Task make_token(Call& call);
  Task refresh_token(Call& call);

  static void add_preference_routes(Routes& routes);
  Task show_preferences(Call& call);
  Task set_preferences(Call& call);
  Task answer_preferences(Call& call, const Box& box, const Wishes& wishes);
  // Whom an admin's path names. Nothing: that was answered.
  boost::asio::awaitable<std::optional<std::string>> user_of(Call& call);
  Task show_profile(Call& call);
  Task set_profile(Call& call);
  Task remove_profile(Call& call);

  static void add_post_routes(Routes& routes);
  Task post(Call& call);
  Task show_post(Call& call);
  Task cancel_posts(Call& call);
  Task redact(Call& call);

  static void add_message_routes(Routes& routes);
  Task last_messages(Call& call);
  Task list_messages(Call& call);
  Task answer_feed(Call& call, Box box, FeedRequest request);
  Task show_counts(Call& call);
  Task mark_read(Call& call);
  Task mark_unread(Call& call);
  Task archive(Call& call);
  Task unarchive(Call& call);
  Task snooze(Call& call);
  Task bring_back(Call& call);
  Task mark_seen(Call& call);
  Task change(Call& call, Boxes::Change change);

  static void add_script_route(Routes& routes);
  Task script(Call& call);

  static void add_live_routes(Routes& routes);
  Task live(Call& call);
  // What a stream has told.
  struct Told {
    bool was_away = false;
    Mark since = {};
    std::optional<Marks> marks = {};
    std::string counts = {};
  };
  Task tell(net::EventStream& stream, Box box, std::optional<Mark> since, TimePoint until);
  boost::asio::awaitable<bool> tell_changes(net::EventStream& stream, const Box& box, Told& told);
  boost::asio::awaitable<bool> tell_counts(net::EventStream& stream, const Box& box, Told& told);

  static constexpr size_t kMostBytesOfPages = size_t{32} << 20;

  const Parts parts_;
  // As they were answered last: one in which nothing has changed is neither read nor written again. Whether
  // that is so is asked each time (KnownPage), so one from here is as exact as any.
  struct AnsweredPage {
    KnownPage known;
    std::string json;
  };
  LruCache<AnsweredPage> pages_{kMostBytesOfPages};
};

// Shared by its files. What cannot be read was answered.
std::optional<WishChanges> read_wish_changes(net::Call& call, JsonValue object, std::string_view what);
std::optional<Wishes> read_wishes_member(net::Call& call, net::JsonBody& body, std::string_view name);
void write_wishes_member(JsonObjectWriter& out, std::string_view name, const Wishes& wishes);
void write_entry(std::string& out, const Entry& entry);
void write_counts(std::string& out, const Counts& counts);
void write_marks(std::string& out, const Marks& marks, const Mark& as_of);
std::string sequence_text(const Mark& mark);
std::optional<Mark> parse_sequence(std::string_view text);

// Routes that check themselves who comes in, besides the gate: a tenant's backend, and its users as well.
net::Route tenant_route(std::string method, std::string path, std::string summary);
net::Route user_route(std::string method, std::string path, std::string summary);

}  // namespace tabella::inbox

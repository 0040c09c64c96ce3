// Sessions: how a browser stays logged in, with a cookie instead of the password. In the store, so that they
// hold in several processes and over a restart; of the cookie only a hash is there.
//
// A session ends with logout, twelve hours after its last use, a week after its beginning, and when its
// user's password is changed in the file of users, or the user is no longer there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "access/recent.h"
#include "base/clock.h"
#include "base/passwords.h"
#include "net/http.h"
#include "store/store.h"

namespace tabella::access {

// Thread-safe; borrows all it is given.
class Sessions {
 public:
  Sessions(store::Store& store, const Clock& clock, const Passwords& passwords, std::string table);

  // A new session of somebody who is in the file of users: what its cookie holds.
  store::Async<std::string> begin(std::string user);
  // Whose it is; nothing if it has ended. Remembers the answer for a moment.
  store::Async<std::optional<std::string>> find(std::string_view cookie);
  store::Async<void> end(std::string_view cookie);

 private:
  struct Row {
    std::string user;
    std::string fingerprint;
    TimePoint created;
    TimePoint expires;
  };
  static Row to_row(item::ItemView row);
  store::Async<std::optional<Row>> read(std::string id);
  boost::asio::awaitable<void> extend(std::string id, TimePoint until);

  store::Store& store_;
  const Clock& clock_;
  const Passwords& passwords_;
  const std::string table_;
  Recent<std::optional<Row>> recent_;  // by id
};

// What the cookie of a request holds; empty: there is none.
std::string_view session_cookie(const net::HttpRequest& request);

// The value of Set-Cookie; `path` is where it is to be sent, and an empty `content` removes it.
std::string set_session_cookie(std::string_view content, std::string_view path, bool secure);

}  // namespace tabella::access

// API tokens: how programs show who they are, and what they may do. Of each only a hash is in the store; it
// is of 256 random bits, so that a fast one will do.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/recent.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace tabella::access {

struct Token {
  std::string id;    // not secret
  std::string name;  // what it is for
  std::vector<std::string> scopes;
  TimePoint created;
  std::optional<TimePoint> expires;
  std::optional<TimePoint> last_used;
};

// What every secret begins with.
inline constexpr std::string_view kTokenPrefix = "tab_";

// "mail:read", "mail:*" or "*"; the error is a sentence.
Checked<> check_scope(std::string_view scope);

// Thread-safe; borrows the store and the clock.
class Tokens {
 public:
  Tokens(store::Store& store, const Clock& clock, std::string table);

  struct Made {
    Token token;
    std::string secret;  // tab_<id>_<random>: shown once
  };
  store::Async<Made> create(std::string name, std::vector<std::string> scopes,
                            std::optional<std::chrono::seconds> lifetime);
  // The oldest first, with those whose time is over.
  store::Async<std::vector<Token>> list();
  store::Async<bool> revoke(std::string id);  // false: there is none

  // The token behind a secret; nothing if there is none, or its time is over. Remembers the answer for a
  // moment, so that a revocation takes effect everywhere within two seconds; notes when it was used last, at
  // most once a minute.
  store::Async<std::optional<Token>> find(std::string_view secret);
  // Whether there are any, with those whose time is over, as far as was known two seconds ago.
  store::Async<bool> any();

 private:
  struct Row {
    Token token;
    std::string hash;
  };
  static Row to_row(item::ItemView row);
  store::Async<std::optional<Row>> read(std::string id);
  boost::asio::awaitable<void> note_use(Token token);

  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
  Recent<std::optional<Row>> recent_;  // by id
  Recent<bool> any_;
};

}  // namespace tabella::access

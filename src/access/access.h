// Who may come in over HTTP: people by name and password (a session, or Basic), programs by API tokens with
// scopes, AWS clients by SigV4 with the access keys of the DynamoDB door. One check for all systems.
//
// With neither users nor tokens everybody may, which is for programs on this machine: pages of other origins
// are refused by the router in any case.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/router.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::access {

struct Token {
  std::string id;    // not secret
  std::string name;  // what it is for
  std::vector<std::string> scopes;
  TimePoint created;
  std::optional<TimePoint> expires;
  std::optional<TimePoint> last_used;
};

// Tokens in the store: of each only a hash. Thread-safe.
class Tokens {
 public:
  Tokens(store::Store& store, const Clock& clock, std::string table);
  static store::TablePlan plan(const std::string& table);

  struct Made {
    Token token;
    std::string secret;  // tab_<id>_<random>: shown once
  };
  store::Async<Made> create(std::string name, std::vector<std::string> scopes,
                            std::optional<std::chrono::seconds> lifetime);
  store::Async<std::vector<Token>> list();
  store::Async<bool> revoke(std::string id);  // false: there is none

  // The token behind a secret; nothing if there is none, or its time is over. Remembers the answer for a
  // moment, so that a revocation takes effect everywhere within two seconds; notes when it was used last, at
  // most once a minute.
  store::Async<std::optional<Token>> find(std::string_view secret);
  // Whether there are any, as far as was known two seconds ago.
  store::Async<bool> any();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tabella::access

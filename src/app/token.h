// `tabella token create|list|revoke`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::app {

struct TokenOptions {
  enum class Action { create, list, revoke };
  Action action = Action::list;
  std::string name;                             // create: what it is for
  std::vector<std::string> scopes;              // create: "mail:read", "mail:*", "*"
  std::optional<std::chrono::seconds> expires;  // create: after how long; nothing: never
  std::string id;                               // revoke
  std::string table = "tabella-access";         // with the prefix of all tables
};

// What was asked for goes to standard output, the secret of a new token alone, so that a script can keep it;
// what there is to say about it goes to standard error. Returns the exit code.
int token(store::Store& store, const Clock& clock, const TokenOptions& options);

}  // namespace tabella::app

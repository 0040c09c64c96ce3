// The secret of each tenant, which signs tokens, is good as X-Inbox-Key and makes that of webhooks; and the
// tenant's own public keys. Kept sealed in the table, made when it is first asked for.
#pragma once

#include <string>

#include "access/secrets.h"
#include "inbox/settings.h"
#include "inbox/user_tokens.h"

namespace tabella::inbox {

// Thread-safe. Errors have a sentence for the caller.
class TenantKeys {
 public:
  TenantKeys(Settings& settings, const access::Secrets& secrets) : settings_(settings), secrets_(secrets) {}

  // The secret is empty where there is none yet.
  store::Async<TokenKeys> find(std::string tenant);
  // Made where there is none yet.
  store::Async<std::string> secret(std::string tenant);
  // Another one, if `anew`, though there is one: what was signed by that is good no longer.
  store::Async<std::string> make_secret(std::string tenant, bool anew);

 private:
  store::Result<std::string> open(const std::string& sealed, const std::string& tenant) const;

  Settings& settings_;
  const access::Secrets& secrets_;
};

}  // namespace tabella::inbox

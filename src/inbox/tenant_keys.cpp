#include "inbox/tenant_keys.h"

#include "base/checksum.h"
#include "base/random.h"

namespace tabella::inbox {

using store::Async;

namespace {

std::string sealing_context(const std::string& tenant) { return "inbox tenant " + tenant; }

}  // namespace

store::Result<std::string> TenantKeys::open(const std::string& sealed, const std::string& tenant) const {
  auto secret = secrets_.open(sealed, sealing_context(tenant));
  if (!secret) return store::fail(store::ErrorCode::unavailable, secret.error());
  return std::move(*secret);
}

Async<TokenKeys> TenantKeys::find(std::string tenant) {
  TABELLA_CO_ASSIGN(const auto settings, co_await settings_.tenant(tenant));
  TokenKeys keys;
  if (!settings) co_return keys;
  keys.public_keys = settings->public_keys;
  if (settings->secret.empty()) co_return keys;
  TABELLA_CO_ASSIGN(keys.secret, open(settings->secret, tenant));
  co_return keys;
}

Async<std::string> TenantKeys::secret(std::string tenant) {
  TABELLA_CO_ASSIGN(auto keys, co_await find(tenant));
  if (!keys.secret.empty()) co_return std::move(keys.secret);
  co_return co_await make_secret(std::move(tenant), false);
}

Async<std::string> TenantKeys::make_secret(std::string tenant, bool anew) {
  const auto sealed = secrets_.seal("inbox_" + to_hex(random_bytes(32)), sealing_context(tenant));
  if (!sealed) co_return store::fail(store::ErrorCode::unavailable, sealed.error());
  TABELLA_CO_ASSIGN(const auto kept, co_await settings_.put_secret(tenant, *sealed, anew));
  co_return open(kept, tenant);
}

}  // namespace tabella::inbox

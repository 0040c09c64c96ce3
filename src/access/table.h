// The table of tokens and sessions: the only place that knows its attribute names.
//
//   kind, id (key)   "token" and its id; "session" and the SHA-256 of what its cookie holds, in hexadecimal
//   created          in milliseconds, as are the other times but one
//   a token          name, scopes, hash, valid_until, last_used
//   a session        user, fingerprint, expires (in seconds: it goes by time to live)
//
// A token whose time is over stays until it is revoked: whether there are any decides whether strangers may
// come in, and no door opens by itself.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "item/value.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::access {

inline constexpr const char* kToken = "token";
inline constexpr const char* kSession = "session";

store::TablePlan plan(const std::string& table);

item::Item key_of(const char* kind, const std::string& id);
store::Async<std::optional<item::Item>> get_row(store::Store& store, std::string table, const char* kind,
                                                std::string id);
// False: it was not there.
store::Async<bool> remove_row(store::Store& store, std::string table, const char* kind, std::string id);

// Notes something about a row, and keeps nobody waiting for it. What fails is logged: the next use notes it
// again. The store must outlive the executor that this is called on.
boost::asio::awaitable<void> update_aside(store::Store& store, store::UpdateItemRequest request);

}  // namespace tabella::access

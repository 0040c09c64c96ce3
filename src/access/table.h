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

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "access/recent.h"
#include "base/clock.h"
#include "base/result.h"
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
// The row as `to_row` reads it: as it was known a moment ago, or as the store has it now.
template <class Row>
store::Async<std::optional<Row>> read_row(store::Store& store, const Clock& clock, std::string table,
                                          const char* kind, std::string id,
                                          Recent<std::optional<Row>>& recent, Row (*to_row)(item::ItemView)) {
  if (auto known = recent.find(id)) co_return std::move(*known);
  const auto asked = clock.elapsed();
  TABELLA_CO_ASSIGN(const auto found, co_await get_row(store, std::move(table), kind, id));
  std::optional<Row> row;
  if (found) row = to_row(*found);
  recent.keep(std::move(id), row, asked);
  co_return row;
}
// False: it was not there.
store::Async<bool> remove_row(store::Store& store, std::string table, const char* kind, std::string id);

// Notes something about a row, and keeps nobody waiting for it. What fails is logged: the next use notes it
// again. The store must outlive the executor that this is called on.
boost::asio::awaitable<void> update_aside(store::Store& store, store::UpdateItemRequest request);

}  // namespace tabella::access

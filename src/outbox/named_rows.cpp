#include "outbox/named_rows.h"

#include <algorithm>

#include "base/base64.h"

namespace tabella::outbox {

using store::Async;

Async<std::optional<item::Item>> find_named(store::Store& store, std::string table, std::string id,
                                            std::string name) {
  TABELLA_CO_ASSIGN(
      auto found,
      co_await store.get_item({.table = std::move(table), .key = named_key(id, name), .consistent = true}));
  co_return std::move(found.item);
}

Async<bool> remove_named(store::Store& store, std::string table, std::string id, std::string name) {
  TABELLA_CO_ASSIGN(
      const auto removed,
      co_await store.delete_item(
          store::Delete(std::move(table), named_key(id, name)).returning(store::ReturnValues::all_old)));
  co_return removed.attributes.has_value();
}

Async<NamedPage> list_named(store::Store& store, std::string table, std::string id, size_t limit,
                            std::string from) {
  store::Query query(std::move(table));
  query.partition("id", id).limit(static_cast<int64_t>(std::max<size_t>(limit, 1))).consistent();
  if (!from.empty()) {
    const auto last = from_base64(from);
    if (!last || last->empty()) co_return store::refuse("this token is none that was given out here");
    query.after("part", *last);
  }
  TABELLA_CO_ASSIGN(auto found, co_await store.query(std::move(query)));
  NamedPage page{.rows = std::move(found.items), .next = {}};
  if (found.last_key) page.next = to_base64(store::text_of(*found.last_key, "part"));
  co_return page;
}

}  // namespace tabella::outbox

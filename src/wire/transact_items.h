// What TransactWriteItems and TransactGetItems share.
#pragma once

#include <fmt/format.h>

#include "store/table.h"
#include "wire/reader.h"

namespace tabella::wire {

// TransactItems, of which there are one to a hundred.
inline std::optional<JsonValue> read_transact_items(const Reader& reader) {
  auto items = reader.list("TransactItems");
  reader.require("TransactItems", items);
  reader.count("TransactItems", items, "[...]", 1, 100);
  return items;
}

// TableName of an action.
inline std::string read_action_table(const Reader& reader) {
  const auto name = reader.string("TableName");
  reader.require("TableName", name);
  if (name) reader.pattern("TableName", std::string(store::bare_table_name(*name)));
  reader.length("TableName", name, 1, 1024);
  return name.value_or("");
}

}  // namespace tabella::wire

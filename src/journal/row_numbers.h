// Numbers in rows that other programs may have written. store/rows.h has the like for rows of our own.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "item/number.h"
#include "item/value.h"

namespace tabella::journal {

// Nothing where it is missing, no number, or none that fits.
inline std::optional<int64_t> integer_in(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  if (!value || value->type() != item::Type::N) return std::nullopt;
  return item::number_to_int(value->content());
}

// Likewise where it is below 0.
inline std::optional<uint64_t> count_in(item::ItemView row, std::string_view name) {
  const auto number = integer_in(row, name);
  return number && *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
}

}  // namespace tabella::journal

// Reading the attributes of our own rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "item/number.h"
#include "item/value.h"

namespace tabella::store {

// Empty where there is no such string.
inline std::string text_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::S ? std::string(value->content()) : std::string();
}

// 0 where there is no such number.
inline int64_t number_of(item::ItemView row, std::string_view name) {
  const auto value = row.find(name);
  return value && value->type() == item::Type::N ? item::number_to_int(value->content()).value_or(0) : 0;
}

}  // namespace tabella::store

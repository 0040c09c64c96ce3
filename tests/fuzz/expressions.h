// What the fuzzers of expressions share: names, values and an item to try them on.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "expression/bind.h"
#include "item/attribute_json.h"

namespace tabella::fuzz {

inline const expression::Names kNames = {{"#n", "n"}, {"#m", "m"}, {"#l", "l"}, {"#d", "a.b"}};

inline item::Item item_of(std::string_view json) {
  JsonDocument document;
  return *item::read_item(*document.parse(json));
}

inline const item::Item& values() {
  static const item::Item kValues = item_of(
      R"({":s":{"S":"text"},":n":{"N":"2"},":b":{"B":"AQID"},":l":{"L":[{"N":"1"}]},":m":{"M":{"k":{"S":"v"}}},)"
      R"(":ss":{"SS":["a","b"]},":ns":{"NS":["1","2"]},":t":{"BOOL":true},":z":{"NULL":true},":big":{"N":"9e125"}})");
  return kValues;
}

inline const item::Item& item() {
  static const item::Item kItem = item_of(
      R"({"pk":{"S":"k"},"n":{"N":"3"},"s":{"S":"text"},"l":{"L":[{"S":"x"},{"M":{"y":{"N":"7"}}},{"L":[]}]},)"
      R"("m":{"M":{"x":{"S":"deep"},"l":{"L":[{"N":"1"}]}}},"ss":{"SS":["a","c"]},"ns":{"NS":["1"]},"a.b":{"B":"AQ=="}})");
  return kItem;
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace tabella::fuzz

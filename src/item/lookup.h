// Finds values in one item by name and place, many times over. A few look-ups walk the item; from then on its
// wide maps and lists get an index, so that no expression costs its paths times the item's width.
//
// Borrows the item. On one thread.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "item/value.h"

namespace tabella::item {

class Lookup {
 public:
  Lookup() = default;  // there is no item
  explicit Lookup(ItemView item) : item_(item), exists_(true) {}
  explicit Lookup(const ItemView* item) : item_(item ? *item : ItemView()), exists_(item != nullptr) {}

  bool item_exists() const { return exists_; }
  std::optional<ValueView> attribute(std::string_view name);
  std::optional<ValueView> member(ValueView map, std::string_view name);
  std::optional<ValueView> element(ValueView list, size_t index);

 private:
  struct Index {
    size_t walks = 0;
    std::unordered_map<std::string_view, ValueView, KeyedHash> by_name;
    std::vector<ValueView> by_place;
  };

  // Of the map or list whose bytes begin there.
  Index* index_of(const char* bytes);

  ItemView item_;
  bool exists_ = false;
  Index attributes_;
  std::unordered_map<const char*, std::unique_ptr<Index>> nested_;
};

}  // namespace tabella::item

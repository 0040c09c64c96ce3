#include "item/lookup.h"

namespace tabella::item {
namespace {

// Walks that are cheaper than making an index.
constexpr size_t kWalks = 4;
constexpr size_t kNarrow = 16;

bool worth_an_index(size_t& walks, size_t width) { return width > kNarrow && ++walks > kWalks; }

template <class Index>
std::optional<ValueView> find_in(const Index& index, std::string_view name) {
  const auto at = index.by_name.find(name);
  return at == index.by_name.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

std::optional<ValueView> Lookup::attribute(std::string_view name) {
  if (!exists_) return std::nullopt;
  if (attributes_.by_name.empty()) {
    if (!worth_an_index(attributes_.walks, item_.count())) return item_.find(name);
    for (Attributes a(item_); a.next();) attributes_.by_name.emplace(a.name(), a.value());
  }
  return find_in(attributes_, name);
}

std::optional<ValueView> Lookup::member(ValueView map, std::string_view name) {
  if (map.type() != Type::M) return std::nullopt;
  if (map.count() <= kNarrow) return map.member(name);
  auto* index = index_of(map.bytes().data());
  if (index->by_name.empty()) {
    if (!worth_an_index(index->walks, map.count())) return map.member(name);
    for (Elements e(map); e.next();) index->by_name.emplace(e.name(), e.value());
  }
  return find_in(*index, name);
}

std::optional<ValueView> Lookup::element(ValueView list, size_t place) {
  if (list.type() != Type::L || place >= list.count()) return std::nullopt;
  if (list.count() <= kNarrow) return list.element(place);
  auto* index = index_of(list.bytes().data());
  if (index->by_place.empty()) {
    if (!worth_an_index(index->walks, list.count())) return list.element(place);
    for (Elements e(list); e.next();) index->by_place.push_back(e.value());
  }
  return index->by_place[place];
}

Lookup::Index* Lookup::index_of(const char* bytes) {
  auto& index = nested_[bytes];
  if (!index) index = std::make_unique<Index>();
  return index.get();
}

}  // namespace tabella::item

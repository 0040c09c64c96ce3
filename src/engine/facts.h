// How definitions stand in the catalogue: as a map value, one member per fact, so that a newer version can
// add facts without a new format.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "item/number.h"
#include "item/value.h"
#include "store/table.h"

namespace tabella::engine {

class FactWriter {
 public:
  void text(std::string_view name, std::string value) {
    map_.set_member(name, item::Value::string(std::move(value)));
  }
  void integer(std::string_view name, int64_t value) { map_.set_member(name, item::Value::integer(value)); }
  void flag(std::string_view name, bool value) { map_.set_member(name, item::Value::boolean(value)); }
  void value(std::string_view name, item::Value value) { map_.set_member(name, std::move(value)); }
  void time(std::string_view name, const std::optional<TimePoint>& at) {
    if (!at) return;
    integer(name, epoch_milliseconds(*at));
  }
  void throughput(std::string_view name, const std::optional<store::Throughput>& t) {
    if (t) value(name, item::Value::list({item::Value::integer(t->read), item::Value::integer(t->write)}));
  }
  void throughput(std::string_view name, const std::optional<store::OptionalThroughput>& t) {
    if (t)
      value(name, item::Value::list({item::Value::integer(t->read.value_or(-1)),
                                     item::Value::integer(t->write.value_or(-1))}));
  }
  item::Value take() { return std::move(map_); }

 private:
  item::Value map_ = item::Value::map();
};

// Reads members of a map value; what is absent keeps its default.
class FactReader {
 public:
  explicit FactReader(item::ValueView map) : map_(map) {}
  std::optional<item::ValueView> find(std::string_view name) const { return map_.member(name); }
  std::string text(std::string_view name) const {
    const auto v = find(name);
    return v ? std::string(v->content()) : std::string();
  }
  std::optional<int64_t> integer(std::string_view name) const {
    const auto v = find(name);
    return v ? item::number_to_int(v->content()) : std::nullopt;
  }
  bool flag(std::string_view name) const {
    const auto v = find(name);
    return v && v->boolean();
  }
  std::optional<TimePoint> time(std::string_view name) const {
    const auto ms = integer(name);
    return ms ? std::optional(TimePoint(std::chrono::milliseconds(*ms))) : std::nullopt;
  }
  std::optional<store::Throughput> throughput(std::string_view name) const {
    const auto v = find(name);
    return v ? std::optional(store::Throughput{at(*v, 0), at(*v, 1)}) : std::nullopt;
  }
  std::optional<store::OptionalThroughput> optional_throughput(std::string_view name) const {
    const auto t = throughput(name);
    if (!t) return std::nullopt;
    const auto given = [](int64_t units) { return units < 0 ? std::nullopt : std::optional(units); };
    return store::OptionalThroughput{given(t->read), given(t->write)};
  }

 private:
  static int64_t at(item::ValueView list, size_t i) {
    const auto v = list.element(i);
    return v ? item::number_to_int(v->content()).value_or(0) : 0;
  }
  item::ValueView map_;
};

inline item::Value encode_keys(const std::vector<store::KeyElement>& keys) {
  std::vector<item::Value> list;
  for (const auto& key : keys)
    list.push_back(
        item::Value::list({item::Value::string(key.name), item::Value::integer(static_cast<int>(key.role))}));
  return item::Value::list(std::move(list));
}

inline std::vector<store::KeyElement> decode_keys(std::optional<item::ValueView> list) {
  std::vector<store::KeyElement> keys;
  if (!list) return keys;
  for (item::Elements e(*list); e.next();)
    keys.push_back({std::string(e.value().element(0)->content()),
                    static_cast<store::KeyRole>(*item::number_to_int(e.value().element(1)->content()))});
  return keys;
}

}  // namespace tabella::engine

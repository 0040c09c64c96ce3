// The highest numbers of the entities that were heard of last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "journal/event.h"

namespace tabella::journal {

// Not thread-safe.
class RecentNumbers {
 public:
  // Remembers so many entities at least, and at most twice as many.
  explicit RecentNumbers(size_t remembered = 20'000) : remembered_(remembered) {}

  void note(const Entity& entity, uint64_t number) {
    if (now_.size() >= remembered_) before_ = std::exchange(now_, {});
    auto& highest = now_[name_of(entity)];
    highest = std::max(highest, number);
  }
  // 0: not heard of.
  uint64_t of(const Entity& entity) const {
    const auto name = name_of(entity);
    return std::max(find(now_, name), find(before_, name));
  }

 private:
  using Numbers = std::unordered_map<std::string, uint64_t, KeyedHash>;

  static std::string name_of(const Entity& entity) { return entity.journal + '#' + entity.pid; }
  static uint64_t find(const Numbers& numbers, const std::string& name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }

  const size_t remembered_;
  Numbers now_;
  Numbers before_;
};

}  // namespace tabella::journal

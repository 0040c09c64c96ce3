// What programs with Akka's or Pekko's plugin write, in both layouts; from their own tables, and not by the
// code that is tested.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "journal/event.h"
#include "journal/layout.h"

namespace tabella::journal {

enum class Kind { blocks, keys };
std::string name_of(Kind kind);
inline void PrintTo(Kind kind, std::ostream* out) { *out << name_of(kind); }
std::unique_ptr<Layout> layout_of(Kind kind, const std::string& table);

inline constexpr const char* kForeignWriter = "295fa116-0000-4000-8000-000000000001";

// An event and its counter; what is in it is its number.
std::vector<item::Item> foreign_rows(Kind kind, const Entity& entity, uint64_t number,
                                     std::optional<Event::BatchPlace> place = {});
// What says that all below is deleted.
std::vector<item::Item> foreign_low_rows(Kind kind, const Entity& entity, uint64_t lowest);

}  // namespace tabella::journal

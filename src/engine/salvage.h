// Copies what can be read of a damaged store into a new one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tabella::engine {

struct SalvageReport {
  struct Table {
    std::string name;
    uint64_t copied = 0;      // items
    int64_t expected = 0;     // items, by what the store had counted
    uint64_t unreadable = 0;  // items that were found and are damaged
    uint64_t gaps = 0;        // places where nothing could be read
  };
  std::vector<Table> tables;
  bool lost = false;                 // more is gone than the tables show
  std::vector<std::string> remarks;  // each a sentence
  bool complete() const;             // nothing is known to be lost
};

// Tables with their items, indexes, tags and settings are copied; indexes and counts are made anew. The
// records of streams and idempotency tokens are not: streams that were enabled begin anew. Changes nothing in
// `from`. `progress` is told now and then how many items there are. Throws std::runtime_error with a sentence
// for the user.
SalvageReport salvage(const std::filesystem::path& from, const std::filesystem::path& to,
                      const std::function<void(uint64_t)>& progress);

}  // namespace tabella::engine

// Checks a store at rest: that everything in it is whole, and that what belongs together is there together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tabella::engine {

struct VerifyReport {
  uint64_t tables = 0;
  uint64_t items = 0;
  uint64_t index_entries = 0;
  uint64_t expiry_entries = 0;
  uint64_t streams = 0;
  uint64_t records = 0;
  uint64_t tokens = 0;
  uint64_t problems = 0;
  std::vector<std::string> first_problems;  // each a sentence; not all, if they are many
};

// `progress` is told now and then how many entries have been looked at. Changes nothing. Throws
// std::runtime_error with a sentence for the user if there is no store that can be opened.
VerifyReport verify(const std::filesystem::path& folder, const std::function<void(uint64_t)>& progress);

}  // namespace tabella::engine

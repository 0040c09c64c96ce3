// The rows of the order (journal/order.h): their keys, and the bytes that are in them.
// docs/storage_format.md, "Journal", has the same. Do not change: stores are full of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "item/value.h"
#include "store/error.h"

namespace tabella::journal {

inline constexpr const char* kOrderPartition = "par";
inline constexpr const char* kOrderNumber = "num";
inline constexpr const char* kOrderRuns = "runs";
inline constexpr const char* kOrderNext = "next";
inline constexpr const char* kOrderShards = "shards";

// How many positions are in a partition of rows; no row reaches into the next.
inline constexpr uint64_t kOrderBlock = 10'000;
inline uint64_t block_of(uint64_t position) { return (position - 1) / kOrderBlock; }
inline uint64_t last_of_block(uint64_t position) { return (block_of(position) + 1) * kOrderBlock; }

item::Item order_key(const std::string& journal);
std::string all_partition(const std::string& journal, uint64_t position);
std::string tag_partition(const std::string& journal, const std::string& tag);

// Consecutive events of one entity at consecutive positions.
struct Run {
  uint64_t position = 0;
  std::string pid;
  uint64_t number = 0;
  uint64_t count = 1;

  uint64_t last_position() const { return position + count - 1; }
  uint64_t last_number() const { return number + count - 1; }
  bool operator==(const Run&) const = default;
};

// Whether the runs of a row follow each other without a gap (all), or with some (a tag).
enum class Positions { dense, sparse };

class RunEncoder {
 public:
  explicit RunEncoder(Positions positions) : positions_(positions) {}

  // Behind all before; one that continues the last becomes one with it.
  void add(Run run);
  // Not less than the bytes that it takes, with one more of this entity.
  size_t size_with(std::string_view pid) const { return bytes_.size() + last_.pid.size() + pid.size() + 64; }
  uint64_t first() const { return first_; }  // position
  std::string finish() &&;

 private:
  void flush();

  const Positions positions_;
  std::string bytes_;
  std::unordered_map<std::string, size_t, KeyedHash> pids_;
  uint64_t first_ = 0;
  uint64_t end_ = 0;  // the position behind the last run in bytes_
  Run last_{.count = 0};
};

// Damaged bytes are an error.
store::Result<std::vector<Run>> decode_runs(std::string_view bytes, Positions positions, uint64_t first);
// Of a row of the table; the error says which.
store::Result<std::vector<Run>> runs_of(item::ItemView row, Positions positions);

}  // namespace tabella::journal

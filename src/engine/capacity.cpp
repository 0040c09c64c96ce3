#include "engine/capacity.h"

#include <algorithm>

namespace tabella::engine {
namespace {

double blocks(size_t bytes, size_t block) {
  return static_cast<double>(std::max<size_t>(1, (bytes + block - 1) / block));
}

}  // namespace

double read_units(size_t bytes, bool consistent) { return blocks(bytes, 4096) * (consistent ? 1.0 : 0.5); }

double write_units(size_t bytes) { return blocks(bytes, 1024); }

std::optional<store::ConsumedCapacity> account(const std::string& table, store::CapacityDetail detail) {
  if (detail == store::CapacityDetail::none) return std::nullopt;
  return store::ConsumedCapacity{.table = table, .detail = detail};
}

void charge_index(store::ConsumedCapacity& capacity, const IndexSchema& index, double units) {
  (index.local ? capacity.local_indexes : capacity.global_indexes)[index.name()] += units;
}

}  // namespace tabella::engine

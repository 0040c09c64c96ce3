// What operations cost, in DynamoDB's units.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/schema.h"
#include "store/requests.h"

namespace tabella::engine {

double read_units(size_t bytes, bool consistent);
double write_units(size_t bytes);

// An empty account for a table, or nothing if the request did not ask.
std::optional<store::ConsumedCapacity> account(const std::string& table, store::CapacityDetail detail);

void charge_index(store::ConsumedCapacity& capacity, const IndexSchema& index, double units);

}  // namespace tabella::engine

// What operations cost, in DynamoDB's units.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/schema.h"
#include "store/requests.h"

namespace tabella::engine {

double read_units(size_t bytes, bool consistent);
double write_units(size_t bytes);

// An empty account for a table, or nothing if the request did not ask.
std::optional<store::ConsumedCapacity> account(const std::string& table, store::CapacityDetail detail);

void charge_index(store::ConsumedCapacity& capacity, const IndexSchema& index, double units);

// The capacity of a request over several tables, in the order in which they are first named.
class Accounts {
 public:
  explicit Accounts(store::CapacityKind kind) : kind_(kind) {}

  store::ConsumedCapacity& of(const std::string& table, store::CapacityDetail detail) {
    for (auto& account : all)
      if (account.table == table) return account;
    return all.emplace_back(store::ConsumedCapacity{.table = table, .detail = detail, .kind = kind_});
  }

  void add(const store::ConsumedCapacity& more) {
    auto& account = of(more.table, more.detail);
    account.table_units += more.table_units;
    for (const auto& [index, units] : more.global_indexes) account.global_indexes[index] += units;
    for (const auto& [index, units] : more.local_indexes) account.local_indexes[index] += units;
  }

  std::vector<store::ConsumedCapacity> all;

 private:
  const store::CapacityKind kind_;
};

}  // namespace tabella::engine

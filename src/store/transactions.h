// The requests and results of transactions over items.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/requests.h"

namespace tabella::store {

struct TransactWrite {
  enum class Kind { put, update, remove, check };
  Kind kind = Kind::put;
  std::string table;
  Item item;  // the item to put, or the key of the one to update, delete or check
  std::optional<std::string> update;
  std::optional<std::string> condition;
  ExpressionAttributes attributes;
  bool return_old_on_failure = false;
};

struct TransactWriteItemsRequest {
  std::vector<TransactWrite> writes;
  std::optional<std::string> token;  // ClientRequestToken
  CapacityDetail capacity = CapacityDetail::none;
  bool collection_metrics = false;
};

struct TransactWriteItemsResult {
  std::vector<ConsumedCapacity> capacity;
  std::vector<std::pair<std::string, std::vector<ItemCollectionMetrics>>> collection_metrics;
};

struct TransactGet {
  std::string table;
  Item key;
  std::optional<std::string> projection;
  ExpressionAttributes attributes;
};

struct TransactGetItemsRequest {
  std::vector<TransactGet> gets;
  CapacityDetail capacity = CapacityDetail::none;
};

struct TransactGetItemsResult {
  std::vector<std::optional<Item>> responses;  // one per get
  std::vector<ConsumedCapacity> capacity;
};

}  // namespace tabella::store

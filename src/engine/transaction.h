// Transactions of writes, whether they came as TransactWriteItems or as PartiQL: all of the actions or none.
//
// The writer runs one change after the other, so a transaction needs no locks and meets no conflict: it
// evaluates all of its actions, and writes if none of them objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/write_item.h"
#include "store/transactions.h"

namespace tabella::engine {

struct Transaction {
  std::vector<WriteAction> actions;
  std::optional<std::string> token;
  std::string fingerprint;  // where there is a token
  store::CapacityDetail capacity = store::CapacityDetail::none;
  bool collection_metrics = false;
};

// A transaction may name an item once.
store::Result<> check_no_duplicates(const std::vector<std::string>& keys);
store::Result<> check_no_duplicates(const std::vector<WriteAction>& actions);

// What a transaction reads is 4 MB at most.
store::Result<> check_response_size(const std::vector<std::optional<std::string>>& items);

// Runs on the writer's thread.
store::Result<store::TransactWriteItemsResult> run_transaction(WriteContext& context,
                                                               Transaction& transaction);

// An action's key or item is wrong: reported as that action's reason, unless AWS reports it for the whole.
std::unexpected<store::Error> cancel_for(size_t actions, size_t at, store::Error error);
std::unexpected<store::Error> cancel(std::vector<store::CancellationReason> reasons);

}  // namespace tabella::engine

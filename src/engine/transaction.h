// Transactions of writes, whether they came as TransactWriteItems or as PartiQL: all of the actions or none.
//
// The writer runs one change after the other, so a transaction needs no locks and meets no conflict: it
// evaluates all of its actions, and writes if none of them objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/capacity.h"
#include "engine/database.h"
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

// Items as they are at one moment: an item only once, 4 MB at most. Charged to `accounts`.
struct TransactRead {
  SchemaPtr table;
  std::string key;
};
store::Result<std::vector<std::optional<item::Item>>> read_at_once(const Database& database,
                                                                   const std::vector<TransactRead>& reads,
                                                                   Accounts& accounts,
                                                                   store::CapacityDetail detail);

// Runs on the writer's thread.
store::Result<store::TransactWriteItemsResult> run_transaction(WriteContext& context,
                                                               Transaction& transaction);

// An action's key or item is wrong: reported as that action's reason, unless AWS reports it for the whole.
std::unexpected<store::Error> cancel_for(size_t actions, size_t at, store::Error error);
std::unexpected<store::Error> cancel(std::vector<store::CancellationReason> reasons);

}  // namespace tabella::engine

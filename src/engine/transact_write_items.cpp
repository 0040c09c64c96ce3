#include <fmt/format.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "engine/engine.h"
#include "engine/item_keys.h"
#include "engine/prepare.h"
#include "engine/transaction.h"
#include "engine/update_item.h"

namespace tabella::engine {

using store::refuse;
using store::Result;
using store::TransactWrite;
using store::TransactWriteItemsRequest;
using store::TransactWriteItemsResult;

namespace {

constexpr size_t kMaxPayload = 4u << 20;

// Two requests have the same one if they ask for the same, in whatever order their JSON stood.
std::string writes_fingerprint(const TransactWriteItemsRequest& request) {
  std::string all;
  const auto text = [&](const std::optional<std::string>& t) {
    all.push_back(t ? '+' : '-');
    put_sized(all, t.value_or(""));
  };
  for (const auto& write : request.writes) {
    all.push_back(static_cast<char>(write.kind));
    all.push_back(write.return_old_on_failure ? '+' : '-');
    put_sized(all, write.table);
    item::append_canonical(all, write.item);
    text(write.update);
    text(write.condition);
    auto names = write.attributes.names_or_none();
    std::ranges::sort(names);
    put_varint(all, names.size());
    for (const auto& [reference, name] : names) {
      put_sized(all, reference);
      put_sized(all, name);
    }
    if (write.attributes.values) item::append_canonical(all, *write.attributes.values);
  }
  return sha256(all);
}

WriteAction::Kind kind_of(TransactWrite::Kind kind) {
  switch (kind) {
    case TransactWrite::Kind::put: return WriteAction::Kind::put;
    case TransactWrite::Kind::update: return WriteAction::Kind::update;
    case TransactWrite::Kind::remove: return WriteAction::Kind::remove;
    case TransactWrite::Kind::check: break;
  }
  return WriteAction::Kind::check;
}

// What can be said of an action without its table.
Result<WriteAction> prepare_action(const TransactWrite& write, expression::Caches& caches) {
  WriteAction action{.kind = kind_of(write.kind), .return_old_on_failure = write.return_old_on_failure};
  TABELLA_TRY(prepare_expressions(action, write.update, write.condition, write.attributes, caches));
  if (action.kind == WriteAction::Kind::put) TABELLA_TRY(check_item_size(write.item));
  return action;
}

Result<> check_against_table(const WriteAction& action, const item::Item& item) {
  if (action.kind == WriteAction::Kind::put) return check_item(*action.table, item);
  TABELLA_TRY(check_key(*action.table, item));
  return action.update ? check_update(*action.table, *action.update) : Result<>{};
}

size_t payload(const TransactWriteItemsRequest& request) {
  size_t bytes = 0;
  for (const auto& write : request.writes) {
    bytes += write.item.size();
    if (write.attributes.values) bytes += write.attributes.values->size();
  }
  return bytes;
}

Result<std::vector<WriteAction>> prepare_actions(TransactWriteItemsRequest& request,
                                                 expression::Caches& caches, const Catalogue& catalogue) {
  std::vector<WriteAction> actions;
  for (auto& write : request.writes) {
    TABELLA_ASSIGN(auto action, prepare_action(write, caches));
    actions.push_back(std::move(action));
  }
  if (const size_t bytes = payload(request); bytes > kMaxPayload)
    return refuse(fmt::format("Transaction payload size cannot exceed 4MB. Payload Size: {}", bytes));
  for (size_t i = 0; i < actions.size(); ++i) {
    TABELLA_ASSIGN(actions[i].table, find_table(catalogue, request.writes[i].table));
  }
  std::optional<std::pair<size_t, store::Error>> fault;
  std::vector<WriteAction> sound;
  for (size_t i = 0; i < actions.size(); ++i) {
    auto& item = request.writes[i].item;
    if (auto checked = check_against_table(actions[i], item); !checked) {
      if (!fault) fault.emplace(i, std::move(checked).error());
      continue;
    }
    actions[i].key = item_key(*actions[i].table, item);
    actions[i].item = std::move(item);
    sound.push_back(std::move(actions[i]));
  }
  TABELLA_TRY(check_no_duplicates(sound));
  if (fault) return cancel_for(actions.size(), fault->first, std::move(fault->second));
  return sound;
}

}  // namespace

store::Async<TransactWriteItemsResult> Engine::transact_write_items(TransactWriteItemsRequest request) {
  Transaction transaction{.capacity = request.capacity, .collection_metrics = request.collection_metrics};
  if (request.token) {
    transaction.token = "w" + *request.token;
    transaction.fingerprint = writes_fingerprint(request);
  }
  TABELLA_CO_ASSIGN(auto actions, prepare_actions(request, caches_, catalogue_));
  transaction.actions = std::move(actions);
  co_return co_await run(transaction);
}

}  // namespace tabella::engine

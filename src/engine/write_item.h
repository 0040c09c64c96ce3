// What all writes of single items share, whichever operation they came from: a condition on the item as it
// is, a change, an answer.
#pragma once

#include <optional>
#include <string>

#include "engine/change.h"
#include "engine/schema.h"
#include "engine/write_context.h"
#include "expression/cache.h"
#include "expression/tree.h"
#include "store/requests.h"

namespace tabella::engine {

// What a costly action comes to on the item as it was seen, worked out beside the writer. It holds as long as
// the item is still that one.
struct Precomputed {
  SchemaPtr table;
  std::optional<std::string> seen;  // nothing: there was no item
  bool ready = false;
  store::Result<> condition;
  store::Result<std::optional<item::Item>> updated;  // of an update whose condition holds
};

// A write that has passed every check that needs no look at the item.
struct WriteAction {
  enum class Kind { put, update, remove, check };
  Kind kind = Kind::put;
  SchemaPtr table;
  std::string key;
  std::optional<expression::Condition> condition;
  std::optional<expression::Update> update;
  item::Item item;  // the item to put, or the key of the one to update, delete or check
  bool return_old_on_failure = false;
  bool insert = false;           // an item that is there already is a duplicate
  bool missing_is_fine = false;  // the condition is for an item that is there
  std::optional<Precomputed> precomputed;
};

// Whether the writer can run the action without holding up those behind it: it costs no more than `most`
// bytes looked at, or its outcome on the item as it is has been worked out. If not, `action.precomputed` is
// left with what is to be worked out.
bool can_run_in_writer(const WriteContext& context, WriteAction& action, size_t most);
inline constexpr size_t kMostInWriter = 512u << 10;

// Fills in what can_run_in_writer() left. On any thread.
void precompute(WriteAction& action);

// The expressions of a write as trees, which look into `attributes`.
store::Result<> prepare_expressions(WriteAction& action, const std::optional<std::string>& update,
                                    const std::optional<std::string>& condition,
                                    const store::ExpressionAttributes& attributes,
                                    expression::Caches& caches);

// The same, or the legacy parameters in their place.
store::Result<> prepare_options(WriteAction& action, const store::WriteOptions& options,
                                const std::optional<std::string>& update, expression::Caches& caches);

// What the action comes to on the item as it is now. Changes nothing yet. Takes the item out of a put.
store::Result<ItemChange> evaluate(const WriteContext& context, const TableSchema& table,
                                   WriteAction& action);

// Evaluates and carries out. Runs on the writer's thread.
store::Result<store::WriteResult> write_item(WriteContext& context, WriteAction& action,
                                             const store::WriteOptions& options);

// The part of the change that ReturnValues asks for; takes it out of the change.
std::optional<item::Item> returned(const WriteAction& action, store::ReturnValues values, ItemChange& change);

// The table as the writer sees it now, if it is still the one the request was prepared for.
store::Result<SchemaPtr> current_table(const WriteContext& context, const TableSchema& prepared_for);

}  // namespace tabella::engine

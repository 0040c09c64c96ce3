#include "remote/repeat.h"

#include <algorithm>

#include "expression/legacy.h"
#include "expression/parser.h"
#include "expression/statement.h"
#include "item/number.h"

namespace tabella::remote {
namespace {

using expression::Operand;
using expression::Path;
using expression::UpdateAction;
using store::ReturnValues;

bool has_condition(const store::WriteOptions& options) { return options.condition || options.expected; }

bool returns_old(ReturnValues returned) {
  return returned == ReturnValues::all_old || returned == ReturnValues::updated_old;
}

bool goes_through_list(const Path& path) {
  return std::ranges::any_of(path, [](const auto& step) { return step.is_index; });
}

// Whether the operand is the same whatever the item holds. if_not_exists() of the path that is set keeps what
// the first time has set.
bool is_fixed(const Operand& operand, const Path& target) {
  switch (operand.kind) {
    case Operand::Kind::value: return true;
    case Operand::Kind::function:
      return operand.text == "if_not_exists" && operand.arguments.size() == 2 &&
             operand.arguments[0].path == target && is_fixed(operand.arguments[1], target);
    case Operand::Kind::path:
    case Operand::Kind::plus:
    case Operand::Kind::minus: break;
  }
  return false;
}

// Whether doing it twice comes to the same as doing it once.
bool is_idempotent(const UpdateAction& action, const store::ExpressionAttributes& attributes) {
  switch (action.kind) {
    case UpdateAction::Kind::set:
      // A new element of a list stands at its end, wherever that is by then.
      return !goes_through_list(action.path) && is_fixed(action.value, action.path);
    case UpdateAction::Kind::remove: return !goes_through_list(action.path);
    case UpdateAction::Kind::erase: return true;
    case UpdateAction::Kind::add: break;
  }
  // Elements are in a set once; a number grows each time.
  const auto value = attributes.values_or_none().find(action.value.text);
  return value && item::is_set(value->type());
}

bool is_idempotent(const store::UpdateItemRequest& request) {
  if (request.updates)
    return std::ranges::all_of(*request.updates, [](const auto& update) {
      if (update.action != "ADD") return true;
      return update.value && item::is_set(item::ValueView(*update.value).type());
    });
  if (!request.update) return true;
  const auto parsed = expression::parse_update(*request.update);
  return parsed && std::ranges::all_of(*parsed, [&](const auto& action) {
           return is_idempotent(action, request.options.attributes);
         });
}

// Whether the update certainly leaves something else at the path than what was there before (nothing, if that
// is what was). A list moves under its indexes: nothing is certain there.
bool differs_after(const expression::Update& update, const Path& path,
                   const store::ExpressionAttributes& attributes,
                   const std::optional<item::ValueView>& before) {
  if (goes_through_list(path)) return false;
  const auto values = attributes.values_or_none();
  return std::ranges::any_of(update, [&](const UpdateAction& action) {
    if (action.path != path) return false;
    if (action.kind == UpdateAction::Kind::remove) return before.has_value();
    const auto value = values.find(action.value.text);
    if (action.kind == UpdateAction::Kind::add)
      return value && value->type() == item::Type::N && item::number_to_int(value->content()) != 0;
    if (action.kind != UpdateAction::Kind::set) return false;
    return !before || (action.value.kind == Operand::Kind::value && value && !item::equal(*value, *before));
  });
}

// Whether the condition cannot hold once the update has been made: a term of it says what the update changes.
bool guards(const expression::Condition& condition, const expression::Update& update,
            const store::ExpressionAttributes& attributes) {
  using Kind = expression::Condition::Kind;
  if (condition.kind == Kind::all_of)
    return std::ranges::any_of(condition.children,
                               [&](const auto& child) { return guards(child, update, attributes); });
  if (condition.operands.empty() || condition.operands[0].kind != Operand::Kind::path) return false;
  const auto& path = condition.operands[0].path;
  if (condition.kind == Kind::function)
    return condition.function == "attribute_not_exists" &&
           differs_after(update, path, attributes, std::nullopt);
  if (condition.kind != Kind::comparison || condition.comparator != expression::Comparator::equal ||
      condition.operands[1].kind != Operand::Kind::value)
    return false;
  const auto before = attributes.values_or_none().find(condition.operands[1].text);
  return before && differs_after(update, path, attributes, before);
}

bool is_guarded(const store::UpdateItemRequest& request) {
  if (!request.update || !request.options.condition) return false;
  const auto update = expression::parse_update(*request.update);
  const auto condition = expression::parse_condition(*request.options.condition);
  return update && condition && guards(*condition, *update, request.options.attributes);
}

// What the old item was is not known any more after the first time.
Repeat repeat_of(const store::WriteOptions& options, bool idempotent) {
  if (!idempotent || returns_old(options.return_values)) return Repeat::never;
  return has_condition(options) ? Repeat::guarded : Repeat::harmless;
}

Repeat repeat_of_statement(const std::string& text) {
  using Kind = expression::Statement::Kind;
  const auto parsed = expression::parse_statement(text);
  // The endpoint may know more of the language than we do.
  if (!parsed) return Repeat::never;
  switch (parsed->kind) {
    case Kind::select:
    case Kind::exists: return Repeat::read;
    case Kind::insert: return Repeat::guarded;  // fails if the item is there
    case Kind::update:
    case Kind::remove: break;
  }
  return Repeat::never;
}

}  // namespace

Repeat repeat_of(const store::PutItemRequest& request) { return repeat_of(request.options, true); }
Repeat repeat_of(const store::DeleteItemRequest& request) { return repeat_of(request.options, true); }

Repeat repeat_of(const store::UpdateItemRequest& request) {
  if (!returns_old(request.options.return_values) && is_guarded(request)) return Repeat::guarded;
  return repeat_of(request.options, is_idempotent(request));
}

Repeat repeat_of(const store::ExecuteStatementRequest& request) {
  return repeat_of_statement(request.statement.text);
}

Repeat repeat_of(const store::BatchExecuteStatementRequest& request) {
  const bool reads = std::ranges::all_of(request.statements, [](const auto& statement) {
    return repeat_of_statement(statement.text) == Repeat::read;
  });
  return reads ? Repeat::read : Repeat::never;
}

}  // namespace tabella::remote

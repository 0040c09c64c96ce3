// Puts a request's names and values into a parsed tree, and checks what only they can show: undefined and
// unused references, overlapping paths, operands that cannot fit their operator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "expression/tree.h"
#include "item/value.h"

namespace tabella::expression {

using Names = std::vector<std::pair<std::string, std::string>>;  // {"#n", "name"}

// A request's ExpressionAttributeNames and -Values, and which of them have been used. Borrows both.
class Bindings {
 public:
  Bindings(const Names& names, item::ItemView values);
  // Of a statement, where names stand for themselves.
  explicit Bindings(std::vector<std::pair<std::string_view, item::ValueView>> values);

  bool names_are_literal() const { return names_are_literal_; }

  const std::string* name(std::string_view reference);
  std::optional<item::ValueView> value(std::string_view reference);

  // AWS's complaint about the first kind of reference that no expression used.
  Checked<> check_all_used() const;

 private:
  const Names& names_;
  const bool names_are_literal_ = false;
  std::vector<std::pair<std::string_view, item::ValueView>> values_;
  // Where there are many: the place of each.
  using Places = std::unordered_map<std::string_view, size_t, KeyedHash>;
  Places name_places_;
  Places value_places_;
  std::vector<bool> used_names_;
  std::vector<bool> used_values_;
};

Checked<Condition> bind(const Condition& tree, Bindings& bindings);
Checked<Update> bind(const Update& tree, Bindings& bindings);
Checked<Projection> bind(const Projection& tree, Bindings& bindings);

// What a key condition comes down to: for each attribute one comparison with values.
struct KeyPredicate {
  enum class Operator { equal, less, less_equal, greater, greater_equal, between, begins_with, unindexable };
  std::string attribute;
  Operator op = Operator::equal;
  std::vector<item::ValueView> values;
};

// From a bound condition tree.
Checked<std::vector<KeyPredicate>> to_key_predicates(const Condition& bound);

// The types that `operand` is known to have before any item is seen; nullopt for paths.
std::optional<item::Type> known_type(const Operand& operand);

}  // namespace tabella::expression

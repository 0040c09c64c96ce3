// The parameters that came before expressions — Expected, AttributeUpdates, KeyConditions, QueryFilter,
// ScanFilter, AttributesToGet — translated into the same trees. Attribute names in them are literal: 'a.b' is
// a name with a dot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "expression/bind.h"
#include "expression/tree.h"

namespace tabella::expression {

// One entry of Expected, KeyConditions, QueryFilter or ScanFilter. Values are in the flat form; a tree made
// from an entry borrows from it.
struct LegacyCondition {
  std::string attribute;
  std::optional<std::string> comparison;           // ComparisonOperator
  std::optional<std::vector<std::string>> values;  // AttributeValueList
  std::optional<std::string> value;                // Expected only
  std::optional<bool> exists;                      // Expected only
};

struct LegacyUpdate {
  std::string attribute;
  std::string action = "PUT";
  std::optional<std::string> value;
};

enum class Combine { all, any };  // ConditionalOperator

Checked<Condition> from_expected(const std::vector<LegacyCondition>& expected, Combine combine);
Checked<Condition> from_filter(const std::vector<LegacyCondition>& filter, Combine combine);
Checked<std::vector<KeyPredicate>> from_key_conditions(const std::vector<LegacyCondition>& conditions);
Checked<Update> from_updates(const std::vector<LegacyUpdate>& updates);
Checked<Projection> from_attributes_to_get(const std::vector<std::string>& attributes);

// What is wrong with a list of key predicates, wherever it came from: types that cannot be ordered, BETWEEN
// with its bounds the wrong way round, too many.
Checked<> check_key_predicates(const std::vector<KeyPredicate>& predicates);

}  // namespace tabella::expression

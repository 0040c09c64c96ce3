// The one tree that every grammar is read into: condition, filter, key condition, update and projection
// expressions, the legacy parameters, PartiQL.
//
// A tree comes from the parser unbound: its paths may hold #placeholders and its values are :references.
// bind.h makes a bound copy for one request, with real names and views of the request's values, which must
// outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "item/value.h"

namespace tabella::expression {

// One step of a document path: .name or [index].
struct Step {
  std::string name;  // empty for an index
  uint32_t index = 0;
  bool is_index = false;
  bool operator==(const Step&) const = default;
};

using Path = std::vector<Step>;

// "[a, b, [1]]", as AWS prints paths.
std::string describe_path(const Path& path);

struct Operand {
  enum class Kind { path, value, function, plus, minus };
  Kind kind = Kind::path;
  Path path;                       // path
  std::string text;                // value: ":v" · function: its name
  item::ValueView value;           // value, once bound
  std::vector<Operand> arguments;  // function, plus, minus
};

enum class Comparator { equal, not_equal, less, less_equal, greater, greater_equal };
std::string_view comparator_text(Comparator comparator);

struct Condition {
  enum class Kind { all_of, any_of, negation, comparison, between, in, function };
  Kind kind = Kind::all_of;
  Comparator comparator = Comparator::equal;  // comparison
  std::string function;                       // function: attribute_exists, begins_with, …
  std::vector<Operand> operands;              // comparison, between, in, function
  std::vector<Condition> children;            // all_of, any_of, negation
};

struct UpdateAction {
  enum class Kind { set, remove, add, erase };  // erase: DELETE of set elements
  Kind kind = Kind::set;
  Path path;
  Operand value;        // set, add, erase
  bool legacy = false;  // from AttributeUpdates: ADD also appends to lists, errors have other words
};

using Update = std::vector<UpdateAction>;
using Projection = std::vector<Path>;

}  // namespace tabella::expression

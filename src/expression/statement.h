// A PartiQL statement as a tree, with the same conditions, updates and paths as expressions have.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "expression/bind.h"
#include "expression/tree.h"
#include "item/value.h"

namespace tabella::expression {

// A value as it is written in a statement: a literal, a parameter, or a list, map or set of such.
struct Constant {
  enum class Kind { literal, parameter, list, map };
  Kind kind = Kind::literal;
  std::string flat;                // literal: the value in its flat form
  size_t parameter = 0;            // counted from 0
  std::vector<std::string> names;  // map
  std::vector<Constant> elements;  // list, map
};

// One column of a SELECT: the value at a path, under the path's last part.
struct Column {
  Path path;
  std::string name;
};

struct Statement {
  enum class Kind { select, insert, update, remove, exists };
  Kind kind = Kind::select;
  std::string table;
  std::optional<std::string> index;
  std::vector<Column> columns;  // none: all
  std::optional<Condition> where;
  struct Order {
    std::string attribute;
    bool descending = false;
  };
  std::vector<Order> order_by;
  size_t item = 0;  // INSERT: which of the constants
  Update update;
  struct Returning {
    bool all = false;    // ALL or MODIFIED
    bool fresh = false;  // NEW or OLD
  };
  std::optional<Returning> returning;

  // What the operands' references ":0", ":1" … stand for.
  std::vector<Constant> constants;
  size_t parameters = 0;  // how many ? there are

  bool writes() const { return kind != Kind::select; }
};

// Errors are worded in full.
Checked<Statement> parse_statement(std::string_view text);

// Appends the value that a constant stands for, in its flat form.
void append_constant(std::string& out, const Constant& constant, std::span<const std::string> parameters);

// A statement with its parameters in place. Looks into the parsed statement and the parameters.
struct BoundStatement {
  Statement statement;   // with bound trees
  item::ValueView item;  // INSERT
  // The values that were put together. Where it is does not change, and it cannot be copied: the trees look
  // into it.
  std::unique_ptr<std::deque<std::string>> storage = std::make_unique<std::deque<std::string>>();
};

Checked<BoundStatement> bind(const Statement& parsed, std::span<const std::string> parameters);

// What a SELECT's columns show of an item.
item::Item select(item::ItemView item, const std::vector<Column>& columns);

}  // namespace tabella::expression

// What happens to a request before it meets a table: its parameters are checked in AWS's order and its
// expressions become trees.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/catalogue.h"
#include "engine/schema.h"
#include "expression/bind.h"
#include "expression/cache.h"
#include "store/requests.h"

namespace tabella::engine {

store::Result<SchemaPtr> find_table(const Catalogue& catalogue, std::string_view name);
std::unexpected<store::Error> no_such_table();

struct Parameter {
  std::string_view name;
  bool present;
};
using Parameters = std::initializer_list<Parameter>;

// Expressions and the parameters that came before them do not mix, and attributes need an expression to be
// for.
store::Result<> check_parameters(Parameters expressions, Parameters legacy,
                                 const store::ExpressionAttributes& attributes);

// Names and values must be well-formed wherever they are used.
store::Result<> check_attributes(const store::ExpressionAttributes& attributes);

// Parses (through the cache) and binds; errors get "Invalid <parameter>: " in front.
template <class Tree>
store::Result<std::optional<Tree>> prepare(expression::ParseCache<Tree>& cache,
                                           const std::optional<std::string>& text,
                                           expression::Bindings& bindings, std::string_view parameter);

// Expected, which stands where ConditionExpression does.
store::Result<std::optional<expression::Condition>> prepare_expected(const store::WriteOptions& options);

// ReturnValues of PutItem and DeleteItem.
store::Result<> check_return_values(store::ReturnValues values);

// A path into a key attribute can lead nowhere: keys are scalars.
store::Result<> check_key_paths(const TableSchema& table, const std::vector<expression::Path>& paths);
void collect_paths(const expression::Condition& condition, std::vector<expression::Path>& paths);

inline constexpr size_t kMaxItemSize = 400 * 1024;
store::Result<> check_item_size(const item::Item& item);

}  // namespace tabella::engine

#include "expression/statement.h"
#include "expression/apply.h"
#include "expression/evaluate.h"
#include "fuzz/expressions.h"
#include "item/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const auto parsed = expression::parse_statement(fuzz::text_of(data, size));
  if (!parsed) return 0;
  std::vector<std::string> parameters;
  for (item::Attributes a(fuzz::values()); a.next();) parameters.emplace_back(a.value().bytes());
  const auto bound = expression::bind(*parsed, parameters);
  if (!bound) return 0;
  const auto& statement = bound->statement;
  const auto view = fuzz::item().view();
  if (statement.where) {
    expression::evaluate(*statement.where, &view);
    expression::evaluate(*statement.where, nullptr);
  }
  if (!item::is_well_formed(expression::select(view, statement.columns).bytes())) std::abort();
  if (const auto result = expression::apply(statement.update, view, true))
    if (!item::is_well_formed(result->bytes())) std::abort();
  if (statement.kind == expression::Statement::Kind::insert) {
    item::ItemBuilder builder;
    for (item::Elements e(bound->item); e.next();) builder.add(e.name(), e.value());
    const auto item = builder.finish();
    bool deep = false;
    for (item::Attributes a(item); a.next();) deep = deep || item::nesting(a.value()) > item::kMaxNesting;
    if (!deep && !item::is_well_formed(item.bytes())) std::abort();
  }
  return 0;
}

#include "expression/legacy.h"
#include "expression/parser.h"
#include "fuzz/expressions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const auto tree = expression::parse_condition(fuzz::text_of(data, size));
  if (!tree) return 0;
  expression::Bindings bindings(fuzz::kNames, fuzz::values());
  const auto bound = expression::bind(*tree, bindings);
  if (!bound) return 0;
  const auto predicates = expression::to_key_predicates(*bound);
  if (!predicates) return 0;
  for (const auto& predicate : *predicates)
    if (predicate.values.empty() || predicate.attribute.empty()) std::abort();
  static_cast<void>(expression::check_key_predicates(*predicates));
  return 0;
}

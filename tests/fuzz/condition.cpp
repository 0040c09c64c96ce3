#include "expression/evaluate.h"
#include "expression/parser.h"
#include "fuzz/expressions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const auto tree = expression::parse_condition(fuzz::text_of(data, size));
  if (!tree) return 0;
  expression::Bindings bindings(fuzz::kNames, fuzz::values());
  const auto bound = expression::bind(*tree, bindings);
  if (!bound) return 0;
  const auto view = fuzz::item().view();
  expression::evaluate(*bound, &view);
  expression::evaluate(*bound, nullptr);
  return 0;
}

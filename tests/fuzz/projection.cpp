#include "expression/evaluate.h"
#include "expression/parser.h"
#include "fuzz/expressions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const auto tree = expression::parse_projection(fuzz::text_of(data, size));
  if (!tree) return 0;
  expression::Bindings bindings(fuzz::kNames, item::ItemView());
  const auto bound = expression::bind(*tree, bindings);
  if (!bound) return 0;
  const auto part = expression::project(fuzz::item(), *bound);
  if (part.size() > fuzz::item().size()) std::abort();
  return 0;
}

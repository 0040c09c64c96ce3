#include "expression/apply.h"
#include "expression/evaluate.h"
#include "expression/parser.h"
#include "fuzz/expressions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const auto tree = expression::parse_update(fuzz::text_of(data, size));
  if (!tree) return 0;
  expression::Bindings bindings(fuzz::kNames, fuzz::values());
  const auto bound = expression::bind(*tree, bindings);
  if (!bound) return 0;
  if (const auto result = expression::apply(*bound, fuzz::item(), true)) {
    // What an update makes is an item like any other.
    if (item::encode_item(item::decode_item(*result)).bytes() != result->bytes()) std::abort();
    expression::project(*result, expression::touched_paths(*bound));
  }
  static_cast<void>(expression::apply(*bound, item::Item(), false));
  return 0;
}

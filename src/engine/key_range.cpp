#include "engine/key_range.h"

#include <algorithm>

#include "engine/keys.h"

namespace tabella::engine {

using expression::KeyPredicate;
using item::ValueView;
using Op = KeyPredicate::Operator;

const KeyPredicate* find_predicate(const std::vector<KeyPredicate>& predicates, std::string_view attribute) {
  const auto at = std::ranges::find_if(predicates, [&](const auto& p) { return p.attribute == attribute; });
  return at == predicates.end() ? nullptr : &*at;
}

KeyRange range_of(const std::vector<KeyPredicate>& predicates, const ReadPlan& plan) {
  std::vector<ValueView> partition;
  for (const auto& key : partition_of(plan))
    partition.push_back(find_predicate(predicates, key.name)->values[0]);
  std::string prefix = plan.index ? keys::index_partition(plan.index->id, partition)
                                  : keys::item_partition(plan.table->id, partition[0]);
  const KeyPredicate* last = nullptr;
  for (const auto& key : sort_of(plan)) {
    const auto* predicate = find_predicate(predicates, key.name);
    if (!predicate) break;
    if (predicate->op != Op::equal) {
      last = predicate;
      break;
    }
    keys::append_sort(prefix, predicate->values[0]);
  }
  if (!last) return {prefix, keys::end_of(prefix)};

  const auto at = [&](ValueView value) {
    std::string key = prefix;
    keys::append_sort(key, value);
    return key;
  };
  const auto& values = last->values;
  switch (last->op) {
    case Op::less: return {prefix, at(values[0])};
    case Op::less_equal: return {prefix, keys::end_of(at(values[0]))};
    case Op::greater: return {keys::end_of(at(values[0])), keys::end_of(prefix)};
    case Op::greater_equal: return {at(values[0]), keys::end_of(prefix)};
    case Op::between: return {at(values[0]), keys::end_of(at(values[1]))};
    case Op::begins_with: {
      std::string key = prefix;
      keys::append_sort_prefix(key, values[0]);
      auto end = keys::end_of(key);
      return {std::move(key), std::move(end)};
    }
    case Op::equal:
    case Op::unindexable: break;
  }
  return {prefix, keys::end_of(prefix)};
}

}  // namespace tabella::engine

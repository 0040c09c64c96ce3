// The range of keys that predicates on the key attributes come down to.
#pragma once

#include <string>
#include <vector>

#include "engine/read_page.h"
#include "expression/bind.h"

namespace tabella::engine {

struct KeyRange {
  std::string from;
  std::string to;  // not in it
};

// The predicates have been checked: the partition's by equality, the sort attributes' from the left.
KeyRange range_of(const std::vector<expression::KeyPredicate>& predicates, const ReadPlan& plan);

// The predicate on an attribute, if there is one.
const expression::KeyPredicate* find_predicate(const std::vector<expression::KeyPredicate>& predicates,
                                               std::string_view attribute);

}  // namespace tabella::engine

// Document paths as a tree, so that an item is walked once for all of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "expression/tree.h"

namespace tabella::expression {

template <class Leaf>
struct PathTree {
  std::optional<Leaf> leaf;  // a path ends here
  std::map<std::string, PathTree, std::less<>> members;
  std::map<uint32_t, PathTree> elements;

  PathTree& at(const Path& path) {
    PathTree* tree = this;
    for (const auto& step : path) tree = &tree->child(step);
    return *tree;
  }

  PathTree& child(const Step& step) { return step.is_index ? elements[step.index] : members[step.name]; }
  bool has_children() const { return !members.empty() || !elements.empty(); }
};

}  // namespace tabella::expression

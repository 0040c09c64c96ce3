// Parsed expressions by their text, errors included: applications send the same few again and again.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "expression/parser.h"
#include "expression/statement.h"

namespace tabella::expression {

// Thread-safe. Holds the trees of a bounded amount of text, which a tree is some fifty times as large as;
// when full it forgets all and starts over, which costs a parse. A long text is not kept.
template <class Tree>
class ParseCache {
 public:
  using Parse = Checked<Tree> (*)(std::string_view);
  using Entry = std::shared_ptr<const Checked<Tree>>;

  explicit ParseCache(Parse parse) : parse_(parse) {}

  Entry get(std::string_view text) {
    Shard& shard = shards_[std::hash<std::string_view>{}(text) % shards_.size()];
    {
      const std::lock_guard lock(shard.mutex);
      if (const auto at = shard.entries.find(text); at != shard.entries.end()) return at->second;
    }
    auto parsed = std::make_shared<const Checked<Tree>>(parse_(text));
    if (text.size() > kLongText) return parsed;
    const std::lock_guard lock(shard.mutex);
    if (shard.text + text.size() > kTextPerShard) {
      shard.entries.clear();
      shard.text = 0;
    }
    if (shard.entries.emplace(text, parsed).second) shard.text += text.size();
    return parsed;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Shard {
    std::mutex mutex;
    size_t text = 0;  // bytes of it in `entries`
    std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries;
  };
  static constexpr size_t kTextPerShard = 16u << 10;
  static constexpr size_t kLongText = 2u << 10;

  Parse parse_;
  std::array<Shard, 16> shards_;
};

struct Caches {
  ParseCache<Condition> conditions{parse_condition};
  ParseCache<Update> updates{parse_update};
  ParseCache<Projection> projections{parse_projection};
  ParseCache<Statement> statements{parse_statement};
};

}  // namespace tabella::expression

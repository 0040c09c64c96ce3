// Which tables there are. Readers take a schema and keep it as long as they like; the writer publishes new
// ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema.h"

namespace tabella::engine {

using SchemaPtr = std::shared_ptr<const TableSchema>;

// Thread-safe.
class Catalogue {
 public:
  SchemaPtr find(std::string_view name) const;  // or ARN
  void put(SchemaPtr table);
  void drop(std::string_view name);
  void replace(const std::vector<SchemaPtr>& all);  // whatever there was

  std::vector<SchemaPtr> all() const;
  // Up to `limit` names after `start`, and whether there are more.
  std::pair<std::vector<std::string>, bool> names(std::string_view start, size_t limit) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, SchemaPtr, std::less<>> tables_;  // guarded by mutex_
};

}  // namespace tabella::engine

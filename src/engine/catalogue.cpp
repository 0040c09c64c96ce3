#include "engine/catalogue.h"

namespace tabella::engine {

SchemaPtr Catalogue::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = tables_.find(store::bare_table_name(name));
  return at == tables_.end() ? nullptr : at->second;
}

void Catalogue::put(SchemaPtr table) {
  const std::lock_guard lock(mutex_);
  auto name = table->name();
  tables_.insert_or_assign(std::move(name), std::move(table));
}

void Catalogue::drop(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto at = tables_.find(name); at != tables_.end()) tables_.erase(at);
}

void Catalogue::replace(const std::vector<SchemaPtr>& all) {
  const std::lock_guard lock(mutex_);
  tables_.clear();
  for (const auto& table : all) tables_.emplace(table->name(), table);
}

std::vector<SchemaPtr> Catalogue::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<SchemaPtr> tables;
  tables.reserve(tables_.size());
  for (const auto& [name, table] : tables_) tables.push_back(table);
  return tables;
}

std::pair<std::vector<std::string>, bool> Catalogue::names(std::string_view start, size_t limit) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  auto at = start.empty() ? tables_.begin() : tables_.upper_bound(start);
  for (; at != tables_.end() && names.size() < limit; ++at) names.push_back(at->first);
  return {std::move(names), at != tables_.end()};
}

}  // namespace tabella::engine

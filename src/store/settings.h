// Small things that are to outlive the process and be the same in all of them: webhooks, servers to release
// to. Rows of a table of their own: kind and name, and a JSON value.
#pragma once

#include <map>
#include <string>

#include "store/store.h"
#include "store/tables.h"

namespace tabella::store {

// Thread-safe.
class Settings {
 public:
  Settings(Store& store, std::string table) : store_(store), table_(std::move(table)) {}
  static TablePlan plan(const std::string& table);

  Async<std::map<std::string, std::string>> all(std::string kind);  // by name
  Async<void> put(std::string kind, std::string name, std::string value);
  Async<bool> remove(std::string kind, std::string name);  // whether it was there

 private:
  Store& store_;
  const std::string table_;
};

}  // namespace tabella::store

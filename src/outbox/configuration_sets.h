// SES's configuration sets, which are labels here: emails are sent under the name of one that is there. Rows
// of our table under the id "#configuration-set".
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::outbox {

struct ConfigurationSetPage {
  std::vector<std::string> names;
  std::string next;  // empty: these were the last
};

// Thread-safe.
class ConfigurationSets {
 public:
  ConfigurationSets(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  store::Async<bool> create(std::string name);  // false: there is one of that name
  store::Async<bool> exists(std::string name);
  store::Async<bool> remove(std::string name);  // whether it was there
  store::Async<ConfigurationSetPage> list(size_t limit, std::string from);

 private:
  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
};

}  // namespace tabella::outbox

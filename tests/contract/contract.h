// The contract of Store, written once and run on every implementation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "store/store.h"

namespace tabella::contract {

// A store for one test, with whatever it needs to live.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual store::Store& store() = 0;
  // Closes and opens it again, as a restart would.
  virtual void restart() = 0;
};

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};

class StoreContract : public testing::TestWithParam<Implementation> {
 protected:
  StoreContract() : subject_(GetParam().make()) {}

  store::Store& store() { return subject_->store(); }
  void restart() { subject_->restart(); }

  // Runs a call to its end on this thread.
  template <class T>
  store::Result<T> run(store::Async<T> call);

  // A table with a string partition key pk, and a sort key sk of the given type ('S', 'N', 'B') or none ('
  // ').
  void create(const std::string& name, char sort = ' ', std::vector<store::IndexDefinition> global = {},
              std::vector<store::IndexDefinition> local = {},
              std::vector<store::AttributeDefinition> more = {});
  void wait_until_active(const std::string& name);

  std::string put(const std::string& table, std::string_view item, store::WriteOptions options = {});
  std::string get(const std::string& table, std::string_view key);
  std::string update(store::UpdateItemRequest request);
  // The items of all pages, one JSON object per line, or what went wrong.
  std::string query(store::QueryRequest request);
  std::string scan(store::ScanRequest request);

 private:
  std::unique_ptr<Subject> subject_;
};

item::Item item_of(std::string_view json);
std::string json_of(const item::Item& item);

// "ok", or the error's message.
template <class T>
std::string outcome(const store::Result<T>& result) {
  return result ? "ok" : result.error().message;
}

store::IndexDefinition index(std::string name, std::vector<std::string> hash, std::vector<std::string> range,
                             store::ProjectionType projection = store::ProjectionType::all,
                             std::vector<std::string> include = {});

}  // namespace tabella::contract

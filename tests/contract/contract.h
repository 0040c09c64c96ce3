// The contract of Store, written once and run on every implementation.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "store/store.h"
#include "support/run.h"

namespace tabella::contract {

// A store for one test, with whatever it needs to live.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual store::Store& store() = 0;
  // Closes and opens it again, as a restart would.
  virtual void restart() = 0;
  // The time that the store goes by; advance() moves it, where it can be moved.
  virtual const Clock& clock() const = 0;
  virtual bool advance(std::chrono::milliseconds by) = 0;

  // Amazon's DynamoDB Local differs from DynamoDB in ways that dynamodb_local.cpp names, the old version of
  // it in more.
  virtual bool is_dynamodb_local() const { return false; }
  virtual bool is_old() const { return false; }
};

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};
inline void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

// CONTRACT_ON names one of: engine, remote_to_tabella, remote_to_dynamodb_local.
std::vector<Implementation> implementations();

#define TABELLA_CONTRACT(FIXTURE)                                             \
  INSTANTIATE_TEST_SUITE_P(On, FIXTURE, testing::ValuesIn(implementations()), \
                           [](const auto& parameter) { return parameter.param.name; })

// Why a test is left out on DynamoDB Local; empty: it is not.
std::string difference_of_dynamodb_local(std::string_view suite, std::string_view test, bool old);

// For messages in DynamoDB's own words. DynamoDB Local has words of its own.
#define EXPECT_SAYS(ACTUAL, WORDS)          \
  do {                                      \
    const std::string said = (ACTUAL);      \
    if (is_dynamodb_local())                \
      EXPECT_TRUE(said != "ok") << (WORDS); \
    else                                    \
      EXPECT_EQ(said, (WORDS));             \
  } while (false)

class StoreContract : public testing::TestWithParam<Implementation> {
 protected:
  StoreContract() : subject_(GetParam().make()) {}

  void SetUp() override;

  store::Store& store() { return subject_->store(); }
  void restart() { subject_->restart(); }
  const Clock& clock() const { return subject_->clock(); }
  bool advance(std::chrono::milliseconds by) { return subject_->advance(by); }
  bool is_dynamodb_local() const { return subject_->is_dynamodb_local(); }

  template <class T>
  static store::Result<T> run(store::Async<T> call) {
    return test::run(std::move(call));
  }

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

  // A table with a sort key of strings and a stream; its ARN.
  std::string create_with_stream(const std::string& name, store::StreamView view);
  // What all shards of the stream hold, from the oldest to the newest of each.
  std::vector<store::StreamRecord> records(const std::string& arn);
  // The items of all pages of a statement, one JSON object per line, or what went wrong.
  std::string execute(const std::string& statement, const char* parameters = nullptr,
                      std::optional<int64_t> limit = std::nullopt);
  // Waits until it is so, a few seconds at most.
  static bool eventually(const std::function<bool()>& condition);

 private:
  std::unique_ptr<Subject> subject_;
};

item::Item item_of(std::string_view json);
// [{"S":"x"}, …] as a statement's parameters.
std::vector<std::string> parameters_of(std::string_view json);
// With all names and set elements in order, so that equal items have equal texts.
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

#include <thread>

#include <fmt/format.h>

#include "contract/contract.h"
#include "store/tables.h"

namespace tabella::contract {
namespace {

using store::Missing;
using store::TablePlan;

class PreparedTables : public StoreContract {
 protected:
  static TablePlan plan() {
    TablePlan plan;
    plan.definition.name = "planned";
    plan.definition.billing_mode = store::BillingMode::pay_per_request;
    plan.definition.attributes = {{"pk", item::Type::S}, {"kind", item::Type::S}, {"at", item::Type::N}};
    plan.definition.key_schema = {{"pk", store::KeyRole::hash}};
    plan.definition.global_indexes = {
        {index("by_kind", {"kind"}, {"at"}, store::ProjectionType::include, {"title"})}};
    plan.definition.stream = store::StreamView::new_image;
    plan.time_to_live = "expires";
    return plan;
  }

  std::string prepare(TablePlan plan, Missing missing = Missing::create) {
    return outcome(run(store::prepare_tables(store(), {std::move(plan)}, missing)));
  }

  void expect_planned() {
    const auto table = run(store().describe_table("planned"));
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->status, store::Status::active);
    ASSERT_EQ(table->global_indexes.size(), 1u);
    EXPECT_EQ(table->global_indexes[0].status, store::Status::active);
    EXPECT_EQ(table->definition.stream, store::StreamView::new_image);
    EXPECT_EQ(run(store().describe_time_to_live("planned"))->attribute, "expires");
  }
};

TEST_P(PreparedTables, AreMadeWithAllThatTheyNeed) {
  EXPECT_EQ(prepare(plan(), Missing::refuse), "not there: the table planned");
  EXPECT_EQ(prepare(plan()), "ok");
  expect_planned();
  EXPECT_EQ(prepare(plan()), "ok");
  EXPECT_EQ(prepare(plan(), Missing::refuse), "ok");
}

TEST_P(PreparedTables, AreGivenWhatTheyLack) {
  auto bare = plan();
  bare.definition.global_indexes.reset();
  bare.definition.attributes = {{"pk", item::Type::S}};
  bare.definition.stream.reset();
  bare.time_to_live.reset();
  EXPECT_EQ(prepare(bare), "ok");
  put("planned", R"({"at":{"N":"1"},"kind":{"S":"k"},"pk":{"S":"a"}})");
  EXPECT_EQ(prepare(plan(), Missing::refuse),
            "not there: the index by_kind of the table planned, the stream of the table planned, the time to "
            "live of the table planned (attribute expires)");
  EXPECT_EQ(prepare(plan()), "ok");
  expect_planned();
  EXPECT_EQ(get("planned", R"({"pk":{"S":"a"}})"), R"({"at":{"N":"1"},"kind":{"S":"k"},"pk":{"S":"a"}})");
}

TEST_P(PreparedTables, AreLeftAloneWhereTheyAreOthers) {
  EXPECT_EQ(prepare(plan()), "ok");
  auto other_keys = plan();
  other_keys.definition.key_schema = {{"id", store::KeyRole::hash}};
  EXPECT_EQ(prepare(other_keys), "the table planned is there, with other keys");
  auto other_index = plan();
  other_index.definition.global_indexes = {{index("by_kind", {"kind"}, {})}};
  EXPECT_EQ(prepare(other_index), "the index by_kind of the table planned is there, with other keys");
  auto more = plan();
  more.definition.global_indexes = {
      {index("by_kind", {"kind"}, {"at"}, store::ProjectionType::include, {"title", "body"})}};
  EXPECT_EQ(prepare(more),
            "the index by_kind of the table planned is there, and lacks attributes that it should hold");
  auto other_stream = plan();
  other_stream.definition.stream = store::StreamView::old_image;
  EXPECT_EQ(prepare(other_stream), "the stream of the table planned shows something else");
  auto less = plan();
  less.definition.stream = store::StreamView::keys_only;
  EXPECT_EQ(prepare(less), "ok") << "it shows more than is asked for";
  auto other_time = plan();
  other_time.time_to_live = "ttl";
  EXPECT_EQ(prepare(other_time, Missing::refuse),
            "the time to live of the table planned is in the attribute expires, not ttl");
}

TEST_P(PreparedTables, AreMadeOnceBySeveralAtATime) {
  auto bare = plan();
  bare.definition.global_indexes.reset();
  bare.definition.attributes = {{"pk", item::Type::S}};
  bare.definition.stream.reset();
  for (const bool exists : {false, true}) {
    if (exists) {
      ASSERT_TRUE(run(store().delete_table("planned")));
      EXPECT_EQ(prepare(bare), "ok") << "also while the one before it is being deleted";
    }
    std::vector<std::string> outcomes(4);
    std::vector<std::thread> threads;
    for (auto& text : outcomes) threads.emplace_back([&] { text = prepare(plan()); });
    for (auto& thread : threads) thread.join();
    for (const auto& text : outcomes) EXPECT_EQ(text, "ok");
    expect_planned();
  }
}

TABELLA_CONTRACT(PreparedTables);

}  // namespace
}  // namespace tabella::contract

#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "contract/contract.h"

namespace tabella::contract {
namespace {

using store::CapacityDetail;
using store::ErrorCode;
using store::TransactWrite;
using Kind = TransactWrite::Kind;

TransactWrite write(Kind kind, std::string table, std::string_view item, std::string update = {},
                    std::string condition = {}, const char* values = nullptr) {
  TransactWrite write{.kind = kind, .table = std::move(table), .item = item_of(item)};
  if (!update.empty()) write.update = std::move(update);
  if (!condition.empty()) write.condition = std::move(condition);
  if (values) write.attributes.values = item_of(values);
  return write;
}

std::string codes(const store::Error& error) {
  std::string out;
  for (const auto& reason : error.reasons) out += reason.code + " ";
  return out;
}

class Transactions : public StoreContract {
 protected:
  store::Result<store::TransactWriteItemsResult> transact(std::vector<TransactWrite> writes,
                                                          std::optional<std::string> token = std::nullopt,
                                                          CapacityDetail capacity = CapacityDetail::none) {
    return run(store().transact_write_items(
        {.writes = std::move(writes), .token = std::move(token), .capacity = capacity}));
  }
};

TEST_P(Transactions, WriteAllOfTheirActionsOrNone) {
  create("items");
  create("others", 'N');
  put("items", R"({"n":{"N":"1"},"pk":{"S":"b"}})");
  put("items", R"({"pk":{"S":"c"}})");
  const auto actions = [](std::string condition) {
    return std::vector{write(Kind::put, "items", R"({"pk":{"S":"a"},"x":{"S":"new"}})"),
                       write(Kind::update, "items", R"({"pk":{"S":"b"}})", "ADD n :one", std::move(condition),
                             R"({":one":{"N":"1"}})"),
                       write(Kind::remove, "items", R"({"pk":{"S":"c"}})"),
                       write(Kind::put, "others", R"({"pk":{"S":"a"},"sk":{"N":"7"}})"),
                       write(Kind::check, "items", R"({"pk":{"S":"d"}})", "", "attribute_not_exists(pk)")};
  };
  const auto failed = transact(actions("n > :one"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::transaction_canceled);
  EXPECT_EQ(failed.error().message,
            "Transaction cancelled, please refer cancellation reasons for specific reasons [None, "
            "ConditionalCheckFailed, None, None, None]");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), "none");
  EXPECT_EQ(get("items", R"({"pk":{"S":"c"}})"), R"({"pk":{"S":"c"}})");

  EXPECT_EQ(outcome(transact(actions("n = :one"))), "ok");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), R"({"pk":{"S":"a"},"x":{"S":"new"}})");
  EXPECT_EQ(get("items", R"({"pk":{"S":"b"}})"), R"({"n":{"N":"2"},"pk":{"S":"b"}})");
  EXPECT_EQ(get("items", R"({"pk":{"S":"c"}})"), "none");
  EXPECT_EQ(get("others", R"({"pk":{"S":"a"},"sk":{"N":"7"}})"), R"({"pk":{"S":"a"},"sk":{"N":"7"}})");
}

TEST_P(Transactions, SayOfEachActionWhatWasWrong) {
  create("items");
  put("items", R"({"pk":{"S":"a"},"s":{"S":"text"}})");
  auto check = write(Kind::check, "items", R"({"pk":{"S":"a"}})", "", "attribute_not_exists(pk)");
  check.return_old_on_failure = true;
  const auto failed = transact({check,
                                write(Kind::update, "items", R"({"pk":{"S":"b"}})", "SET x = nothing + :one",
                                      "", R"({":one":{"N":"1"}})"),
                                write(Kind::put, "items", R"({"pk":{"S":"c"}})")});
  ASSERT_FALSE(failed);
  ASSERT_EQ(codes(failed.error()), "ConditionalCheckFailed ValidationError None ") << failed.error().message;
  EXPECT_EQ(json_of(*failed.error().reasons[0].item), R"({"pk":{"S":"a"},"s":{"S":"text"}})");
  EXPECT_EQ(failed.error().reasons[1].message,
            "The provided expression refers to an attribute that does not exist in the item");
  EXPECT_TRUE(failed.error().reasons[2].message.empty());
}

TEST_P(Transactions, RefuseWhatCannotBeOneTransaction) {
  create("items", 'S');
  const char* key = R"({"pk":{"S":"a"},"sk":{"S":"b"}})";
  EXPECT_EQ(outcome(transact({write(Kind::put, "items", key),
                              write(Kind::remove, "items", R"({"pk":{"S":"a"},"sk":{"S":"b"}})")})),
            "Transaction request cannot include multiple operations on one item");
  EXPECT_EQ(outcome(transact({write(Kind::put, "nowhere", key)})), "Requested resource not found");
  EXPECT_EQ(outcome(transact({write(Kind::check, "items", key, "", "attribute_exists(")})),
            "Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"(\"");
  EXPECT_EQ(
      outcome(transact({write(Kind::put, "items", R"({"pk":{"S":""},"sk":{"S":"b"}})")})),
      "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
      "empty string value. Key: pk");
  const auto mismatch =
      transact({write(Kind::put, "items", key), write(Kind::remove, "items", R"({"pk":{"S":"a"}})")});
  EXPECT_EQ(codes(mismatch.error()), "None ValidationError ");
  EXPECT_EQ(mismatch.error().reasons[1].message, "The provided key element does not match the schema");
  std::vector<TransactWrite> large;
  for (int i = 0; i < 12; ++i)
    large.push_back(write(Kind::put, "items",
                          fmt::format(R"({{"pk":{{"S":"{}"}},"sk":{{"S":"b"}},"x":{{"S":"{}"}}}})", i,
                                      std::string(360'000, 'x'))));
  EXPECT_TRUE(outcome(transact(std::move(large))).starts_with("Transaction payload size cannot exceed 4MB."));
}

TEST_P(Transactions, AreDoneOnceForAToken) {
  create("counters");
  const auto increment = [&](std::string_view key, const char* by) {
    return std::vector{write(Kind::update, "counters", key, "ADD n :by", "", by)};
  };
  const char* key = R"({"pk":{"S":"c"}})";
  const auto first = transact(increment(key, R"({":by":{"N":"1"}})"), "token", CapacityDetail::total);
  if (!is_dynamodb_local()) EXPECT_EQ(first->capacity[0].total(), 2);
  EXPECT_EQ(first->capacity[0].kind, store::CapacityKind::write);
  restart();
  const auto again = transact(increment(key, R"({":by":{"N":"1.0"}})"), "token", CapacityDetail::total);
  ASSERT_TRUE(again) << again.error().message;
  if (!is_dynamodb_local()) EXPECT_EQ(again->capacity[0].total(), 2);
  EXPECT_EQ(again->capacity[0].kind, store::CapacityKind::read);
  EXPECT_EQ(get("counters", key), R"({"n":{"N":"1"},"pk":{"S":"c"}})");
  const auto other = transact(increment(key, R"({":by":{"N":"2"}})"), "token");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::idempotent_parameter_mismatch);
  if (!advance(std::chrono::minutes{11})) return;
  EXPECT_EQ(outcome(transact(increment(key, R"({":by":{"N":"2"}})"), "token")), "ok");
  EXPECT_EQ(get("counters", key), R"({"n":{"N":"3"},"pk":{"S":"c"}})");
}

TEST_P(Transactions, ForgetTheTokenOfAFailure) {
  create("items");
  const char* key = R"({"pk":{"S":"a"}})";
  const auto checked = [&] {
    return std::vector{
        write(Kind::update, "items", key, "SET y = :y", "attribute_exists(x)", R"({":y":{"N":"1"}})")};
  };
  EXPECT_FALSE(transact(checked(), "t"));
  put("items", R"({"pk":{"S":"a"},"x":{"N":"1"}})");
  EXPECT_EQ(outcome(transact(checked(), "t")), "ok");
}

TEST_P(Transactions, ChargeTablesTwiceAndIndexesOnce) {
  create("items", ' ', {index("by_g", {"g"}, {})}, {}, {{"g", item::Type::S}});
  const auto result =
      transact({write(Kind::put, "items", R"({"g":{"S":"x"},"pk":{"S":"a"}})"),
                write(Kind::check, "items", R"({"pk":{"S":"b"}})", "", "attribute_not_exists(pk)")},
               std::nullopt, CapacityDetail::indexes);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->capacity.size(), 1u);
  EXPECT_EQ(result->capacity[0].table_units, 4);
  EXPECT_EQ(result->capacity[0].global_indexes.at("by_g"), 1);
  EXPECT_EQ(result->capacity[0].total(), 5);
}

TEST_P(Transactions, ReadSeveralItemsAtOneMoment) {
  create("items");
  create("others", 'N');
  put("items", R"({"pk":{"S":"a"},"x":{"S":"1"},"y":{"S":"2"}})");
  put("others", R"({"pk":{"S":"a"},"sk":{"N":"7"}})");
  store::TransactGetItemsRequest request{.capacity = CapacityDetail::total};
  request.gets.push_back({.table = "items", .key = item_of(R"({"pk":{"S":"a"}})"), .projection = "y"});
  request.gets.push_back({.table = "items", .key = item_of(R"({"pk":{"S":"none"}})")});
  request.gets.push_back({.table = "others", .key = item_of(R"({"pk":{"S":"a"},"sk":{"N":"7"}})")});
  const auto result = run(store().transact_get_items(request));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(json_of(*result->responses[0]), R"({"y":{"S":"2"}})");
  EXPECT_FALSE(result->responses[1]);
  EXPECT_EQ(json_of(*result->responses[2]), R"({"pk":{"S":"a"},"sk":{"N":"7"}})");
  ASSERT_EQ(result->capacity.size(), 2u);
  EXPECT_EQ(result->capacity[0].total(), 4);
  EXPECT_EQ(result->capacity[1].total(), 2);

  request.gets[1].key = item_of("{}");
  const auto wrong = run(store().transact_get_items(request));
  ASSERT_FALSE(wrong);
  if (!is_dynamodb_local()) EXPECT_EQ(codes(wrong.error()), "None ValidationError None ");
}

TEST_P(Transactions, AreNeverSeenHalfDone) {
  create("pairs");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      const auto version = fmt::format(R"({{":v":{{"N":"{}"}}}})", i);
      EXPECT_EQ(
          outcome(transact(
              {write(Kind::update, "pairs", R"({"pk":{"S":"a"}})", "SET v = :v", "", version.c_str()),
               write(Kind::update, "pairs", R"({"pk":{"S":"b"}})", "SET v = :v", "", version.c_str())})),
          "ok");
    }
    stop = true;
  });
  while (!stop) {
    store::TransactGetItemsRequest request;
    for (const char* key : {R"({"pk":{"S":"a"}})", R"({"pk":{"S":"b"}})"})
      request.gets.push_back({.table = "pairs", .key = item_of(key), .projection = "v"});
    const auto read = run(store().transact_get_items(request));
    ASSERT_TRUE(read);
    const auto shown = [](const auto& item) { return item ? json_of(*item) : "none"; };
    EXPECT_EQ(shown(read->responses[0]), shown(read->responses[1]));
  }
  writer.join();
}

TABELLA_CONTRACT(Transactions);

}  // namespace
}  // namespace tabella::contract

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "contract/contract.h"
#include "item/attribute_json.h"

namespace tabella::contract {
namespace {

using store::ProjectionType;
using store::ReturnValues;

store::WriteOptions when(std::string condition, const char* values = nullptr) {
  store::WriteOptions options;
  options.condition = std::move(condition);
  if (values) options.attributes.values = item_of(values);
  return options;
}

store::UpdateItemRequest change(std::string table, std::string_view key, std::string expression,
                                const char* values, ReturnValues returned = ReturnValues::none) {
  store::UpdateItemRequest request{
      .table = std::move(table), .key = item_of(key), .update = std::move(expression)};
  if (values) request.options.attributes.values = item_of(values);
  request.options.return_values = returned;
  return request;
}

store::QueryRequest where(std::string table, std::string condition, const char* values) {
  store::QueryRequest request;
  request.options.table = std::move(table);
  request.key_condition = std::move(condition);
  request.options.attributes.values = item_of(values);
  return request;
}

store::ScanRequest all_of(std::string table) {
  store::ScanRequest request;
  request.options.table = std::move(table);
  return request;
}

TEST_P(StoreContract, KeepsWhatWasPutOverARestart) {
  create("items");
  EXPECT_EQ(put("items", R"({"l":{"L":[{"SS":["x"]}]},"n":{"N":"1.50"},"pk":{"S":"a"}})"), "ok");
  restart();
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"),
            R"({"l":{"L":[{"SS":["x"]}]},"n":{"N":"1.5"},"pk":{"S":"a"}})");
  EXPECT_EQ(get("items", R"({"pk":{"S":"b"}})"), "none");
}

TEST_P(StoreContract, ReplacesAndReturnsTheOldItem) {
  create("items");
  store::WriteOptions old;
  old.return_values = ReturnValues::all_old;
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"},"x":{"S":"1"}})", old), "ok");
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"},"y":{"S":"2"}})", old), R"({"pk":{"S":"a"},"x":{"S":"1"}})");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), R"({"pk":{"S":"a"},"y":{"S":"2"}})");
}

TEST_P(StoreContract, ChecksConditionsAgainstTheItemAsItIs) {
  create("items");
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"},"v":{"N":"1"}})", when("attribute_not_exists(pk)")), "ok");
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"},"v":{"N":"2"}})", when("attribute_not_exists(pk)")),
            "The conditional request failed");
  auto options = when("v = :v", R"({":v":{"N":"9"}})");
  options.return_old_on_failure = true;
  const auto failed = run(store().put_item(
      {.table = "items", .item = item_of(R"({"pk":{"S":"a"}})"), .options = std::move(options)}));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, store::ErrorCode::conditional_check_failed);
  EXPECT_EQ(json_of(*failed.error().item), R"({"pk":{"S":"a"},"v":{"N":"1"}})");
}

TEST_P(StoreContract, TakesAnArnForATable) {
  create("items");
  const auto arn = run(store().describe_table("items"))->arn;
  EXPECT_EQ(put(arn, R"({"pk":{"S":"a"}})"), "ok");
  EXPECT_EQ(get(arn, R"({"pk":{"S":"a"}})"), R"({"pk":{"S":"a"}})");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), R"({"pk":{"S":"a"}})");
  if (!is_dynamodb_local())
    EXPECT_EQ(execute(fmt::format("SELECT * FROM \"{}\"", arn)), "{\"pk\":{\"S\":\"a\"}}\n");
  EXPECT_EQ(outcome(run(store().delete_table(arn))), "ok");
}

TEST_P(StoreContract, DeletesOnce) {
  create("items");
  put("items", R"({"pk":{"S":"a"},"v":{"N":"1"}})");
  store::DeleteItemRequest request{.table = "items", .key = item_of(R"({"pk":{"S":"a"}})"), .options = {}};
  request.options.return_values = ReturnValues::all_old;
  const auto first = run(store().delete_item(request));
  EXPECT_EQ(json_of(*first->attributes), R"({"pk":{"S":"a"},"v":{"N":"1"}})");
  const auto second = run(store().delete_item(request));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->attributes);
}

TEST_P(StoreContract, UpdatesAndReturnsWhatWasAskedFor) {
  create("items");
  const char* key = R"({"pk":{"S":"a"}})";
  const char* values = R"({":n":{"N":"2"}})";
  EXPECT_EQ(update(change("items", key, "ADD n :n", values, ReturnValues::updated_new)),
            R"({"n":{"N":"2"}})");
  EXPECT_EQ(update(change("items", key, "ADD n :n", values, ReturnValues::updated_old)),
            R"({"n":{"N":"2"}})");
  EXPECT_EQ(update(change("items", key, "SET m = :n", values, ReturnValues::all_old)),
            R"({"n":{"N":"4"},"pk":{"S":"a"}})");
  EXPECT_EQ(update(change("items", key, "REMOVE m", nullptr, ReturnValues::updated_new)), "ok");
  EXPECT_EQ(update(change("items", key, "SET q = if_not_exists(q, :n)", values, ReturnValues::all_new)),
            R"({"n":{"N":"4"},"pk":{"S":"a"},"q":{"N":"2"}})");
}

TEST_P(StoreContract, DoesNotBringAnItemIntoBeingByTakingAway) {
  create("items");
  const char* key = R"({"pk":{"S":"a"}})";
  EXPECT_EQ(update(change("items", key, "REMOVE x", nullptr, ReturnValues::all_new)), "ok");
  EXPECT_EQ(get("items", key), "none");
  EXPECT_EQ(update({.table = "items", .key = item_of(key)}), "ok");
  EXPECT_EQ(get("items", key), key);
}

TEST_P(StoreContract, RefusesToUpdateTheKey) {
  create("items", 'S');
  EXPECT_EQ(
      update(change("items", R"({"pk":{"S":"a"},"sk":{"S":"b"}})", "SET sk = :v", R"({":v":{"S":"c"}})")),
      "One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the "
      "key");
}

TEST_P(StoreContract, RefusesBadKeys) {
  create("items", 'S');
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"}})"),
            "One or more parameter values were invalid: Missing the key sk in the item");
  EXPECT_EQ(put("items", R"({"pk":{"N":"1"},"sk":{"S":"b"}})"),
            "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N");
  EXPECT_EQ(put("items", R"({"pk":{"S":""},"sk":{"S":"b"}})"),
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
            "contain an empty "
            "string value. Key: pk");
  EXPECT_EQ(get("items", R"({"pk":{"S":"a"}})"), "The provided key element does not match the schema");
  EXPECT_EQ(put("items", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"S":"{}"}}}})", std::string(1025, 'x'))),
            "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the "
            "size limit of "
            "1024 bytes");
  EXPECT_EQ(get("nowhere", R"({"pk":{"S":"a"}})"), "Requested resource not found");
}

TEST_P(StoreContract, HoldsItemsUpToFourHundredKilobytes) {
  create("items");
  const auto item = [](size_t size) {
    return fmt::format(R"({{"pk":{{"S":"a"}},"d":{{"S":"{}"}}}})", std::string(size - 4, 'x'));
  };
  EXPECT_EQ(put("items", item(409'600)), "ok");
  EXPECT_EQ(put("items", item(409'601)), "Item size has exceeded the maximum allowed size");
}

TEST_P(StoreContract, QueriesInTheOrderOfTheSortKey) {
  create("numbers", 'N');
  for (const char* n : {"10", "-1", "2", "0.5", "1e3", "-2.5"})
    put("numbers", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"N":"{}"}}}})", n));
  put("numbers", R"({"pk":{"S":"b"},"sk":{"N":"3"}})");
  auto request = where("numbers", "pk = :p", R"({":p":{"S":"a"}})");
  request.options.projection = "sk";
  const std::string up =
      "{\"sk\":{\"N\":\"-2.5\"}}\n{\"sk\":{\"N\":\"-1\"}}\n{\"sk\":{\"N\":\"0.5\"}}\n{\"sk\":{\"N\":\"2\"}}\n"
      "{\"sk\":{\"N\":\"10\"}}\n{\"sk\":{\"N\":\"1000\"}}\n";
  EXPECT_EQ(query(request), up);
  request.options.limit = 1;  // a page for each item
  EXPECT_EQ(query(request), up);
  request.forward = false;
  request.options.limit = 4;
  EXPECT_TRUE(query(request).starts_with("{\"sk\":{\"N\":\"1000\"}}\n{\"sk\":{\"N\":\"10\"}}\n"));
}

TEST_P(StoreContract, QueriesRangesOfEveryKind) {
  create("words", 'S');
  for (const char* w : {"a", "ab", "abc", "b", "ba", "\\u0000", "ab\\u0000", "z"})
    put("words", fmt::format(R"({{"pk":{{"S":"p"}},"sk":{{"S":"{}"}}}})", w));
  const auto count = [&](std::string condition, const char* values) {
    auto request = where("words", "pk = :p AND " + condition, values);
    request.options.select = store::Select::count;
    return run(store().query(request))->count;
  };
  EXPECT_EQ(count("sk = :v", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 1);
  EXPECT_EQ(count("begins_with(sk, :v)", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 3);
  EXPECT_EQ(count("sk < :v", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 2);
  EXPECT_EQ(count("sk <= :v", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 3);
  EXPECT_EQ(count("sk > :v", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 5);
  EXPECT_EQ(count("sk >= :v", R"({":p":{"S":"p"},":v":{"S":"ab"}})"), 6);
  EXPECT_EQ(count("sk BETWEEN :v AND :w", R"({":p":{"S":"p"},":v":{"S":"ab"},":w":{"S":"b"}})"), 4);
}

TEST_P(StoreContract, EndsPagesAtOneMegabyte) {
  create("large", 'N');
  for (int i = 0; i < 30; ++i)
    put("large", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"N":"{}"}},"d":{{"S":"{}"}}}})", i,
                             std::string(60'000, 'x')));
  const auto page = run(store().query(where("large", "pk = :p", R"({":p":{"S":"a"}})")));
  EXPECT_GT(page->count, 10);
  EXPECT_LT(page->count, 20);
  ASSERT_TRUE(page->last_key);
  auto request = where("large", "pk = :p", R"({":p":{"S":"a"}})");
  request.options.projection = "sk";
  const auto all = query(request);
  EXPECT_EQ(std::ranges::count(all, '\n'), 30);
}

TEST_P(StoreContract, FiltersAfterTheLimit) {
  create("items", 'N');
  for (int i = 0; i < 10; ++i)
    put("items", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"N":"{}"}},"odd":{{"BOOL":{}}}}})", i, i % 2 == 1));
  auto request = where("items", "pk = :p", R"({":p":{"S":"a"},":t":{"BOOL":true}})");
  request.options.filter = "odd = :t";
  request.options.limit = 4;
  const auto page = run(store().query(request));
  EXPECT_EQ(page->scanned, 4);
  EXPECT_EQ(page->count, 2);
  EXPECT_TRUE(page->last_key);
}

TEST_P(StoreContract, ScansEverythingOnceInParallelSegments) {
  create("items");
  std::set<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    const auto item = fmt::format(R"({{"pk":{{"S":"key-{}"}}}})", i);
    put("items", item);
    expected.insert(item + "\n");
  }
  for (const int64_t segments : {1, 3, 7}) {
    std::multiset<std::string> seen;
    for (int64_t segment = 0; segment < segments; ++segment) {
      auto request = all_of("items");
      request.segment = segment;
      request.total_segments = segments;
      request.options.limit = 11;
      const auto lines = scan(request);
      for (size_t from = 0; from < lines.size();) {
        const auto end = lines.find('\n', from) + 1;
        seen.insert(lines.substr(from, end - from));
        from = end;
      }
    }
    EXPECT_TRUE(std::ranges::equal(seen, expected)) << segments;
  }
}

TEST_P(StoreContract, KeepsGlobalIndexesWithTheirItems) {
  create("items", ' ', {index("by_kind", {"kind"}, {"at"}, ProjectionType::include, {"title"})}, {},
         {{"kind", item::Type::S}, {"at", item::Type::N}});
  put("items", R"({"at":{"N":"2"},"kind":{"S":"k"},"other":{"S":"x"},"pk":{"S":"a"},"title":{"S":"A"}})");
  put("items", R"({"at":{"N":"1"},"kind":{"S":"k"},"pk":{"S":"b"}})");
  put("items", R"({"kind":{"S":"k"},"pk":{"S":"c"}})");  // sparse: no sort attribute
  auto request = where("items", "kind = :k", R"({":k":{"S":"k"}})");
  request.options.index = "by_kind";
  EXPECT_EQ(query(request),
            "{\"at\":{\"N\":\"1\"},\"kind\":{\"S\":\"k\"},\"pk\":{\"S\":\"b\"}}\n"
            "{\"at\":{\"N\":\"2\"},\"kind\":{\"S\":\"k\"},\"pk\":{\"S\":\"a\"},\"title\":{\"S\":\"A\"}}\n");
  request.options.limit = 1;
  EXPECT_EQ(std::ranges::count(query(request), '\n'), 2) << "the cursor carries both keys";
  update(change("items", R"({"pk":{"S":"a"}})", "SET kind = :k", R"({":k":{"S":"other"}})"));
  update(change("items", R"({"pk":{"S":"b"}})", "REMOVE kind", nullptr));
  EXPECT_EQ(query(request), "");
  EXPECT_SAYS(
      put("items", R"({"kind":{"N":"1"},"pk":{"S":"d"}})"),
      "One or more parameter values were invalid: Type mismatch for Index Key kind Expected: S Actual: "
      "N IndexName: "
      "by_kind");
}

TEST_P(StoreContract, QueriesGlobalIndexesOfSeveralAttributes) {
  create(
      "games", ' ', {index("by_place", {"country", "city"}, {"day", "hour"})}, {},
      {{"country", item::Type::S}, {"city", item::Type::S}, {"day", item::Type::N}, {"hour", item::Type::N}});
  int n = 0;
  for (const char* city : {"Rome", "Milan"})
    for (int day = 1; day <= 2; ++day)
      for (int hour = 9; hour <= 11; ++hour)
        put("games",
            fmt::format(
                R"({{"pk":{{"S":"g{}"}},"country":{{"S":"IT"}},"city":{{"S":"{}"}},"day":{{"N":"{}"}},"hour":{{"N":"{}"}}}})",
                n++, city, day, hour));
  const auto count = [&](std::string condition, const char* values) {
    auto request = where("games", std::move(condition), values);
    request.options.index = "by_place";
    const auto page = run(store().query(request));
    return page ? std::to_string(page->count) : page.error().message;
  };
  EXPECT_EQ(count("country = :c AND city = :t", R"({":c":{"S":"IT"},":t":{"S":"Rome"}})"), "6");
  EXPECT_EQ(count("country = :c AND city = :t AND #d = :d",
                  R"({":c":{"S":"IT"},":d":{"N":"1"},":t":{"S":"Rome"}})"),
            "Invalid KeyConditionExpression: An expression attribute name used in the document path is not "
            "defined; "
            "attribute name: #d");
  const auto named = [&](std::string condition, const char* values) {
    auto request = where("games", std::move(condition), values);
    request.options.index = "by_place";
    request.options.attributes.names = store::Names{{"#d", "day"}, {"#h", "hour"}};
    const auto page = run(store().query(request));
    return page ? std::to_string(page->count) : page.error().message;
  };
  EXPECT_EQ(named("country = :c AND city = :t AND #d = :d AND #h > :h",
                  R"({":c":{"S":"IT"},":d":{"N":"1"},":h":{"N":"9"},":t":{"S":"Rome"}})"),
            "2");
  EXPECT_NE(
      named("country = :c AND #d = :d AND #h > :h", R"({":c":{"S":"IT"},":d":{"N":"1"},":h":{"N":"9"}})")
          .find("HASH key attribute of the index needs an equality"),
      std::string::npos);
  EXPECT_NE(named("country = :c AND city = :t AND #d > :d AND #h = :h",
                  R"({":c":{"S":"IT"},":d":{"N":"1"},":h":{"N":"9"},":t":{"S":"Rome"}})")
                .find("RANGE key attributes"),
            std::string::npos);
}

TEST_P(StoreContract, FetchesFromTheTableWhatALocalIndexLacks) {
  create("items", 'S', {}, {index("by_at", {"pk"}, {"at"}, ProjectionType::keys_only)},
         {{"at", item::Type::N}});
  put("items", R"({"at":{"N":"5"},"pk":{"S":"a"},"sk":{"S":"1"},"x":{"S":"X"}})");
  auto request = where("items", "pk = :p AND at > :n", R"({":n":{"N":"1"},":p":{"S":"a"}})");
  request.options.attributes.names = store::Names{{"#a", "at"}};
  request.key_condition = "pk = :p AND #a > :n";
  request.options.index = "by_at";
  EXPECT_EQ(query(request), "{\"at\":{\"N\":\"5\"},\"pk\":{\"S\":\"a\"},\"sk\":{\"S\":\"1\"}}\n");
  request.options.select = store::Select::all_attributes;
  EXPECT_EQ(query(request),
            "{\"at\":{\"N\":\"5\"},\"pk\":{\"S\":\"a\"},\"sk\":{\"S\":\"1\"},\"x\":{\"S\":\"X\"}}\n");
}

TEST_P(StoreContract, CountsWhatALocalIndexFetchesTowardsThePage) {
  create("large", 'N', {}, {index("by_at", {"pk"}, {"at"}, ProjectionType::keys_only)},
         {{"at", item::Type::N}});
  for (int i = 0; i < 10; ++i)
    put("large", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"N":"{}"}},"at":{{"N":"{}"}},"d":{{"S":"{}"}}}})",
                             i, i, std::string(300'000, 'x')));
  auto request = where("large", "pk = :p", R"({":p":{"S":"a"}})");
  request.options.index = "by_at";
  request.options.select = store::Select::all_attributes;
  const auto page = run(store().query(request));
  EXPECT_LT(page->count, 6);
  EXPECT_TRUE(page->last_key);
}

TEST_P(StoreContract, RefusesStartKeysThatAreNotOne) {
  create("items", ' ', {index("by_k", {"k"}, {})}, {}, {{"k", item::Type::S}});
  create("sorted", 'S');
  auto request = all_of("items");
  request.options.index = "by_k";
  request.options.start_key = item_of(R"({"k":{"S":"x"},"other":{"S":"y"}})");
  EXPECT_EQ(scan(request),
            "The provided starting key is invalid: The provided key element does not match the schema");
  request.options.start_key = item_of(R"({"pk":{"S":"x"}})");
  EXPECT_EQ(scan(request), "The provided starting key is invalid");
  auto sorted = where("sorted", "pk = :p", R"({":p":{"S":"a"}})");
  sorted.options.start_key = item_of(R"({"pk":{"S":"b"},"sk":{"S":"c"}})");
  EXPECT_EQ(query(sorted),
            "The provided starting key is outside query boundaries based on provided conditions");
}

TEST_P(StoreContract, LetsAnUpdateReadTheKeyOfANewItem) {
  create("items", 'S');
  EXPECT_EQ(update(change("items", R"({"pk":{"S":"a"},"sk":{"S":"b"}})",
                          "SET x = if_not_exists(x, pk), y = sk", nullptr, ReturnValues::all_new)),
            R"({"pk":{"S":"a"},"sk":{"S":"b"},"x":{"S":"a"},"y":{"S":"b"}})");
}

TEST_P(StoreContract, AddsLargeSetsInReasonableTime) {
  create("items");
  item::Value set = item::Value::set(item::Type::NS, {});
  for (int i = 0; i < 60'000; ++i) set.contents().push_back(item::Value::integer(i).content());
  auto request = change("items", R"({"pk":{"S":"a"}})", "ADD s :s", nullptr);
  item::ItemBuilder values;
  const auto flat = item::encode(set);
  values.add(":s", item::ValueView(flat));
  request.options.attributes.values = values.finish();
  EXPECT_EQ(update(request), "ok");
  EXPECT_EQ(update(request), "ok") << "every element is known already";
}

TEST_P(StoreContract, ReturnsSetsInOrder) {
  create("items");
  EXPECT_EQ(put("items", R"({"n":{"NS":["10","9","-1"]},"pk":{"S":"a"},"s":{"SS":["b","c"]}})"), "ok");
  EXPECT_EQ(update(change("items", R"({"pk":{"S":"a"}})", "ADD s :s DELETE n :n",
                          R"({":n":{"NS":["9"]},":s":{"SS":["d","a"]}})")),
            "ok");
  const auto found =
      run(store().get_item({.table = "items", .key = item_of(R"({"pk":{"S":"a"}})"), .consistent = true}));
  ASSERT_TRUE(found && found->item);
  const auto shown = [&](std::string_view attribute) {
    std::string json;
    item::append_value_json(json, *found->item->find(attribute));
    return json;
  };
  EXPECT_EQ(shown("s"), R"({"SS":["a","b","c","d"]})");
  EXPECT_EQ(shown("n"), R"({"NS":["-1","10"]})");
}

TEST_P(StoreContract, LimitsWhatExpressionsStandFor) {
  create("items");
  auto request = change("items", R"({"pk":{"S":"a"}})", "SET #n = :v", R"({":v":{"S":"x"}})");
  request.options.attributes.names = store::Names{{"#" + std::string(255, 'n'), "name"}};
  EXPECT_SAYS(update(request),
              "ExpressionAttributeNames contains invalid key: The expression attribute map contains a key "
              "that is too long; size of key: 256");
  request.options.attributes.names = store::Names{{"#n", "name"}};
  item::ItemBuilder values;
  const auto large = item::encode(item::Value::string(std::string(700'000, 'x')));
  for (const char* name : {":v", ":w", ":x"}) values.add(name, item::ValueView(large));
  request.options.attributes.values = values.finish();
  EXPECT_SAYS(update(request), "ExpressionAttributeValues exceeds max size");
}

TEST_P(StoreContract, FillsAnIndexThatIsAddedLater) {
  create("items");
  for (int i = 0; i < 1000; ++i)
    put("items", fmt::format(R"({{"pk":{{"S":"k{}"}},"group":{{"S":"g{}"}}}})", i, i % 10));
  put("items", R"({"group":{"N":"1"},"pk":{"S":"odd"}})");  // cannot be in the index: left out
  store::UpdateTableRequest request{.table = "items", .attributes = {{"group", item::Type::S}}};
  request.global_index_updates.push_back({.create = index("by_group", {"group"}, {})});
  const auto updating = run(store().update_table(request));
  ASSERT_TRUE(updating) << updating.error().message;
  EXPECT_EQ(updating->status, store::Status::updating);
  EXPECT_TRUE(updating->global_indexes[0].backfilling);
  for (int i = 1000; i < 1200; ++i)  // while it is being filled
    put("items", fmt::format(R"({{"pk":{{"S":"k{}"}},"group":{{"S":"g{}"}}}})", i, i % 10));
  wait_until_active("items");
  auto query_request = where("items", "#g = :g", R"({":g":{"S":"g3"}})");
  query_request.options.attributes.names = store::Names{{"#g", "group"}};
  query_request.options.index = "by_group";
  EXPECT_EQ(std::ranges::count(query(query_request), '\n'), 120);
  const auto table = run(store().describe_table("items"));
  EXPECT_EQ(table->item_count, 1201);
  EXPECT_EQ(table->global_indexes[0].item_count, 1200);

  store::UpdateTableRequest drop{.table = "items"};
  drop.global_index_updates.push_back({.remove = "by_group"});
  EXPECT_EQ(outcome(run(store().update_table(drop))), "ok");
  EXPECT_EQ(query(query_request), "The table does not have the specified index: by_group");
  EXPECT_EQ(put("items", R"({"group":{"N":"1"},"pk":{"S":"x"}})"), "ok") << "its types went with it";
}

TEST_P(StoreContract, WritesBatchesWholeOrNotAtAll) {
  create("items");
  const auto write = [](std::string_view item) {
    return store::BatchWrite{.put = true, .item = item_of(item)};
  };
  store::BatchWriteItemRequest good;
  good.tables.push_back({"items", {}});
  for (int i = 0; i < 25; ++i)
    good.tables[0].second.push_back(write(fmt::format(R"({{"pk":{{"S":"{}"}}}})", i)));
  EXPECT_EQ(outcome(run(store().batch_write_item(good))), "ok");

  store::BatchWriteItemRequest twice;
  twice.tables.push_back({"items", {write(R"({"pk":{"S":"new"}})"), write(R"({"pk":{"S":"new"}})")}});
  EXPECT_EQ(outcome(run(store().batch_write_item(twice))), "Provided list of item keys contains duplicates");
  store::BatchWriteItemRequest wrong;
  wrong.tables.push_back({"items", {write(R"({"pk":{"S":"new"}})"), write(R"({"pk":{"N":"1"}})")}});
  EXPECT_SAYS(outcome(run(store().batch_write_item(wrong))),
              "The provided key element does not match the schema");
  EXPECT_EQ(get("items", R"({"pk":{"S":"new"}})"), "none");

  store::BatchGetItemRequest request;
  request.tables.push_back(
      {.table = "items", .keys = {item_of(R"({"pk":{"S":"3"}})"), item_of(R"({"pk":{"S":"no"}})")}});
  const auto found = run(store().batch_get_item(request));
  ASSERT_EQ(found->responses.size(), 1u);
  ASSERT_EQ(found->responses[0].second.size(), 1u);
  EXPECT_EQ(json_of(found->responses[0].second[0]), R"({"pk":{"S":"3"}})");
}

TEST_P(StoreContract, RefusesBatchesThatMixExpressionsWithWhatCameBeforeThem) {
  create("items");
  create("others");
  store::BatchGetItemRequest request;
  request.tables.push_back({.table = "items", .keys = {item_of(R"({"pk":{"S":"a"}})")}, .projection = "pk"});
  request.tables.push_back({.table = "others", .keys = {item_of(R"({"pk":{"S":"a"}})")}});
  EXPECT_EQ(outcome(run(store().batch_get_item(request))), "ok");
  request.tables[1].attributes_to_get = {{"pk"}};
  if (!is_dynamodb_local())
    EXPECT_EQ(outcome(run(store().batch_get_item(request))),
              "Can not use both expression and non-expression parameters in the same request: Non-expression "
              "parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}");
  request.tables[0].projection.reset();
  EXPECT_EQ(outcome(run(store().batch_get_item(request))), "ok");
}

TEST_P(StoreContract, CountsCapacity) {
  create("items", ' ', {index("by_k", {"k"}, {})}, {}, {{"k", item::Type::S}});
  store::WriteOptions options;
  options.capacity = store::CapacityDetail::indexes;
  const auto item =
      fmt::format(R"({{"pk":{{"S":"a"}},"k":{{"S":"x"}},"d":{{"S":"{}"}}}})", std::string(1500, 'x'));
  auto put_result = run(store().put_item({.table = "items", .item = item_of(item), .options = options}));
  EXPECT_EQ(put_result->capacity->table_units, 2);
  EXPECT_EQ(put_result->capacity->global_indexes.at("by_k"), 2);
  EXPECT_EQ(put_result->capacity->total(), 4);
  put_result =
      run(store().put_item({.table = "items", .item = item_of(R"({"pk":{"S":"a"}})"), .options = options}));
  EXPECT_EQ(put_result->capacity->table_units, 2) << "the larger of before and after";
  store::GetItemRequest get_request{.table = "items", .key = item_of(R"({"pk":{"S":"a"}})")};
  get_request.capacity = store::CapacityDetail::total;
  EXPECT_EQ(run(store().get_item(get_request))->capacity->total(), 0.5);
  get_request.consistent = true;
  EXPECT_EQ(run(store().get_item(get_request))->capacity->total(), 1);
}

TEST_P(StoreContract, CreatesListsAndDropsTables) {
  create("table-b");
  create("table-a");
  create("table-c");
  EXPECT_EQ(run(store().list_tables({}))->names, (std::vector<std::string>{"table-a", "table-b", "table-c"}));
  const auto page = run(store().list_tables({.start = "table-a", .limit = 1}));
  EXPECT_EQ(page->names, std::vector<std::string>{"table-b"});
  EXPECT_EQ(page->last, "table-b");
  put("table-a", R"({"pk":{"S":"x"}})");
  EXPECT_EQ(outcome(run(store().delete_table("table-a"))), "ok");
  EXPECT_SAYS(outcome(run(store().describe_table("table-a"))),
              "Requested resource not found: Table: table-a not found");
  create("table-a");
  EXPECT_EQ(get("table-a", R"({"pk":{"S":"x"}})"), "none") << "a new table is empty";
  EXPECT_EQ(run(store().describe_table("table-a"))->item_count, 0);
}

TEST_P(StoreContract, RefusesATableThatExistsOrIsProtected) {
  create("items");
  store::CreateTableRequest request;
  request.definition.name = "items";
  request.definition.billing_mode = store::BillingMode::pay_per_request;
  request.definition.attributes = {{"pk", item::Type::S}};
  request.definition.key_schema = {{"pk", store::KeyRole::hash}};
  const auto again = run(store().create_table(request));
  EXPECT_EQ(again.error().code, store::ErrorCode::resource_in_use);
  store::UpdateTableRequest protect{.table = "items"};
  protect.deletion_protection = true;
  EXPECT_EQ(outcome(run(store().update_table(protect))), "ok");
  restart();
  EXPECT_EQ(
      outcome(run(store().delete_table("items"))),
      "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection "
      "first.");
}

TEST_P(StoreContract, KeepsTags) {
  create("items");
  const auto arn = run(store().describe_table("items"))->arn;
  EXPECT_EQ(outcome(run(store().tag_resource({arn, {{"team", "a"}, {"env", "dev"}}}))), "ok");
  EXPECT_EQ(outcome(run(store().tag_resource({arn, {{"team", "b"}}}))), "ok");
  EXPECT_EQ(outcome(run(store().untag_resource({arn, {"env", "unknown"}}))), "ok");
  restart();
  const auto tags = run(store().list_tags_of_resource(arn));
  ASSERT_EQ(tags->size(), 1u);
  EXPECT_EQ(tags->at(0).value, "b");
  const auto missing = run(store().list_tags_of_resource(arn + "-not"));
  EXPECT_EQ(outcome(missing), "Requested resource not found: ResourcArn: " + arn + "-not not found");
  const auto foreign =
      run(store().list_tags_of_resource("arn:aws:dynamodb:us-east-1:111122223333:table/items-not"));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, store::ErrorCode::access_denied);
}

TEST_P(StoreContract, DescribesWarmThroughput) {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = "items";
  d.billing_mode = store::BillingMode::provisioned;
  d.throughput = store::Throughput{.read = 5, .write = 6};
  d.attributes = {{"pk", item::Type::S}, {"k", item::Type::S}};
  d.key_schema = {{"pk", store::KeyRole::hash}};
  d.global_indexes.emplace().push_back(index("by_k", {"k"}, {}));
  d.global_indexes->at(0).throughput = store::Throughput{.read = 1, .write = 2};
  const auto created = run(store().create_table(request));
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_FALSE(created->definition.warm_throughput);
  EXPECT_FALSE(created->global_indexes.at(0).definition.warm_throughput);
  wait_until_active("items");

  using Units = std::pair<int64_t, int64_t>;
  const auto units = [](const std::optional<store::OptionalThroughput>& warm) {
    return warm ? Units(warm->read.value_or(0), warm->write.value_or(0)) : Units();
  };
  const auto now = [&] { return run(store().describe_table("items")).value(); };
  EXPECT_EQ(units(now().definition.warm_throughput), Units(5, 6));
  EXPECT_EQ(units(now().global_indexes.at(0).definition.warm_throughput), Units(1, 2));
  const auto provision = [&](int64_t read, int64_t write) {
    store::UpdateTableRequest wanted{.table = "items"};
    wanted.throughput = store::Throughput{.read = read, .write = write};
    EXPECT_EQ(outcome(run(store().update_table(wanted))), "ok");
    wait_until_active("items");
  };
  provision(50, 6);
  EXPECT_EQ(units(now().definition.warm_throughput), Units(50, 6));
  provision(3, 3);
  restart();
  EXPECT_EQ(units(now().definition.warm_throughput), Units(50, 6)) << "what was warm stays so";
  store::UpdateTableRequest on_demand{.table = "items"};
  on_demand.billing_mode = store::BillingMode::pay_per_request;
  EXPECT_EQ(outcome(run(store().update_table(on_demand))), "ok");
  EXPECT_EQ(units(now().definition.warm_throughput), Units(12000, 4000));

  d.name = "warmed";
  d.warm_throughput = store::OptionalThroughput{.read = 1000, .write = 1200};
  const auto warmed = run(store().create_table(request));
  ASSERT_TRUE(warmed) << warmed.error().message;
  EXPECT_EQ(units(warmed->definition.warm_throughput), Units(1000, 1200));
}

TEST_P(StoreContract, NamesTheKeyOfAnEncryptedTable) {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = "items";
  d.billing_mode = store::BillingMode::pay_per_request;
  d.attributes = {{"pk", item::Type::S}};
  d.key_schema = {{"pk", store::KeyRole::hash}};
  d.encryption = store::ServerSideEncryption{.enabled = true, .kms_key = {}};
  const auto created = run(store().create_table(request));
  ASSERT_TRUE(created) << created.error().message;
  ASSERT_TRUE(created->definition.encryption && created->definition.encryption->kms_key);
  EXPECT_TRUE(created->definition.encryption->kms_key->starts_with("arn:aws:kms:"));
  const auto encrypt = [&](bool enabled, const std::optional<std::string>& key) {
    store::UpdateTableRequest wanted{.table = "items"};
    wanted.encryption = store::ServerSideEncryption{.enabled = enabled, .kms_key = key};
    const auto updated = run(store().update_table(wanted));
    if (!updated) return updated.error().message;
    return updated->definition.encryption ? updated->definition.encryption->kms_key.value_or("") : "none";
  };
  EXPECT_EQ(encrypt(true, "1234abcd-12ab-34cd-56ef-1234567890ab"),
            "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab");
  EXPECT_EQ(encrypt(true, "arn:aws:kms:eu-west-1:111122223333:key/other"),
            "arn:aws:kms:eu-west-1:111122223333:key/other");
  EXPECT_EQ(encrypt(false, std::nullopt), "arn:aws:kms:eu-west-1:111122223333:key/other")
      << "it is on its way out";
  const auto described = run(store().describe_table("items"));
  EXPECT_FALSE(described->definition.encryption && described->definition.encryption->enabled);
}

TEST_P(StoreContract, TranslatesTheLegacyParameters) {
  create("items", 'N');
  put("items", R"({"l":{"L":[{"S":"1"}]},"pk":{"S":"a"},"sk":{"N":"1"},"v":{"S":"x"}})");
  store::WriteOptions expected;
  expected.expected = {{.attribute = "v",
                        .comparison = {},
                        .values = {},
                        .value = item::encode(item::Value::string("y")),
                        .exists = {}}};
  EXPECT_EQ(put("items", R"({"pk":{"S":"a"},"sk":{"N":"1"}})", expected), "The conditional request failed");
  store::UpdateItemRequest request{.table = "items", .key = item_of(R"({"pk":{"S":"a"},"sk":{"N":"1"}})")};
  request.updates = {{.attribute = "l",
                      .action = "ADD",
                      .value = item::encode(item::Value::list({item::Value::string("2")}))},
                     {.attribute = "v", .action = "DELETE", .value = {}}};
  request.options.return_values = ReturnValues::all_new;
  EXPECT_EQ(update(request), R"({"l":{"L":[{"S":"1"},{"S":"2"}]},"pk":{"S":"a"},"sk":{"N":"1"}})");
  store::QueryRequest query_request;
  query_request.options.table = "items";
  query_request.key_conditions = {{.attribute = "pk",
                                   .comparison = "EQ",
                                   .values = {{item::encode(item::Value::string("a"))}},
                                   .value = {},
                                   .exists = {}},
                                  {.attribute = "sk",
                                   .comparison = "GE",
                                   .values = {{item::encode(item::Value::integer(1))}},
                                   .value = {},
                                   .exists = {}}};
  query_request.options.attributes_to_get = {{"sk"}};
  EXPECT_EQ(query(query_request), "{\"sk\":{\"N\":\"1\"}}\n");
}

TABELLA_CONTRACT(StoreContract);

}  // namespace
}  // namespace tabella::contract

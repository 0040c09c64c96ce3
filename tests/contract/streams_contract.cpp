#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "contract/contract.h"

namespace tabella::contract {
namespace {

using store::ErrorCode;
using store::IteratorType;
using store::StreamEvent;
using store::StreamView;

class StreamsOfTables : public StoreContract {
 protected:
  void remove(const std::string& table, std::string_view key) {
    EXPECT_EQ(outcome(run(store().delete_item({.table = table, .key = item_of(key), .options = {}}))), "ok");
  }

  std::optional<store::TableDescription> set_stream(const std::string& table, bool enabled,
                                                    std::optional<StreamView> view = std::nullopt) {
    const auto changed = run(store().update_table(
        {.table = table, .stream = store::UpdateTableRequest::Stream{.enabled = enabled, .view = view}}));
    EXPECT_TRUE(changed) << changed.error().message;
    return changed ? std::optional(*changed) : std::nullopt;
  }

  // "INSERT old -> new", as far as the view shows it.
  static std::string show(const store::StreamRecord& record) {
    const char* names[] = {"INSERT", "MODIFY", "REMOVE"};
    const auto image = [](const std::optional<item::Item>& item) { return item ? json_of(*item) : "-"; };
    return fmt::format("{} {} {} -> {}", names[static_cast<int>(record.event)], json_of(record.keys),
                       image(record.old_image), image(record.new_image));
  }

  // A put, a change and a delete, as the view shows them.
  std::string life_of_an_item(StreamView view) {
    const auto name = fmt::format("life-{}", static_cast<int>(view));
    const auto arn = create_with_stream(name, view);
    put(name, R"({"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"1"}})");
    put(name, R"({"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"2"}})");
    remove(name, R"({"pk":{"S":"a"},"sk":{"S":"b"}})");
    std::string lines;
    for (const auto& record : records(arn)) lines += show(record) + "\n";
    return lines;
  }
};

TEST_P(StreamsOfTables, ShowWhatTheirViewSays) {
  const std::string key = R"({"pk":{"S":"a"},"sk":{"S":"b"}})";
  const std::string one = R"({"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"1"}})";
  const std::string two = R"({"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"2"}})";
  const auto lines = [&](std::string_view o1, std::string_view n1, std::string_view o2, std::string_view n2,
                         std::string_view o3, std::string_view n3) {
    return fmt::format("INSERT {} {} -> {}\nMODIFY {} {} -> {}\nREMOVE {} {} -> {}\n", key, o1, n1, key, o2,
                       n2, key, o3, n3);
  };
  EXPECT_EQ(life_of_an_item(StreamView::keys_only), lines("-", "-", "-", "-", "-", "-"));
  EXPECT_EQ(life_of_an_item(StreamView::new_image), lines("-", one, "-", two, "-", "-"));
  EXPECT_EQ(life_of_an_item(StreamView::old_image), lines("-", "-", one, "-", two, "-"));
  EXPECT_EQ(life_of_an_item(StreamView::new_and_old_images), lines("-", one, one, two, two, "-"));
}

TEST_P(StreamsOfTables, HoldNothingForWhatChangedNothing) {
  const auto arn = create_with_stream("items", StreamView::new_and_old_images);
  const char* key = R"({"pk":{"S":"a"},"sk":{"S":"b"}})";
  put("items", R"({"m":{"M":{"x":{"N":"1"},"y":{"N":"2"}}},"pk":{"S":"a"},"sk":{"S":"b"}})");
  put("items", R"({"m":{"M":{"x":{"N":"1"},"y":{"N":"2.0"}}},"pk":{"S":"a"},"sk":{"S":"b"}})");
  update({.table = "items", .key = item_of(key), .update = "REMOVE nothing"});
  remove("items", R"({"pk":{"S":"a"},"sk":{"S":"none"}})");
  store::WriteOptions failing;
  failing.condition = "attribute_exists(nothing)";
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"b"}})", failing);
  EXPECT_EQ(records(arn).size(), 1u);
}

TEST_P(StreamsOfTables, AreReadFromWhereAnIteratorStands) {
  const auto arn = create_with_stream("items", StreamView::new_image);
  for (int i = 0; i < 5; ++i) put("items", fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"S":"{}"}}}})", i));
  const auto all = records(arn);
  ASSERT_EQ(all.size(), 5u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].sequence, all[i].sequence);
  const auto shard = run(store().describe_stream({.arn = arn}))->shards[0].id;
  const auto read = [&](IteratorType type, std::optional<std::string> sequence) -> std::string {
    const auto iterator =
        run(store().get_shard_iterator({.arn = arn, .shard = shard, .type = type, .sequence = sequence}));
    if (!iterator) return iterator.error().message;
    std::string keys;
    const auto page = run(store().get_records({.iterator = *iterator}));
    for (const auto& record : page->records) keys += record.keys.find("sk")->content();
    return keys;
  };
  EXPECT_EQ(read(IteratorType::trim_horizon, {}), "01234");
  EXPECT_EQ(read(IteratorType::at_sequence_number, all[2].sequence), "234");
  EXPECT_EQ(read(IteratorType::after_sequence_number, all[2].sequence), "34");
  EXPECT_EQ(read(IteratorType::latest, {}), "");

  const auto first = run(store().get_records(
      {.iterator = *run(store().get_shard_iterator({.arn = arn, .shard = shard})), .limit = 2}));
  EXPECT_EQ(first->records.size(), 2u);
  EXPECT_EQ(run(store().get_records({.iterator = *first->next}))->records.size(), 3u);
}

TEST_P(StreamsOfTables, KeepTheirRecordsOverARestart) {
  const auto arn = create_with_stream("items", StreamView::new_image);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"1"}})");
  restart();
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"2"}})");
  const auto all = records(arn);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_LT(all[0].sequence, all[1].sequence);
}

TEST_P(StreamsOfTables, GrowMoreShardsThatNameTheirParents) {
  const auto arn = create_with_stream("items", StreamView::keys_only);
  constexpr int kItems = 2500;
  for (int i = 0; i < kItems; i += 25) {
    store::BatchWriteItemRequest request;
    auto& writes = request.tables.emplace_back("items", std::vector<store::BatchWrite>()).second;
    for (int j = i; j < i + 25; ++j)
      writes.push_back({.item = item_of(fmt::format(R"({{"pk":{{"S":"{}"}},"sk":{{"S":"x"}}}})", j))});
    ASSERT_TRUE(run(store().batch_write_item(std::move(request))));
  }
  const auto stream = run(store().describe_stream({.arn = arn}));
  ASSERT_GT(stream->shards.size(), 1u);
  std::map<std::string, const store::ShardDescription*> by_id;
  for (const auto& shard : stream->shards) by_id[shard.id] = &shard;
  size_t children = 0;
  for (const auto& shard : stream->shards) {
    if (!shard.parent) continue;
    ++children;
    ASSERT_TRUE(by_id.contains(*shard.parent));
    ASSERT_TRUE(by_id[*shard.parent]->last) << "a parent is closed";
    EXPECT_GT(shard.first, *by_id[*shard.parent]->last);
  }
  EXPECT_EQ(children, stream->shards.size() - 1);
  EXPECT_EQ(records(arn).size(), static_cast<size_t>(kItems));

  const auto page = run(store().describe_stream({.arn = arn, .limit = 1}));
  EXPECT_EQ(page->last_shard, stream->shards[0].id);
  EXPECT_EQ(run(store().describe_stream({.arn = arn, .start = page->last_shard}))->shards.size(),
            stream->shards.size() - 1);
}

TEST_P(StreamsOfTables, EndAndBeginAnew) {
  const auto old = create_with_stream("items", StreamView::new_image);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"1"}})");
  EXPECT_SAYS(
      outcome(run(store().update_table(
          {.table = "items", .stream = store::UpdateTableRequest::Stream{true, StreamView::keys_only}}))),
      "Table already has an enabled stream: TableName: items");
  const auto disabled = set_stream("items", false);
  EXPECT_FALSE(disabled->definition.stream);
  EXPECT_EQ(disabled->stream_arn, old);
  EXPECT_SAYS(outcome(run(store().update_table(
                  {.table = "items", .stream = store::UpdateTableRequest::Stream{false, std::nullopt}}))),
              "Table has no stream to disable: TableName: items");
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"unseen"}})");
  const auto enabled = set_stream("items", true, StreamView::keys_only);
  EXPECT_NE(enabled->stream_arn, old);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"2"}})");

  EXPECT_FALSE(run(store().describe_stream({.arn = old}))->enabled);
  EXPECT_EQ(records(old).size(), 1u);
  EXPECT_EQ(records(*enabled->stream_arn).size(), 1u);
  const auto listed = run(store().list_streams({.table = "items"}));
  ASSERT_EQ(listed->streams.size(), 2u);
  EXPECT_NE(listed->streams[0].label, listed->streams[1].label);
}

TEST_P(StreamsOfTables, OutliveTheirTableByADay) {
  const auto arn = create_with_stream("items", StreamView::new_image);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"1"}})");
  ASSERT_TRUE(run(store().delete_table("items")));
  ASSERT_TRUE(eventually([&] { return run(store().describe_stream({.arn = arn}))->enabled == false; }));
  EXPECT_EQ(records(arn).size(), 1u);
  const auto shard = run(store().describe_stream({.arn = arn}))->shards[0];
  ASSERT_TRUE(shard.last);
  const auto page = run(
      store().get_records({.iterator = *run(store().get_shard_iterator({.arn = arn, .shard = shard.id}))}));
  EXPECT_FALSE(page->next) << "a closed shard has an end";
  if (!advance(std::chrono::hours{25})) return;
  EXPECT_TRUE(eventually([&] { return !run(store().describe_stream({.arn = arn})); }));
}

TEST_P(StreamsOfTables, AreToldApartHoweverFastATableComesBack) {
  std::set<std::string> arns;
  for (int i = 0; i < 20; ++i) {
    const auto arn = create_with_stream("items", StreamView::keys_only);
    put("items", R"({"pk":{"S":"a"},"sk":{"S":"1"}})");
    EXPECT_TRUE(arns.insert(arn).second) << arn;
    ASSERT_TRUE(run(store().delete_table("items")));
    if (i == 10) restart();
  }
  for (const auto& arn : arns) EXPECT_EQ(records(arn).size(), 1u);
}

TEST_P(StreamsOfTables, CompareWideItemsInTheirTime) {
  const auto arn = create_with_stream("items", StreamView::keys_only);
  std::string forward;
  std::string backward;
  constexpr int kAttributes = 20'000;  // looked for one by one this takes seconds
  for (int i = 0; i < kAttributes; ++i) {
    forward += fmt::format(R"(,"a{}":{{"N":"1"}})", i);
    backward += fmt::format(R"(,"a{}":{{"N":"1"}})", kAttributes - 1 - i);
  }
  const auto item = [](std::string_view attributes) {
    return fmt::format(R"({{"pk":{{"S":"a"}},"sk":{{"S":"1"}}{}}})", attributes);
  };
  EXPECT_EQ(put("items", item(forward)), "ok");
  EXPECT_EQ(put("items", item(backward)), "ok");
  EXPECT_EQ(records(arn).size(), 1u);
}

TEST_P(StreamsOfTables, TrimWhatIsOlderThanADay) {
  const auto arn = create_with_stream("items", StreamView::new_image);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"old"}})");
  const auto old = records(arn).at(0).sequence;
  const auto shard = run(store().describe_stream({.arn = arn}))->shards[0].id;
  const auto iterator = *run(store().get_shard_iterator({.arn = arn, .shard = shard}));
  if (!advance(std::chrono::hours{23})) GTEST_SKIP() << "its time cannot be moved";
  const auto expired = run(store().get_records({.iterator = iterator}));
  EXPECT_EQ(expired.error().code, ErrorCode::expired_iterator);
  put("items", R"({"pk":{"S":"a"},"sk":{"S":"new"}})");  // opens the next shard
  EXPECT_EQ(records(arn).size(), 2u);
  EXPECT_EQ(run(store().describe_stream({.arn = arn}))->shards.size(), 2u);
  advance(std::chrono::hours{2});
  const auto left = records(arn);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].keys.find("sk")->content(), "new");
  const auto trimmed = run(store().get_shard_iterator(
      {.arn = arn, .shard = shard, .type = IteratorType::after_sequence_number, .sequence = old}));
  EXPECT_EQ(trimmed.error().code, ErrorCode::trimmed_data_access);
  advance(std::chrono::hours{24});
  EXPECT_TRUE(eventually([&] { return run(store().describe_stream({.arn = arn}))->shards.size() == 1; }));
}

TEST_P(StreamsOfTables, RefuseWhatDoesNotNameThem) {
  const auto arn = create_with_stream("items", StreamView::new_image);
  EXPECT_FALSE(run(store().describe_stream({.arn = "arn:aws:nothing"})));
  EXPECT_EQ(run(store().describe_stream({.arn = arn + "9"})).error().code, ErrorCode::resource_not_found);
  EXPECT_EQ(run(store().get_shard_iterator({.arn = arn, .shard = "shardId-00000000000000000000-00000000"}))
                .error()
                .code,
            ErrorCode::resource_not_found);
  EXPECT_EQ(run(store().get_records({.iterator = arn + "|1|nonsense"})).error().code, ErrorCode::validation);
}

TABELLA_CONTRACT(StreamsOfTables);

}  // namespace
}  // namespace tabella::contract

// `tabella verify` finds nothing in a store that is well, and whatever is done to one.
#include "engine/verify.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/keys.h"
#include "item/attribute_json.h"
#include "support/folder.h"
#include "support/indexed_table.h"
#include "support/run.h"

namespace tabella::engine {
namespace {

item::Item item_from_json(std::string_view json) {
  JsonDocument document;
  return *item::read_item(*document.parse(json));
}

class Verify : public testing::Test {
 protected:
  Verify() {
    Engine engine({.folder = folder_.path(), .durability = Durability::relaxed}, clock_);
    run(engine.create_table(test::indexed_table()));
    run(engine.update_time_to_live({.table = "items", .enabled = true, .attribute = "ttl"}));
    while (run(engine.describe_time_to_live("items")).status != store::TimeToLiveStatus::enabled) {
    }
    store::TransactWriteItemsRequest transaction{.token = "token"};
    for (const char* json :
         {R"({"pk":{"S":"a"},"g":{"S":"x"},"ttl":{"N":"1900000000"},"n":{"N":"1"}})",
          R"({"pk":{"S":"b"},"g":{"S":"x"}})", R"({"pk":{"S":"c"},"l":{"L":[{"SS":["p"]}]}})"})
      transaction.writes.push_back({.table = "items", .item = item_from_json(json)});
    run(engine.transact_write_items(transaction));
    for (int i = 2; i < 5; ++i) {
      auto item = item_from_json(R"({"pk":{"S":"a"},"g":{"S":"x"},"ttl":{"N":"1900000000"},"n":{"N":")" +
                                 std::to_string(i) + "\"}}");
      run(engine.put_item({.table = "items", .item = std::move(item), .options = {}}));
    }
    engine.close();
  }

  template <class T>
  static T run(store::Async<T> call) {
    return std::move(*test::run(std::move(call)));
  }

  // The keys of a keyspace as they are in the store, with their values.
  static std::vector<std::pair<std::string, std::string>> entries(const Database& database, char keyspace) {
    std::vector<std::pair<std::string, std::string>> all;
    const std::string from(1, keyspace);
    for (auto cursor = database.range(from, keys::end_of(from), Database::Direction::forward, false);
         cursor.valid(); cursor.next())
      all.emplace_back(cursor.key(), cursor.value());
    return all;
  }

  using Entries = std::vector<std::pair<std::string, std::string>>;

  // Does something to the store, and gives what is found wrong with it then.
  std::string after(char keyspace, const std::function<void(const Entries&, Batch&)>& damage) {
    {
      Database database({.folder = folder_.path(), .durability = Durability::relaxed});
      Batch batch;
      damage(entries(database, keyspace), batch);
      database.write(batch);
      database.close();
    }
    return problems();
  }

  std::string problems() {
    std::string all;
    for (const auto& problem : engine::verify(folder_.path(), {}).first_problems) all += problem + "\n";
    return all;
  }

  test::Folder folder_;
  SystemClock clock_;
};

testing::AssertionResult says(const std::string& problems, std::string_view words) {
  if (problems.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "found: " << problems;
}

TEST_F(Verify, FindsNothingInAStoreThatIsWell) {
  const auto report = engine::verify(folder_.path(), {});
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(report.tables, 1u);
  EXPECT_EQ(report.items, 3u);
  EXPECT_EQ(report.index_entries, 2u);
  EXPECT_EQ(report.expiry_entries, 1u);
  EXPECT_EQ(report.records, 6u);
  EXPECT_EQ(report.tokens, 1u);
}

TEST_F(Verify, FindsWhatIsMissingInAnIndex) {
  EXPECT_TRUE(says(after('x', [](const Entries& all, Batch& batch) { batch.remove(all[0].first); }),
                   "is missing in index by_g"));
}

TEST_F(Verify, FindsWhatAnIndexHasTooMuch) {
  EXPECT_TRUE(
      says(after('x', [](const Entries& all, Batch& batch) { batch.put(all[0].first + "x", all[0].second); }),
           "has an entry that its item does not have"));
}

TEST_F(Verify, FindsAnIndexThatIsBehind) {
  EXPECT_TRUE(
      says(after('x',
                 [](const Entries& all, Batch& batch) {
                   batch.put(all[0].first,
                             item_from_json(R"({"pk":{"S":"b"},"g":{"S":"x"},"old":{"S":"y"}})").bytes());
                   batch.put(all[1].first,
                             item_from_json(R"({"pk":{"S":"b"},"g":{"S":"x"},"old":{"S":"y"}})").bytes());
                 }),
           "as it was before"));
}

TEST_F(Verify, FindsALostItem) {
  const auto found = after('i', [](const Entries& all, Batch& batch) {
    for (const auto& [key, value] : all)
      if (item::ItemView(value).find("ttl")) batch.remove(key);
  });
  EXPECT_TRUE(says(found, "has an entry that its item does not have"));
  EXPECT_TRUE(says(found, "an expiry entry without an item"));
  EXPECT_TRUE(says(found, "an item that its stream says is there is not"));
  EXPECT_TRUE(says(found, "counts 3 items"));
}

TEST_F(Verify, FindsAnItemThatCannotBeRead) {
  EXPECT_TRUE(says(after('i',
                         [](const Entries& all, Batch& batch) {
                           batch.put(all[1].first, all[1].second.substr(0, all[1].second.size() - 1));
                         }),
                   "an item that cannot be read"));
}

TEST_F(Verify, FindsAnItemUnderAnotherKey) {
  EXPECT_TRUE(
      says(after('i', [](const Entries& all, Batch& batch) { batch.put(all[0].first, all[1].second); }),
           "stands under another key"));
}

TEST_F(Verify, FindsAChangeWithoutARecord) {
  EXPECT_TRUE(
      says(after('i',
                 [](const Entries& all, Batch& batch) {
                   for (const auto& [key, value] : all)
                     if (item::ItemView(value).find("l"))
                       batch.put(key, item_from_json(R"({"pk":{"S":"c"},"l":{"L":[{"SS":["q"]}]}})").bytes());
                 }),
           "is not as the last record of its stream says"));
}

TEST_F(Verify, FindsALostRecord) {
  EXPECT_TRUE(
      says(after('s', [](const Entries& all, Batch& batch) { batch.remove(all[all.size() - 2].first); }),
           "does not follow the one before it"));
}

TEST_F(Verify, FindsRecordsCutAnywhere) {
  Entries all;
  after('s', [&](const Entries& entries, Batch&) { all = entries; });
  for (size_t length = 0; length < all.back().second.size(); ++length)
    EXPECT_TRUE(says(
        after('s', [&](const Entries&,
                       Batch& batch) { batch.put(all.back().first, all.back().second.substr(0, length)); }),
        "cannot be read"))
        << length;
}

TEST_F(Verify, FindsARecordThatCannotBeRead) {
  EXPECT_TRUE(says(after('s', [](const Entries& all,
                                 Batch& batch) { batch.put(all[0].first, all[0].second.substr(0, 20)); }),
                   "cannot be read"));
}

TEST_F(Verify, FindsALostExpiryEntry) {
  EXPECT_TRUE(says(after('e', [](const Entries& all, Batch& batch) { batch.remove(all[0].first); }),
                   "has no expiry entry"));
}

TEST_F(Verify, FindsAnExpiryEntryForAnotherTime) {
  EXPECT_TRUE(says(after('e',
                         [](const Entries& all, Batch& batch) {
                           auto key = all[0].first;
                           key[12] = static_cast<char>(key[12] + 1);
                           batch.put(key, {});
                         }),
                   "an expiry entry for another time"));
}

TEST_F(Verify, FindsATokenThatWouldStay) {
  EXPECT_TRUE(says(after('a', [](const Entries& all, Batch& batch) { batch.remove(all[0].first); }),
                   "would never be forgotten"));
}

TEST_F(Verify, FindsWrongCounters) {
  EXPECT_TRUE(
      says(after('n', [](const Entries& all, Batch& batch) { batch.put(all[0].first, std::string("\7\7")); }),
           "counts 7 items"));
}

TEST_F(Verify, FindsWhatDoesNotBelong) {
  EXPECT_TRUE(says(after('i', [](const Entries&, Batch& batch) { batch.put("zzz", "x"); }),
                   "no version of this program writes"));
}

TEST_F(Verify, FindsADamagedFile) {
  after('i', [](const Entries&, Batch&) {});  // what was in the log is in a file now
  bool damaged = false;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    if (file.path().extension() != ".sst") continue;
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(30);
    bytes.write("\xff\xff\xff", 3);
    damaged = true;
  }
  ASSERT_TRUE(damaged);
  EXPECT_TRUE(says(problems(), "is damaged"));
}

TEST_F(Verify, SaysIfThereIsNoStoreOrSomebodyHasIt) {
  EXPECT_THROW(engine::verify(folder_.path() / "nothing", {}), std::runtime_error);
}

}  // namespace
}  // namespace tabella::engine

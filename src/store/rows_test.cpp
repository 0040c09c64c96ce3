#include "store/rows.h"

#include <gtest/gtest.h>

namespace tabella::store {
namespace {

std::string name_of(const ExpressionAttributes& attributes, std::string_view reference) {
  for (const auto& [known, name] : attributes.names_or_none())
    if (known == reference) return name;
  return "";
}

TEST(Row, IsTheItemThatATreeOfTheSameValuesIs) {
  auto tree = item::Value::map();
  tree.set_member("text", item::Value::string("a"));
  tree.set_member("number", item::Value::integer(-70));
  tree.set_member("flag", item::Value::boolean(true));
  tree.set_member("bytes", item::Value::binary(std::string("\0\1", 2)));
  tree.set_member("set", item::Value::set(item::Type::SS, {"y", "x"}));
  tree.set_member("list", item::Value::list({item::Value::integer(1)}));
  const Item row = Row()
                       .set("text", "a")
                       .set("number", -70)
                       .set("flag", true)
                       .set("bytes", Binary(std::string_view("\0\1", 2)))
                       .set("set", std::vector<std::string>{"y", "x"})
                       .set("list", item::Value::list({item::Value::integer(1)}));
  EXPECT_EQ(row.bytes(), item::encode_item(tree).bytes());
  EXPECT_EQ(row.size(), item::encode_item(tree).size());
}

TEST(Row, ReadsBackWhatWasSet) {
  const Item row = Row().set("text", "a").set("number", 5).set("flag", true).set("bytes", Binary("b"));
  EXPECT_EQ(text_of(row, "text"), "a");
  EXPECT_EQ(number_of(row, "number"), 5);
  EXPECT_TRUE(flag_of(row, "flag"));
  EXPECT_EQ(binary_of(row, "bytes"), "b");
  EXPECT_EQ(text_of(row, "number"), "");
  EXPECT_EQ(number_of(row, "nothing"), 0);
}

TEST(UpdateBuilder, NamesEveryAttributeByReference) {
  const UpdateItemRequest request = Update("t", Row().set("id", "1"))
                                        .set("owner", "me")
                                        .set("due", 5)
                                        .remove("end")
                                        .add("attempt", 1)
                                        .when(equals("owner", "you") && exists("due"));
  EXPECT_EQ(request.table, "t");
  EXPECT_EQ(request.update, "SET #n0 = :v0, #n1 = :v1 REMOVE #n2 ADD #n3 :v2");
  EXPECT_EQ(request.options.condition, "#n0 = :v3 AND attribute_exists(#n1)");
  const auto& attributes = request.options.attributes;
  EXPECT_EQ(name_of(attributes, "#n0"), "owner");
  EXPECT_EQ(name_of(attributes, "#n3"), "attempt");
  EXPECT_EQ(attributes.names->size(), 4u);
  EXPECT_EQ(text_of(*attributes.values, ":v3"), "you");
  EXPECT_EQ(number_of(*attributes.values, ":v2"), 1);
}

TEST(PutBuilder, HasNoAttributesWhereItHasNoCondition) {
  const PutItemRequest request = Put("t", Row().set("id", "1"));
  EXPECT_FALSE(request.options.condition);
  EXPECT_FALSE(request.options.attributes.names);
  EXPECT_FALSE(request.options.attributes.values);
}

TEST(Condition, KeepsAlternativesTogether) {
  const PutItemRequest request =
      Put("t", Row().set("id", "1")).when(absent("a") || less("a", 3)).when(differs("b", "x"));
  EXPECT_EQ(request.options.condition, "(attribute_not_exists(#n0) OR #n0 < :v0) AND #n1 <> :v1");
}

TEST(Condition, TakesNamesAsTheyAre) {
  const PutItemRequest request = Put("t", Row().set("id", "1")).when(equals("a.b#:c", "#:x"));
  EXPECT_EQ(request.options.condition, "#n0 = :v0");
  EXPECT_EQ(name_of(request.options.attributes, "#n0"), "a.b#:c");
  EXPECT_EQ(text_of(*request.options.attributes.values, ":v0"), "#:x");
}

TEST(QueryBuilder, BoundsTheSortKey) {
  const QueryRequest request = Query("t")
                                   .index("by_name")
                                   .partition("kind", "k")
                                   .where(between("name", "a", "b"))
                                   .only({"name", "size"})
                                   .filter(at_least("size", 3))
                                   .limit(10)
                                   .descending()
                                   .consistent();
  EXPECT_EQ(request.key_condition, "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2");
  EXPECT_EQ(request.options.projection, "#n1, #n2");
  EXPECT_EQ(request.options.filter, "#n2 >= :v3");
  EXPECT_EQ(request.options.index, "by_name");
  EXPECT_EQ(request.options.limit, 10);
  EXPECT_FALSE(request.forward);
  EXPECT_TRUE(request.options.consistent);
}

TEST(UpdateBuilder, IsAnActionOfATransaction) {
  const TransactWrite update = Update("t", Row().set("id", "1")).add("n", 1).when(exists("id"));
  EXPECT_EQ(update.kind, TransactWrite::Kind::update);
  EXPECT_EQ(update.update, "ADD #n0 :v0");
  EXPECT_EQ(update.condition, "attribute_exists(#n1)");
  const TransactWrite check = Check("t", Row().set("id", "1")).when(absent("id"));
  EXPECT_EQ(check.kind, TransactWrite::Kind::check);
}

}  // namespace
}  // namespace tabella::store

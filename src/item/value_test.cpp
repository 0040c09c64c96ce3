#include "item/value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "item/attribute_json.h"
#include "item/number.h"

namespace tabella::item {
namespace {

// An item read from JSON, or the message it was refused with.
std::string round_trip(std::string_view json) {
  JsonDocument document;
  const auto parsed = document.parse(json);
  if (!parsed) return "not JSON";
  const auto item = read_item(*parsed);
  if (!item) return item.error().message;
  std::string out;
  append_item_json(out, *item);
  return out;
}

Item item_of(std::string_view json) {
  JsonDocument document;
  return *read_item(*document.parse(json));
}

TEST(AttributeJson, KeepsEveryType) {
  for (
      const char* json : {
          R"({"s":{"S":"text"},"n":{"N":"1.5"},"b":{"B":"AQID"},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true}})",
          R"({"ss":{"SS":["b","a"]},"ns":{"NS":["3","1"]},"bs":{"BS":["AQ==","Ag=="]}})",
          R"({"l":{"L":[{"S":"x"},{"L":[]},{"M":{}}]},"m":{"M":{"k":{"M":{"d":{"N":"0"}}}}}})",
          R"({"e":{"S":""},"eb":{"B":""},"u":{"S":"ü\u0000\n\"\\😀"}})",
          "{}",
      })
    EXPECT_EQ(item_of(round_trip(json)).bytes(), item_of(json).bytes()) << json;
  EXPECT_EQ(round_trip(R"({"n":{"N":"1e2"}})"), R"({"n":{"N":"100"}})");
}

TEST(AttributeJson, RefusesBrokenRules) {
  EXPECT_EQ(round_trip(R"({"a":{}})"),
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
  EXPECT_EQ(
      round_trip(R"({"a":{"S":"x","N":"1"}})"),
      "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
      "datatypes");
  EXPECT_EQ(round_trip(R"({"a":{"SS":[]}})"),
            "One or more parameter values were invalid: An string set  may not be empty");
  EXPECT_EQ(round_trip(R"({"a":{"SS":["x","x"]}})"),
            "One or more parameter values were invalid: Input collection [x, x] contains duplicates.");
  EXPECT_EQ(round_trip(R"({"a":{"NS":["1","1.0"]}})"), "Input collection contains duplicates");
  EXPECT_EQ(
      round_trip(R"({"a":{"NULL":false}})"),
      "One or more parameter values were invalid: Null attribute value types must have the value of true");
  EXPECT_EQ(round_trip(R"({"":{"S":"x"}})"),
            "One or more parameter values were invalid: Empty attribute name");
}

TEST(AttributeJson, ReturnsSetsInOrder) {
  EXPECT_EQ(round_trip(R"({"s":{"SS":["b","a","ab","B",""]}})"), R"({"s":{"SS":["","B","a","ab","b"]}})");
  EXPECT_EQ(round_trip(R"({"n":{"NS":["10","9","-1","1.5","0","-10"]}})"),
            R"({"n":{"NS":["-10","-1","0","1.5","9","10"]}})");
  EXPECT_EQ(round_trip(R"({"b":{"BS":["/w==","AAE=","AA=="]}})"), R"({"b":{"BS":["AA==","AAE=","/w=="]}})");
  EXPECT_EQ(round_trip(R"({"l":{"L":[{"M":{"s":{"SS":["y","x"]}}}]}})"),
            R"({"l":{"L":[{"M":{"s":{"SS":["x","y"]}}}]}})");
}

TEST(AttributeJson, RefusesNamesThatComeTwice) {
  EXPECT_EQ(round_trip(R"({"p":{"S":"a"},"p":{"S":"b"}})"), "Duplicate attribute name: p");
  EXPECT_EQ(round_trip(R"({"m":{"M":{"k":{"S":"a"},"k":{"S":"b"}}}})"), "Duplicate attribute name: k");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format(R"("a{}":{{"N":"1"}},)", i);
  EXPECT_EQ(round_trip(many + R"("a50":{"N":"2"}})"), "Duplicate attribute name: a50");
}

TEST(AttributeJson, TakesWordsForBooleans) {
  EXPECT_EQ(round_trip(R"({"a":{"BOOL":"yes"},"b":{"BOOL":"FALSE"}})"),
            R"({"a":{"BOOL":true},"b":{"BOOL":false}})");
}

TEST(AttributeJson, SaysWhatTheWrongJsonTypeWas) {
  EXPECT_EQ(round_trip(R"({"a":{"N":3}})"), "NUMBER_VALUE cannot be converted to String");
  EXPECT_EQ(round_trip(R"({"a":{"S":true}})"), "TRUE_VALUE cannot be converted to String");
  EXPECT_EQ(round_trip(R"({"a":"x"})"), "Unexpected value type in payload");
  EXPECT_EQ(round_trip(R"({"a":{"B":"A"}})"),
            "Base64 encoded length is expected a multiple of 4 bytes but found: 1");
}

TEST(AttributeJson, NestsThirtyTwoLevelsAndNoMore) {
  const auto nested = [](int levels) {
    std::string json = R"({"S":"x"})";
    for (int i = 0; i < levels; ++i) json = R"({"L":[)" + json + "]}";
    return R"({"a":)" + json + "}";
  };
  EXPECT_EQ(item_of(round_trip(nested(31))).bytes(), item_of(nested(31)).bytes());
  EXPECT_EQ(round_trip(nested(32)), kTooDeep);
}

TEST(Json, RefusesWhatIsNotJson) {
  JsonDocument document;
  EXPECT_FALSE(document.parse(""));
  EXPECT_FALSE(document.parse("{"));
  EXPECT_FALSE(document.parse("{}}"));
  EXPECT_FALSE(document.parse("{\"a\":\"\xff\"}"));
  EXPECT_FALSE(document.parse(std::string(100'000, '[')));
  EXPECT_TRUE(document.parse("{}"));
}

TEST(Item, CountsItsSizeAsDynamoDBDoes) {
  EXPECT_EQ(item_of(R"({"pk":{"S":"a"}})").size(), 3u);
  EXPECT_EQ(item_of(R"({"a":{"BOOL":true},"b":{"NULL":true}})").size(), 4u);
  EXPECT_EQ(item_of(R"({"l":{"L":[{"S":"ab"},{"S":"c"}]}})").size(), 1u + 3 + 1 + 2 + 1 + 1);
  EXPECT_EQ(item_of(R"({"m":{"M":{"k":{"S":"v"}}}})").size(), 1u + 3 + 1 + 1 + 1);
  EXPECT_EQ(item_of(R"({"ü":{"S":"ü"}})").size(), 4u);
}

TEST(Value, EqualsByMeaning) {
  const auto value = [](std::string_view json) {
    return item_of(std::string(R"({"v":)") + std::string(json) + "}");
  };
  const auto same = [&](std::string_view a, std::string_view b) {
    const auto x = value(a);
    const auto y = value(b);
    return equal(*x.find("v"), *y.find("v"));
  };
  EXPECT_TRUE(same(R"({"SS":["a","b"]})", R"({"SS":["b","a"]})"));
  EXPECT_TRUE(same(R"({"N":"1.0"})", R"({"N":"1"})"));
  EXPECT_TRUE(same(R"({"M":{"a":{"S":"1"},"b":{"S":"2"}}})", R"({"M":{"b":{"S":"2"},"a":{"S":"1"}}})"));
  EXPECT_TRUE(same(R"({"L":[{"NS":["1","2"]}]})", R"({"L":[{"NS":["2","1"]}]})"));
  EXPECT_FALSE(same(R"({"S":"1"})", R"({"N":"1"})"));
  EXPECT_FALSE(same(R"({"L":[{"S":"a"}]})", R"({"L":[{"S":"a"},{"S":"b"}]})"));
}

TEST(Value, KeepsSetsInOrder) {
  const auto encoded = encode(Value::set(Type::SS, {"c", "a", "b"}));
  EXPECT_EQ(encoded, encode(Value::set(Type::SS, {"a", "b", "c"})));

  std::string older;  // as stores of before hold it
  ContainerEncoder set(older, Type::SS);
  for (const char* content : {"c", "a", "b"}) set.add_content(content);
  set.finish();
  std::string json;
  append_value_json(json, ValueView(older));
  EXPECT_EQ(json, R"({"SS":["a","b","c"]})");
  EXPECT_NE(older, encoded);
  EXPECT_TRUE(equal(ValueView(older), ValueView(encoded)));
}

TEST(Value, SurvivesDecodingAndEncoding) {
  const auto item =
      item_of(R"({"a":{"M":{"x":{"L":[{"N":"1"},{"BOOL":false}]}}},"b":{"BS":["AQ=="]},"c":{"NULL":true}})");
  EXPECT_EQ(encode_item(decode_item(item)).bytes(), item.bytes());
}

}  // namespace
}  // namespace tabella::item

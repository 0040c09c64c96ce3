// The parts of an inbox that need no store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inbox/preferences.h"
#include "inbox/schema.h"

namespace tabella::inbox {
namespace {

std::string problem(std::string_view schema) {
  const auto read = Schema::read(schema);
  return read ? "" : read.error().message;
}

std::string mismatch(std::string_view schema, std::string_view value) {
  JsonDocument document;
  return Schema::read(schema).value()->mismatch(document.parse(value).value());
}

TEST(Schema, SaysWhatItDoesNotUnderstand) {
  EXPECT_EQ(problem(R"({"type": "object", "properties": {"body": {"type": ["string", "null"]}}})"), "");
  EXPECT_EQ(problem(R"({"tpye": "object"})"), "tpye is not known here; leave it out");
  EXPECT_NE(problem(R"({"properties": {"a": {"type": "text"}}})"), "");
  EXPECT_NE(problem(R"({"required": "a"})"), "");
  EXPECT_NE(problem(R"({"pattern": "("})"), "");
  EXPECT_NE(problem(R"({"pattern": "(a)\\1"})"), "") << "RE2 has no references to groups";
  EXPECT_NE(problem(R"({"$ref": "#/$defs/b", "$defs": {"a": true}})"), "");
  EXPECT_NE(problem(R"({"$ref": "https://example.com/schema"})"), "");
  EXPECT_EQ(problem(R"({"$ref": "#/$defs/a", "$defs": {"a": true}})"), "");
}

TEST(Schema, SaysWhereAValueIsOther) {
  constexpr const char* kOrder =
      R"({"type": "object", "required": ["title", "order"], "additionalProperties": false,
    "properties": {"title": {"maxLength": 5}, "order": {"type": "integer", "minimum": 1},
                   "lines": {"items": {"$ref": "#/$defs/line"}}},
    "$defs": {"line": {"properties": {"price": {"type": "number", "multipleOf": 0.01}}, "required": ["price"]}}})";
  EXPECT_EQ(mismatch(kOrder, R"({"title": "Größe", "order": 1, "lines": [{"price": 0.07}]})"), "");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "x"})"), "order: is missing");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "longer", "order": 1})"), "title: is longer than 5 characters");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "x", "order": 0})"), "order: is less than 1");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "x", "order": 1.5})"), "order: expected integer");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "x", "order": 1, "more": 1})"), "more: is not allowed");
  EXPECT_EQ(mismatch(kOrder, R"({"title": "x", "order": 1, "lines": [{"price": 1}, {"price": "1"}]})"),
            "lines[1].price: expected number");
}

TEST(Schema, CombinesSchemas) {
  EXPECT_EQ(mismatch(R"({"oneOf": [{"type": "string"}, {"const": {"a": [1, 2]}}]})", R"({"a": [1, 2.0]})"),
            "");
  EXPECT_NE(mismatch(R"({"oneOf": [{"type": "string"}, {"minLength": 1}]})", R"("x")"), "");
  EXPECT_EQ(mismatch(R"({"anyOf": [{"type": "string"}, {"minLength": 1}]})", R"("x")"), "");
  EXPECT_NE(mismatch(R"({"not": {"enum": [null, 1]}})", "null"), "");
  EXPECT_EQ(mismatch(R"({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": false})",
                     R"({"a": 1, "b": 1})"),
            "");
  EXPECT_NE(mismatch(R"({"if": {"required": ["a"]}, "then": {"required": ["b"]}})", R"({"a": 1})"), "");
  EXPECT_NE(
      mismatch(R"({"prefixItems": [{"type": "string"}], "items": {"type": "number"}})", R"(["a", "b"])"), "");
  EXPECT_EQ(mismatch(R"({"prefixItems": [{"type": "string"}], "items": {"type": "number"}})", R"(["a", 1])"),
            "");
  EXPECT_NE(mismatch(R"({"uniqueItems": true})", R"([{"a": 1, "b": 2}, {"b": 2, "a": 1}])"), "");
  EXPECT_NE(mismatch(R"({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false})",
                     R"({"y": 1})"),
            "");
  EXPECT_EQ(mismatch(R"({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false})",
                     R"({"x-a": "1"})"),
            "");
  EXPECT_EQ(mismatch(R"({"required": ["a"]})", R"({"a": null})"), "") << "null is there";
}

TEST(Schema, CountsWhatAListContains) {
  constexpr const char* kTwo = R"({"contains": {"type": "string"}, "minContains": 2, "maxContains": 3})";
  EXPECT_NE(mismatch(kTwo, R"(["a", 1])"), "");
  EXPECT_EQ(mismatch(kTwo, R"(["a", 1, "b"])"), "");
  EXPECT_NE(mismatch(kTwo, R"(["a", "b", "c", "d"])"), "");
  EXPECT_NE(mismatch(R"({"contains": {"type": "string"}})", "[1]"), "");
  EXPECT_EQ(mismatch(R"({"contains": {"type": "string"}, "minContains": 0})", "[1]"), "");
}

TEST(Schema, EndsWhateverItIsAsked) {
  EXPECT_NE(mismatch(R"({"$ref": "#"})", "1"), "");
  std::string definitions = R"("$defs": {)";
  for (int i = 0; i < 25; ++i)
    definitions += "\"a" + std::to_string(i) + R"(": {"allOf": [{"$ref": "#/$defs/a)" +
                   std::to_string(i + 1) + R"("}, {"$ref": "#/$defs/a)" + std::to_string(i + 1) + "\"}]},";
  definitions += R"("a25": true})";
  for (const auto* asked : {R"("$ref": "#/$defs/a0")", R"("not": {"$ref": "#/$defs/a0"})"}) {
    const auto schema = "{" + std::string(asked) + ", " + definitions + "}";
    EXPECT_EQ(problem(schema), "");
    EXPECT_EQ(mismatch(schema, "1"), "it takes too long to check");
  }
  // Short values, many times.
  const auto repeated = [](std::string_view what, int times) {
    std::string list;
    for (int i = 0; i < times; ++i) list.append(list.empty() ? "" : ",").append(what);
    return list;
  };
  const auto values = "[" + repeated("2", 10'000) + "]";
  for (const auto& items : {R"({"enum": [)" + repeated("1", 10'000) + ", 2]}",
                            R"({"type": [)" + repeated(R"("null")", 3'000) + R"(, "integer"]})"})
    EXPECT_EQ(mismatch(R"({"items": )" + items + "}", values), "it takes too long to check");
  std::string patterns;
  for (int i = 0; i < 40; ++i) patterns += fmt::format(R"({}"a{}": true)", i == 0 ? "" : ", ", i);
  EXPECT_NE(problem(R"({"patternProperties": {)" + patterns + "}}"), "");
  EXPECT_NE(problem(R"({"pattern": "(.{9}){99}"})"), "") << "a pattern of many states";
  EXPECT_EQ(mismatch(R"({"pattern": "(a|b)*[ab]{300}c"})", "\"" + std::string(90'000, 'a') + "\""),
            "it takes too long to check");
}

TEST(BellHistory, IsThatOfEachPlaceInTheOrder) {
  BellHistory history;
  EXPECT_TRUE(history.allows("news", 5, true));
  EXPECT_FALSE(history.allows("news", 5, false));
  history.note("news", 10, false);
  history.note("news", 20, true);
  history.note("*", 15, false);
  EXPECT_TRUE(history.allows("news", 10, true));
  EXPECT_FALSE(history.allows("news", 11, true));
  EXPECT_FALSE(history.allows("news", 20, true));
  EXPECT_TRUE(history.allows("news", 21, false));
  EXPECT_TRUE(history.allows("orders", 15, true));
  EXPECT_FALSE(history.allows("orders", 16, true));
  EXPECT_FALSE(history.allows("", 16, true));
}

TEST(BellHistory, ForgetsStepsThatMatterToNothing) {
  const auto never = [](const std::string&, int64_t, int64_t) { return false; };
  const auto always = [](const std::string&, int64_t, int64_t) { return true; };
  BellHistory history;
  for (int i = 0; i < 1000; ++i) history.note("news", i, i % 2 == 0);
  history.prune(always);
  EXPECT_EQ(history.steps.at("news").size(), 200u) << "whatever somebody does, there is an end to them";
  history.prune(never);
  EXPECT_EQ(history.steps.at("news").size(), 1u);
  history.note("news", 2000, std::nullopt);
  history.prune(never);
  EXPECT_TRUE(history.steps.empty());
}

}  // namespace
}  // namespace tabella::inbox

// The grammars and what they mean, on items written as JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expression/apply.h"
#include "expression/bind.h"
#include "expression/evaluate.h"
#include "expression/legacy.h"
#include "expression/parser.h"
#include "item/attribute_json.h"

namespace tabella::expression {
namespace {

item::Item item_of(std::string_view json) {
  JsonDocument document;
  return *item::read_item(*document.parse(json));
}

std::string json_of(item::ItemView item) {
  std::string out;
  item::append_item_json(out, item);
  return out;
}

const Names kNames = {{"#n", "name"}, {"#d", "a.b"}, {"#s", "size"}};
const char* const kValues =
    R"({":s":{"S":"b"},":n":{"N":"2"},":m":{"N":"5"},":l":{"L":[{"S":"z"}]},":ss":{"SS":["x"]},":b":{"B":"AQ=="},":t":{"S":"N"}})";
const char* const kItem =
    R"({"pk":{"S":"k"},"name":{"S":"abc"},"n":{"N":"3"},"a.b":{"S":"dot"},"l":{"L":[{"S":"x"},{"N":"1"},{"M":{"y":{"N":"7"}}}]},
        "m":{"M":{"x":{"S":"deep"},"n":{"N":"1"}}},"ss":{"SS":["x","y"]},"e":{"S":"😀ü"},"bool":{"BOOL":true}})";

// "true", "false" or what is wrong.
std::string holds(std::string_view text, const char* json = kItem) {
  const auto tree = parse_condition(text);
  if (!tree) return tree.error().message;
  const auto values = item_of(kValues);
  Bindings bindings(kNames, values);
  const auto bound = bind(*tree, bindings);
  if (!bound) return bound.error().message;
  const auto item = item_of(json);
  const auto view = item.view();
  return evaluate(*bound, &view) ? "true" : "false";
}

std::string updated(std::string_view text, const char* json = kItem) {
  const auto tree = parse_update(text);
  if (!tree) return tree.error().message;
  const auto values = item_of(kValues);
  Bindings bindings(kNames, values);
  const auto bound = bind(*tree, bindings);
  if (!bound) return bound.error().message;
  const auto item = item_of(json);
  const auto result = apply(*bound, item, true);
  return result ? json_of(*result) : result.error().message;
}

std::string projected(std::string_view text, const char* json = kItem) {
  const auto tree = parse_projection(text);
  if (!tree) return tree.error().message;
  Bindings bindings(kNames, item::ItemView());
  const auto bound = bind(*tree, bindings);
  if (!bound) return bound.error().message;
  return json_of(project(item_of(json), *bound));
}

TEST(ConditionExpression, ComparesByTypeAndValue) {
  EXPECT_EQ(holds("n > :n"), "true");
  EXPECT_EQ(holds("n BETWEEN :n AND :m"), "true");
  EXPECT_EQ(holds("n between :n and :m AND #n < :s"), "true");
  EXPECT_EQ(holds("n = :s"), "false");
  EXPECT_EQ(holds("n <> :s"), "true");
  EXPECT_EQ(holds("n IN (:s, :n)"), "false");
  EXPECT_EQ(holds("n > n2"), "false");
}

TEST(ConditionExpression, TreatsMissingAttributesAsAwsDoes) {
  EXPECT_EQ(holds("absent <> :s"), "true");
  EXPECT_EQ(holds("absent = :s"), "false");
  EXPECT_EQ(holds("absent < :s OR absent >= :s"), "false");
  EXPECT_EQ(holds("attribute_not_exists(absent)"), "true");
  EXPECT_EQ(holds("attribute_exists(m.x) AND attribute_not_exists(m.y)"), "true");
  EXPECT_EQ(holds("size(n) <> :n"), "false");
}

TEST(ConditionExpression, KnowsItsFunctions) {
  EXPECT_EQ(holds("begins_with(#n, :s)"), "false");
  EXPECT_EQ(holds("contains(#n, :s)"), "true");
  EXPECT_EQ(holds("contains(ss, :s)"), "false");
  EXPECT_EQ(holds("attribute_type(n, :t)"), "true");
  EXPECT_EQ(holds("size(ss) = :n"), "true");
  EXPECT_EQ(holds("size(e) > :n"), "true") << "UTF-16 units: two and one";
  EXPECT_EQ(holds("size(l) > :n AND size(m) = :n"), "true");
}

TEST(ConditionExpression, BindsNotBeforeAndBeforeOr) {
  EXPECT_EQ(holds("n = :n OR n > :n AND NOT n = :n"), "true");
  EXPECT_EQ(holds("NOT n = :n AND n = :n"), "false");
  EXPECT_EQ(holds("NOT (n = :n AND n = :n)"), "true");
  EXPECT_EQ(holds("NOT NOT n > :n"), "true");
}

TEST(ConditionExpression, SaysWhereTheSyntaxBreaks) {
  EXPECT_EQ(holds("INVALID SYNTAX HERE"), "Syntax error; token: \"SYNTAX\", near: \"INVALID SYNTAX HERE\"");
  EXPECT_EQ(holds("a-b = :n"), "Syntax error; token: \"-\", near: \"a-b\"");
  EXPECT_EQ(holds("attribute_exists("), "Syntax error; token: \"<EOF>\", near: \"(\"");
  EXPECT_EQ(holds("n"), "Syntax error; token: \"<EOF>\", near: \"n\"");
  EXPECT_EQ(holds("n = = :n"), "Syntax error; token: \"=\", near: \"= = :n\"");
  EXPECT_EQ(holds("n IN ()"), "Syntax error; token: \")\", near: \"()\"");
  EXPECT_EQ(holds("_a = :n"), "Syntax error; token: \"_\", near: \"_a\"");
  EXPECT_EQ(holds("ü > :n"), "Syntax error; token: \"ü\", near: \"ü >\"");
  EXPECT_EQ(holds(""), "The expression can not be empty;");
}

TEST(ConditionExpression, RefusesRedundantParentheses) {
  EXPECT_EQ(holds("((n = :n))"), "The expression has redundant parentheses;");
  EXPECT_EQ(holds("n = ((:n))"), "The expression has redundant parentheses;");
  EXPECT_EQ(holds("(n > :n) AND ((n) > :n AND (n > :n))"), "true");
  EXPECT_EQ(holds("(NOT (n = :n))"), "true");
  EXPECT_EQ(holds(std::string(2000, '(') + "n = :n" + std::string(2000, ')')),
            "The expression has redundant parentheses;");
}

TEST(ConditionExpression, RefusesReservedWordsUndefinedAndMisused) {
  EXPECT_EQ(holds("size = :n"), "Attribute name is a reserved keyword; reserved keyword: size");
  EXPECT_EQ(holds("#x = :n"),
            "An expression attribute name used in the document path is not defined; attribute name: #x");
  EXPECT_EQ(holds("n = :x"),
            "An expression attribute value used in expression is not defined; attribute value: :x");
  EXPECT_EQ(holds("foo(n)"), "Invalid function name; function: foo");
  EXPECT_EQ(holds("size(n)"),
            "The function is not allowed to be used this way in an expression; function: size");
  EXPECT_EQ(holds("attribute_exists(n) = :n"),
            "The function is not allowed to be used this way in an expression; function: attribute_exists");
  EXPECT_EQ(holds("contains(n, n)"),
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: "
            "contains, first operand: [n]");
  EXPECT_EQ(
      holds("begins_with(n, :n)"),
      "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N");
  EXPECT_EQ(holds("n BETWEEN :m AND :n"),
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower "
            "bound operand: "
            "AttributeValue: {N:5}, upper bound operand: AttributeValue: {N:2}");
  EXPECT_EQ(holds("attribute_exists(:n)"),
            "Operator or function requires a document path; operator or function: attribute_exists");
}

TEST(ConditionExpression, HasLimits) {
  EXPECT_EQ(holds(std::string(5000, 'a')),
            "Expression size has exceeded the maximum allowed size; expression size: 5000");
  std::string many = "n = :n";
  for (int i = 0; i < 150; ++i) many += " OR n = :n";
  EXPECT_EQ(holds(many), "The expression contains too many operators; operator count: 301");
  std::string nots;
  for (int i = 0; i < 900; ++i) nots += "NOT ";
  EXPECT_EQ(holds(nots + "n"), "The expression contains too many operators; operator count: 301");
  std::string nested;
  for (int i = 0; i < 1500; ++i) nested += "f(";
  EXPECT_EQ(holds("n = " + nested), "Invalid function name; function: f");
}

TEST(UpdateExpression, SetsRemovesAddsAndDeletes) {
  EXPECT_EQ(updated("SET q = :n", R"({"a":{"S":"x"}})"), R"({"a":{"S":"x"},"q":{"N":"2"}})");
  EXPECT_EQ(updated("SET n = n + :n, k = n - :n", R"({"n":{"N":"3"}})"), R"({"n":{"N":"5"},"k":{"N":"1"}})");
  EXPECT_EQ(updated("REMOVE n SET k = n", R"({"n":{"N":"3"}})"), R"({"k":{"N":"3"}})");
  EXPECT_EQ(updated("ADD n :n, t :ss", R"({"n":{"N":"3"}})"), R"({"n":{"N":"5"},"t":{"SS":["x"]}})");
  EXPECT_EQ(updated("DELETE ss :ss", R"({"ss":{"SS":["x","y"]}})"), R"({"ss":{"SS":["y"]}})");
  EXPECT_EQ(updated("DELETE ss :ss", R"({"ss":{"SS":["x"]}})"), "{}");
  EXPECT_EQ(updated("SET l = list_append(if_not_exists(l, :l), :l)", "{}"),
            R"({"l":{"L":[{"S":"z"},{"S":"z"}]}})");
}

TEST(UpdateExpression, GivesTheSameWithAndWithoutNestedPaths) {
  // One nested path makes the whole update work on a tree; alone, its other actions work on flat attributes.
  for (const char* text :
       {"SET n = n + :n, q = :s", "ADD n :n, ss :ss", "DELETE ss :ss", "REMOVE n, l, bool",
        "SET ss = :l REMOVE m2 ADD n :m", "SET e = pk, pk2 = e", "DELETE absent :ss", "ADD pk :n"}) {
    const auto item = std::string(kItem);
    auto with_tree = std::string(text);
    with_tree.insert(with_tree.find("SET ") == 0 ? 4 : 0,
                     with_tree.starts_with("SET ") ? "m.x = m.x, " : "SET m.x = m.x ");
    const auto tree = updated(with_tree, item.c_str());
    const auto flat = updated(text, item.c_str());
    EXPECT_EQ(flat.starts_with('{') ? item_of(flat).count() : 0,
              tree.starts_with('{') ? item_of(tree).count() : 0)
        << text;
    if (!flat.starts_with('{')) {
      EXPECT_EQ(flat, tree) << text;
      continue;
    }
    const auto flat_item = item_of(flat);
    const auto tree_item = item_of(tree);
    for (item::Attributes a(flat_item); a.next();) {
      const auto other = tree_item.find(a.name());
      ASSERT_TRUE(other) << text << " " << a.name();
      EXPECT_TRUE(item::equal(a.value(), *other)) << text << " " << a.name();
    }
  }
}

TEST(UpdateExpression, MeansTheListAsItWas) {
  const char* list = R"({"a":{"L":[{"N":"2"},{"N":"3"},{"N":"4"},{"N":"5"}]}})";
  EXPECT_EQ(updated("REMOVE a[1] SET a[3] = :s", list), R"({"a":{"L":[{"N":"2"},{"N":"4"},{"S":"b"}]}})");
  EXPECT_EQ(updated("REMOVE a[0], a[2]", list), R"({"a":{"L":[{"N":"3"},{"N":"5"}]}})");
  EXPECT_EQ(updated("SET a[90] = :s, a[17] = :n", list),
            R"({"a":{"L":[{"N":"2"},{"N":"3"},{"N":"4"},{"N":"5"},{"N":"2"},{"S":"b"}]}})");
  EXPECT_EQ(updated("REMOVE l[0], l[1].x", R"({"l":{"L":[{"S":"a"},{"M":{"x":{"S":"b"}}}]}})"),
            R"({"l":{"L":[{"M":{}}]}})");
}

// Wide maps and lists are looked into through an index; it must not make a difference.
TEST(UpdateExpression, MeansTheSameInWideItems) {
  std::string json = R"({"pk":{"S":"k"},"m":{"M":{)";
  std::string list;
  std::string condition = "attribute_exists(pk)";
  std::string update = "REMOVE ";
  for (int i = 0; i < 100; ++i) {
    json.append(i > 0 ? "," : "").append(fmt::format(R"("f{0}":{{"N":"{0}"}})", i));
    list.append(i > 0 ? "," : "").append(fmt::format(R"({{"N":"{}"}})", i));
  }
  json.append("}},\"l\":{\"L\":[" + list + "]}");
  for (int i = 0; i < 100; ++i) json.append(fmt::format(R"(,"a{0}":{{"N":"{0}"}})", i));
  json.append("}");
  for (int i = 0; i < 20; ++i) {
    condition.append(fmt::format(" AND a{0} = m.f{0} AND a{0} = l[{0}] AND attribute_not_exists(b{0})", i));
    update.append(fmt::format("{0}a{1}, m.f{1}, l[{1}]", i > 0 ? ", " : "", i + 3));
  }
  EXPECT_EQ(holds(condition, json.c_str()), "true");
  EXPECT_EQ(holds(condition + " AND a7 = m.f8", json.c_str()), "false");
  const auto item = item_of(updated(update, json.c_str()));
  EXPECT_EQ(item.count(), 3u + 100 - 20);
  EXPECT_EQ(item.find("m")->count(), 80u);
  EXPECT_EQ(item.find("l")->count(), 80u);
  EXPECT_EQ(item.find("l")->element(3)->bytes(), item.find("a23")->bytes());
  EXPECT_FALSE(item.find("m")->member("f22"));
  EXPECT_TRUE(item.find("m")->member("f23"));
}

TEST(UpdateExpression, TakesAnEmptiedSetOutOfItsList) {
  EXPECT_EQ(updated("DELETE l[0] :ss SET l[5] = :s, l[1] = :n",
                    R"({"l":{"L":[{"SS":["x"]},{"N":"1"},{"N":"9"}]}})"),
            R"({"l":{"L":[{"N":"2"},{"N":"9"},{"S":"b"}]}})");
}

TEST(UpdateExpression, RefusesOverlappingPaths) {
  EXPECT_EQ(updated("SET a = :n, a = :s"),
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path "
            "one: [a], path "
            "two: [a]");
  EXPECT_EQ(updated("SET a.b[1] = :n REMOVE a.b"),
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path "
            "one: [a, b, "
            "[1]], path two: [a, b]");
  EXPECT_EQ(updated("SET a.b = :n, a[1] = :n"),
            "Two document paths conflict with each other; must remove or rewrite one of these paths; path "
            "one: [a, b], "
            "path two: [a, [1]]");
}

TEST(UpdateExpression, RefusesWhatCannotBe) {
  EXPECT_EQ(updated("SET q = absent"),
            "The provided expression refers to an attribute that does not exist in the item");
  EXPECT_EQ(updated("SET absent.x = :n"),
            "The document path provided in the update expression is invalid for update");
  EXPECT_EQ(updated("SET q = pk + :n"), "An operand in the update expression has an incorrect data type");
  EXPECT_EQ(updated("SET a = :n SET b = :n"),
            "The \"SET\" section can only be used once in an update expression;");
  EXPECT_EQ(updated("ADD a :s"),
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING");
  EXPECT_EQ(
      updated("SET a = list_append(:s, :l)"),
      "Incorrect operand type for operator or function; operator or function: list_append, operand type: S");
  EXPECT_EQ(updated("SET a = list_append(list_append(:l, :l), :l)"),
            "The function is not allowed to be used this way in an expression; function: list_append");
  EXPECT_EQ(updated("SET a = if_not_exists(:n, :n)"),
            "Operator or function requires a document path; operator or function: if_not_exists");
  EXPECT_EQ(updated("SET a[:n] = :n"), "Syntax error; token: \":n\", near: \"[:n]\"");
  EXPECT_EQ(updated("SET"), "Syntax error; token: \"<EOF>\", near: \"SET\"");
}

TEST(UpdateExpression, TakesBracketsAndRefusesKeywords) {
  EXPECT_EQ(updated("SET n = (n + :n)", R"({"n":{"N":"3"}})"), R"({"n":{"N":"5"}})");
  EXPECT_EQ(updated("SET n = ((n)+(:n))", R"({"n":{"N":"3"}})"), R"({"n":{"N":"5"}})");
  EXPECT_EQ(updated("SET q = (m.x).y"), "Syntax error; token: \".\", near: \").y\"");
  EXPECT_EQ(updated("SET a = set"), "Syntax error; token: \"set\", near: \"= set\"");
}

TEST(UpdateExpression, DoesNotCopyWithoutEnd) {
  std::string text = "SET a0 = big";
  for (int i = 1; i < 300; ++i) text += ", a" + std::to_string(i) + " = big";
  const auto json = R"({"big":{"S":")" + std::string(100'000, 'x') + R"("}})";
  EXPECT_EQ(updated(text, json.c_str()), "Item size to update has exceeded the maximum allowed size");
}

TEST(UpdateExpression, DoesNotLetNestingGrowWithoutEnd) {
  std::string json = R"({"a":{"M":{"b":{"S":"x"}}}})";
  std::string last;
  for (int i = 0; i < 40; ++i) {
    last = updated("SET a.b = a", json.c_str());
    if (!last.starts_with('{')) break;
    json = last;
  }
  EXPECT_EQ(last, item::kTooDeep);
}

TEST(ProjectionExpression, PicksPartsInTheirPlaces) {
  EXPECT_EQ(projected("pk, absent"), R"({"pk":{"S":"k"}})");
  EXPECT_EQ(projected("m.x, l[2].y, l[0]"),
            R"({"l":{"L":[{"S":"x"},{"M":{"y":{"N":"7"}}}]},"m":{"M":{"x":{"S":"deep"}}}})");
  EXPECT_EQ(projected("#d"), R"({"a.b":{"S":"dot"}})");
  EXPECT_EQ(projected("m[0], l.x, pk.a"), "{}");
}

TEST(ProjectionExpression, RefusesBadPaths) {
  EXPECT_EQ(projected("!!! INVALID !!!"), "Syntax error; token: \"!\", near: \"!!\"");
  EXPECT_EQ(projected("a, "), "Syntax error; token: \"<EOF>\", near: \",\"");
  EXPECT_EQ(projected("pk, status"), "Attribute name is a reserved keyword; reserved keyword: status");
  EXPECT_EQ(projected("a.b, a"),
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path "
            "one: [a, b], "
            "path two: [a]");
  EXPECT_EQ(projected("a[99999999999999]"),
            "List index is not within the allowable range; index: [99999999999999]");
  std::string deep = "a";
  for (int i = 0; i < 32; ++i) deep += ".a";
  EXPECT_EQ(projected(deep), "The document path has too many nesting levels; nesting levels: 33");
}

TEST(KeyCondition, BecomesPredicates) {
  const auto predicates = [](std::string_view text) -> std::string {
    const auto tree = parse_condition(text);
    if (!tree) return tree.error().message;
    const auto values = item_of(kValues);
    Bindings bindings(kNames, values);
    const auto bound = bind(*tree, bindings);
    if (!bound) return bound.error().message;
    const auto result = to_key_predicates(*bound);
    if (!result) return result.error().message;
    std::string out;
    for (const auto& p : *result) out += p.attribute + std::to_string(static_cast<int>(p.op)) + " ";
    return out;
  };
  EXPECT_EQ(predicates("pk = :s AND sk > :n"), "pk0 sk3 ");
  EXPECT_EQ(predicates(":n < sk AND pk = :s"), "sk3 pk0 ") << "operands may be the other way round";
  EXPECT_EQ(predicates("(pk = :s) AND (begins_with(sk, :s))"), "pk0 sk6 ");
  EXPECT_EQ(predicates("pk = :s OR sk = :s"), "Invalid operator used in KeyConditionExpression: OR");
  EXPECT_EQ(predicates("pk <> :s"), "Invalid operator used in KeyConditionExpression: <>");
  EXPECT_EQ(predicates("pk = :s AND pk = :s"),
            "KeyConditionExpressions must only contain one condition per key");
  EXPECT_EQ(predicates("pk.a = :s"), "KeyConditionExpressions cannot have conditions on nested attributes");
  EXPECT_EQ(predicates("size(pk) = :n"), "KeyConditionExpressions cannot contain nested operations");
}

TEST(LegacyConditions, FindOneOfManyValues) {
  LegacyCondition condition{
      .attribute = "n", .comparison = "IN", .values = std::vector<std::string>(), .value = {}, .exists = {}};
  for (int i = 2000; i >= 0; i -= 2) condition.values->push_back(item::encode(item::Value::integer(i)));
  const std::vector<LegacyCondition> filter = {condition};
  const auto tree = from_filter(filter, Combine::all);
  ASSERT_TRUE(tree);
  const auto found = [&](const item::Value& value) {
    auto map = item::Value::map();
    map.set_member("n", value);
    const auto item = item::encode_item(map);
    const auto view = item.view();
    return evaluate(*tree, &view);
  };
  for (int i = -2; i <= 2003; ++i)
    EXPECT_EQ(found(item::Value::integer(i)), i >= 0 && i <= 2000 && i % 2 == 0) << i;
  EXPECT_FALSE(found(item::Value::string("2")));
  EXPECT_FALSE(evaluate(*tree, nullptr));
}

TEST(LegacyConditions, GetNoAttributeTwice) {
  EXPECT_TRUE(from_attributes_to_get({"a", "b", "A"}));
  const auto twice = from_attributes_to_get({"a", "b", "a"});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message,
            "One or more parameter values were invalid: Duplicate value in attribute name: a");
}

TEST(Bindings, ComplainsOfWhatNobodyUsed) {
  const auto values = item_of(kValues);
  Bindings bindings(kNames, values);
  ASSERT_TRUE(bind(*parse_condition("#n = :n AND #d = :s"), bindings));
  EXPECT_EQ(bindings.check_all_used().error().message,
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#s}");
}

}  // namespace
}  // namespace tabella::expression

#include "item/number.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tabella::item {
namespace {

std::string canonical(std::string_view text) {
  const auto number = parse_number(text);
  return number ? number_text(*number) : number.error().message;
}

std::string sum(std::string_view a, std::string_view b) {
  const auto result = add_numbers(*parse_number(a), *parse_number(b));
  return result ? number_text(*result) : result.error().message;
}

TEST(Number, IsAnIntWhereItIsWholeAndFits) {
  for (const auto& [text, value] :
       std::map<std::string, std::optional<int64_t>>{{"0", 0},
                                                     {"7", 7},
                                                     {"10", 10},
                                                     {"99", 99},
                                                     {"100", 100},
                                                     {"12300", 12300},
                                                     {"1e17", 100'000'000'000'000'000},
                                                     {"999999999999999999", 999'999'999'999'999'999},
                                                     {"9223372036854775807", INT64_MAX},
                                                     {"9223372036854775808", std::nullopt},
                                                     {"1e30", std::nullopt},
                                                     {"1.5", std::nullopt},
                                                     {"12.03", std::nullopt},
                                                     {"0.5", std::nullopt},
                                                     {"-12", -12}})
    EXPECT_EQ(number_to_int(parse_number(text).value()), value) << text;
}

TEST(Number, IsStoredWithoutExponentZerosOrSign) {
  EXPECT_EQ(canonical("007"), "7");
  EXPECT_EQ(canonical("+3"), "3");
  EXPECT_EQ(canonical("-0.0"), "0");
  EXPECT_EQ(canonical("1.10"), "1.1");
  EXPECT_EQ(canonical("100.000"), "100");
  EXPECT_EQ(canonical(".5"), "0.5");
  EXPECT_EQ(canonical("5."), "5");
  EXPECT_EQ(canonical("1.23e4"), "12300");
  EXPECT_EQ(canonical("123E-2"), "1.23");
  EXPECT_EQ(canonical("1e-20"), "0.00000000000000000001");
  EXPECT_EQ(canonical("-17.4E3"), "-17400");
  EXPECT_EQ(canonical("1e125"), "1" + std::string(125, '0'));
}

TEST(Number, RefusesWhatIsNotOne) {
  for (const char* text :
       {"NaN", "Infinity", "dog", " 1", "1 ", "++5", "1e", ".", "1_000", "0x1", "1.2.3", "--1", "e5"})
    EXPECT_EQ(canonical(text), std::string("The parameter cannot be converted to a numeric value: ") + text);
  EXPECT_EQ(canonical(""), "The parameter cannot be converted to a numeric value");
}

TEST(Number, KnowsItsRange) {
  EXPECT_EQ(canonical("0.1e126"), "1" + std::string(125, '0'));
  EXPECT_NE(canonical("1e126").find("overflow"), std::string::npos);
  EXPECT_NE(canonical("-11e125").find("overflow"), std::string::npos);
  EXPECT_NE(canonical("1e-131").find("underflow"), std::string::npos);
  EXPECT_NE(canonical("1.0e100000000").find("overflow"), std::string::npos);
  EXPECT_NE(canonical("1.0e100000000000").find("cannot be converted to a numeric value"), std::string::npos);
  EXPECT_NE(canonical("1e2147483647").find("overflow"), std::string::npos);
  EXPECT_NE(canonical("1e-2147483647").find("underflow"), std::string::npos);
  for (const char* text : {"1e2147483648", "1e-2147483648", "1.5e-2147483647", "0e2147483648"})
    EXPECT_EQ(canonical(text), std::string("The parameter cannot be converted to a numeric value: ") + text);
  EXPECT_EQ(canonical("1e-130").size(), 132u);
  EXPECT_NE(canonical(std::string(39, '1')).find("38 significant"), std::string::npos);
  EXPECT_EQ(canonical(std::string(38, '9')), std::string(38, '9'));
  EXPECT_EQ(canonical("1" + std::string(60, '0')), "1" + std::string(60, '0'));
}

TEST(Number, HasZerosOfItsRangeOnly) {
  for (const char* text : {"0e5", "0.0e3", "0e-5", "0e125", "-0e125", "0.0e126", "0e-130", "0.00"})
    EXPECT_EQ(canonical(text), "0") << text;
  for (const char* text : {"0e126", "-0e126", "00e126", "0.0e127", "0e2147483647"})
    EXPECT_NE(canonical(text).find("overflow"), std::string::npos) << text;
  for (const char* text : {"0e-131", "0.0e-130", "0e-2147483647"})
    EXPECT_NE(canonical(text).find("underflow"), std::string::npos) << text;
}

TEST(Number, OrdersByItsBytes) {
  std::vector<std::string> ordered = {
      "-1e125", "-100", "-99.5", "-1.5", "-1.01", "-1", "-0.5", "-1e-130", "0",  "1e-130", "0.01", "0.1",
      "0.11",   "1",    "1.001", "1.01", "1.5",   "9",  "10",   "11",      "99", "100.5",  "1e50", "9.9e125"};
  std::vector<std::string> encoded;
  for (const auto& text : ordered) encoded.push_back(*parse_number(text));
  EXPECT_TRUE(std::ranges::is_sorted(encoded));
}

TEST(Number, OrdersRandomIntegersAsIntegers) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const auto a = static_cast<int64_t>(random()) >> (random() % 60);
    const auto b = static_cast<int64_t>(random()) >> (random() % 60);
    EXPECT_EQ(a < b, encode_int(a) < encode_int(b)) << a << " " << b;
    EXPECT_EQ(number_to_int(encode_int(a)), a);
  }
}

TEST(Number, IsSelfDelimiting) {
  for (const char* text : {"0", "1", "-1", "12345.678", "-99e100", "1e-130", "-1e-130"}) {
    const auto encoded = *parse_number(text);
    EXPECT_EQ(number_length(encoded + "\x01\x02\xff"), encoded.size()) << text;
  }
}

TEST(Number, AddsExactly) {
  EXPECT_EQ(sum("1", "2"), "3");
  EXPECT_EQ(sum("0.1", "0.2"), "0.3");
  EXPECT_EQ(sum("99", "1"), "100");
  EXPECT_EQ(sum("1", "-1"), "0");
  EXPECT_EQ(sum("-5", "3"), "-2");
  EXPECT_EQ(sum("100", "-0.01"), "99.99");
  EXPECT_EQ(sum("9e125", "9e124"), "99" + std::string(124, '0'));
  EXPECT_EQ(number_text(*subtract_numbers(encode_int(5), encode_int(7))), "-2");
  std::mt19937_64 random(11);
  for (int i = 0; i < 5000; ++i) {
    const auto a = static_cast<int64_t>(random()) >> (2 + random() % 60);
    const auto b = static_cast<int64_t>(random()) >> (2 + random() % 60);
    EXPECT_EQ(number_to_int(*add_numbers(encode_int(a), encode_int(b))), a + b);
    EXPECT_EQ(number_to_int(*subtract_numbers(encode_int(a), encode_int(b))), a - b);
  }
}

TEST(Number, RefusesSumsThatDoNotFit) {
  EXPECT_NE(sum("9e125", "9e125").find("overflow"), std::string::npos);
  EXPECT_NE(sum("1e50", "1").find("overflow"), std::string::npos);
  EXPECT_NE(sum("1e125", "1e-130").find("overflow"), std::string::npos);
}

TEST(Number, CountsItsBytesAsDynamoDBDoes) {
  const auto size = [](std::string_view text) { return number_size(*parse_number(text)); };
  EXPECT_EQ(size("0"), 1u);
  EXPECT_EQ(size("42"), 2u);
  EXPECT_EQ(size("-42"), 3u);
  EXPECT_EQ(size("1000"), 2u);
  EXPECT_EQ(size("1.5"), 3u);
  EXPECT_EQ(size(std::string(38, '9')), 20u);
}

}  // namespace
}  // namespace tabella::item

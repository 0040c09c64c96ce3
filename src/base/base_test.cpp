#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/crc32c.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/substring.h"
#include "base/text.h"

namespace tabella {
namespace {

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
  EXPECT_EQ(to_base64("hello"), "aGVsbG8=");
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const char* text : {"A", "AA", "AAA", "AA==A", "A===", "AB==", "A A=", "AAA\xff", "=AAA"})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Checksum, AgreesWithKnownValues) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32("healthy: dynamodb.us-east-1.amazonaws.com "), 3128867991u);
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(hmac_sha256("key", "The quick brown fox jumps over the lazy dog")),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

TEST(Compression, RoundTrips) {
  const std::string text(100'000, 'x');
  for (const auto format : {Compression::gzip, Compression::deflate})
    EXPECT_EQ(decompress(compress(text, format), format, text.size()).bytes, text);
}

TEST(Compression, StopsAtTheLimit) {
  const auto bomb = compress(std::string(50u << 20, '\0'), Compression::gzip);
  const auto result = decompress(bomb, Compression::gzip, 1u << 20);
  EXPECT_EQ(result.error, DecompressError::too_large);
  EXPECT_LE(result.bytes.size(), 1u << 20);
}

TEST(Compression, RefusesDamage) {
  auto packed = compress("some text that is long enough to be cut", Compression::gzip);
  EXPECT_EQ(decompress(packed.substr(0, packed.size() / 2), Compression::gzip, 1000).error,
            DecompressError::malformed);
  EXPECT_EQ(decompress("garbage", Compression::gzip, 1000).error, DecompressError::malformed);
  EXPECT_EQ(decompress("", Compression::gzip, 1000).error, DecompressError::malformed);
}

TEST(Ids, HaveTheirShapes) {
  const auto id = make_request_id();
  EXPECT_EQ(id.size(), 52u);
  EXPECT_EQ(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), std::string::npos);
  EXPECT_NE(make_request_id(), id);
  EXPECT_EQ(make_uuid().size(), 36u);
}

TEST(Substring, IsFoundWhereFindFindsIt) {
  std::mt19937 choose(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto make = [&](size_t most) {
      std::string text(choose() % most, 'a');
      for (auto& c : text) c = static_cast<char>('a' + (choose() % 8 == 0));
      return text;
    };
    const auto text = make(600);
    const auto part = choose() % 2 == 0 ? make(300) : text.substr(text.size() / 3, choose() % 300);
    EXPECT_EQ(has_substring(text, part), text.find(part) != std::string::npos) << text << " / " << part;
  }
}

TEST(KeyedHash, DiffersBetweenKeysAndIsTheSameForOne) {
  EXPECT_EQ(keyed_hash("a name"), keyed_hash(std::string("a name")));
  std::set<uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(keyed_hash(std::to_string(i)));
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c("56789", crc32c("1234")), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(Text, IsPrintableWhoeverWroteIt) {
  EXPECT_EQ(printable("Grüße\x1b[31m\r\n\x7f \xc2\x9b!\xff\xc2"), "Grüße [31m     !\uFFFD\uFFFD");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, InQuotesHasItsQuotesEscaped) {
  for (const auto* right : {R"("")", R"("a b")", R"("a\"b")", R"("a\\")"})
    EXPECT_TRUE(is_quoted_string(right)) << right;
  for (const auto* wrong : {"", "\"", "a", R"("a"b")", R"("a\")", R"("a\\"b")", R"(x"a")"})
    EXPECT_FALSE(is_quoted_string(wrong)) << wrong;
}

TEST(JsonTexts, AreTheValuesAsTheyWereWritten) {
  const std::string json =
      R"( { "a" : 1.10 , "b":"x\"}, ]\\" ,"c": [ 1, {"d" : "[ "} ],"e":{ },"f":null,"g":-0.0e+5})";
  std::vector<std::string> texts;
  JsonDocument document;
  JsonTexts each(json);
  for (JsonElements members(*document.parse(json)); members.next();) {
    ASSERT_TRUE(each.next());
    texts.emplace_back(each.text());
  }
  EXPECT_FALSE(each.next());
  EXPECT_EQ(texts, (std::vector<std::string>{"1.10", R"("x\"}, ]\\")", R"([ 1, {"d" : "[ "} ])", "{ }",
                                             "null", "-0.0e+5"}));
}

TEST(JsonTexts, OfEmptyAndBrokenContainersEnd) {
  for (const auto* text : {"", "[]", " [ ] ", "{}", "{", "[", "\"", "[\"", "{\"a\"", "{\"a\":", "[[", "1"}) {
    JsonTexts each(text);
    for (int i = 0; each.next(); ++i) ASSERT_LT(i, 3) << text;
  }
}

TEST(JsonTexts, AreMadeCompactOutsideOfStrings) {
  std::string out;
  append_compact_json(out, "{ \"a b\" :\n [ 1.0 ,\t\"x \\\" y\" ] }");
  EXPECT_EQ(out, R"({"a b":[1.0,"x \" y"]})");
}

}  // namespace
}  // namespace tabella

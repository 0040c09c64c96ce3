#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/gzip.h"
#include "base/ids.h"

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

}  // namespace
}  // namespace tabella

#include "protocol/signature.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "protocol/error_names.h"

namespace tabella::protocol {
namespace {

using Headers = std::vector<std::pair<std::string_view, std::string_view>>;

// AWS's published vectors all share these.
constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kTime = "20150830T123600Z";
constexpr SignatureScope kScope{.date = "20150830", .region = "us-east-1", .service = "service"};

std::string sign(std::string_view method, std::string_view target, Headers headers = {},
                 std::string_view body = "") {
  headers.emplace_back("Host", "example.amazonaws.com");
  headers.emplace_back("X-Amz-Date", kTime);
  std::vector<std::string> names;
  for (const auto& [name, value] : headers) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    names.push_back(std::move(lower));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::string signed_headers;
  for (const auto& name : names) signed_headers += (signed_headers.empty() ? "" : ";") + name;
  return signature({.method = method,
                    .target = target,
                    .headers = headers,
                    .signed_headers = signed_headers,
                    .body = body},
                   kTime, kScope, signing_key(kSecret, kScope));
}

// Named as AWS names its vectors.
struct Vector {
  std::string_view name;
  std::string signature;
  std::string_view expected;
};

TEST(Signature, IsThatOfAwssVectors) {
  constexpr std::string_view kVanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
  constexpr std::string_view kLetters = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const auto letters = std::string(kLetters);
  const std::vector<Vector> vectors = {
      {"get-vanilla", sign("GET", "/"), kVanilla},
      {"get-relative-normalized", sign("GET", "/example/.."), kVanilla},
      {"get-relative-relative-normalized", sign("GET", "/example1/example2/../.."), kVanilla},
      {"get-slash-dot-slash-normalized", sign("GET", "/./"), kVanilla},
      {"get-slash-normalized", sign("GET", "//"), kVanilla},
      {"get-slash-pointless-dot-normalized", sign("GET", "/./example"),
       "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
      {"get-slashes-normalized", sign("GET", "//example//"),
       "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
      {"get-space-normalized", sign("GET", "/example space/"),
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-unreserved", sign("GET", "/" + letters),
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8", sign("GET", "/\u1234"),
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-header-key-duplicate",
       sign("GET", "/", {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}),
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-order",
       sign("GET", "/",
            {{"My-Header1", "value4"},
             {"My-Header1", "value1"},
             {"My-Header1", "value3"},
             {"My-Header1", "value2"}}),
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
      {"get-header-value-trim",
       sign("GET", "/", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-vanilla-empty-query-key", sign("GET", "/?Param1=value1"),
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-vanilla-query-order-encoded", sign("GET", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1"),
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
      {"get-vanilla-query-order-key-case", sign("GET", "/?Param2=value2&Param1=value1"),
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-unreserved", sign("GET", "/?" + letters + "=" + letters),
       "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
      {"get-vanilla-utf8-query", sign("GET", "/?\u1234=bar"),
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-vanilla-with-session-token",
       sign("GET", "/",
            {{"X-Amz-Security-Token", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"}}),
       "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
      {"post-vanilla", sign("POST", "/"), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-vanilla-query", sign("POST", "/?Param1=value1"),
       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
      {"post-header-key-sort", sign("POST", "/", {{"My-Header1", "value1"}}),
       "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
      {"post-header-value-case", sign("POST", "/", {{"My-Header1", "VALUE1"}}),
       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
      {"post-x-www-form-urlencoded",
       sign("POST", "/",
            {{"Content-Type", "application/x-www-form-urlencoded"},
             {"Content-Length", "13"},
             {"X-Amz-Content-Sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}},
            "Param1=value1"),
       "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
  };
  for (const auto& vector : vectors) EXPECT_EQ(vector.signature, vector.expected) << vector.name;
}

TEST(Signature, HasAKeyOfItsDay) {
  const auto tomorrow =
      signing_key(kSecret, {.date = "20150831", .region = "us-east-1", .service = "service"});
  EXPECT_NE(signing_key(kSecret, kScope), tomorrow);
}

TEST(ErrorNames, AreReadAsTheyAreWritten) {
  for (int code = 0; code <= static_cast<int>(store::ErrorCode::internal); ++code) {
    const auto type = error_type(static_cast<store::ErrorCode>(code));
    ASSERT_FALSE(type.empty()) << code;
    EXPECT_EQ(error_code(type), static_cast<store::ErrorCode>(code)) << type;
  }
  EXPECT_EQ(error_code("ThrottlingException"), store::ErrorCode::throttled);
  EXPECT_EQ(error_code("com.example#Unheard"), std::nullopt);
}

}  // namespace
}  // namespace tabella::protocol

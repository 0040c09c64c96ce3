#include "webhook/signature.h"

#include <gtest/gtest.h>

namespace tabella::webhook {
namespace {

constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr Signed kCall{
    .id = "msg_p5jXN8AQM9LWM0D4loKWxJek", .timestamp = "1614265330", .body = "{\"test\": 2432232314}"};
constexpr const char* kSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
constexpr TimePoint kThen{std::chrono::seconds{1'614'265'330}};

TEST(WebhookSignature, IsThatOfTheStandardsExample) {
  EXPECT_EQ(sign(kSecret, kCall), kSignature);
  EXPECT_NE(sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", kCall), kSignature) << "a key as it is";
}

TEST(WebhookSignature, IsFoundAmongOthers) {
  EXPECT_TRUE(verify(kSecret, kCall, kSignature, kThen));
  EXPECT_TRUE(verify(kSecret, kCall, std::string("v1,AAAA v2,x ") + kSignature, kThen));
  for (const auto* wrong : {"", "v1", "v1,", "v1,AAAA", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="})
    EXPECT_FALSE(verify(kSecret, kCall, wrong, kThen)) << wrong;
  EXPECT_FALSE(verify("whsec_AAAA", kCall, kSignature, kThen));
  auto other = kCall;
  other.body = "{}";
  EXPECT_FALSE(verify(kSecret, other, kSignature, kThen));
}

TEST(WebhookSignature, IsWorthNothingOutOfItsTime) {
  EXPECT_TRUE(verify(kSecret, kCall, kSignature, kThen + std::chrono::minutes{5}));
  EXPECT_FALSE(verify(kSecret, kCall, kSignature, kThen + std::chrono::minutes{6}));
  EXPECT_FALSE(verify(kSecret, kCall, kSignature, kThen - std::chrono::minutes{6}));
  for (const auto* wrong : {"", "x", "1614265330x", "99999999999999999999"}) {
    const Signed call{.id = "a", .timestamp = wrong, .body = ""};
    EXPECT_FALSE(verify(kSecret, call, sign(kSecret, call), kThen)) << wrong;
  }
}

}  // namespace
}  // namespace tabella::webhook

#include "protocol/sigv4.h"

#include <ctime>

#include <gtest/gtest.h>

#include "base/checksum.h"

namespace tabella::protocol {
namespace {

// The clock of AWS's published example, and its keys.
class SignatureTest : public testing::Test {
 protected:
  static TimePoint time_of_example() {
    std::tm tm{};
    strptime("20150830T123600Z", "%Y%m%dT%H%M%SZ", &tm);
    return std::chrono::system_clock::from_time_t(timegm(&tm));
  }

  // The request of AWS's test "post-vanilla", signed for our service with the algorithm as published.
  net::HttpRequest signed_request(std::string_view secret) {
    const std::string canonical =
        "POST\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n" +
        to_hex(sha256("{}"));
    const std::string to_sign =
        "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/dynamodb/aws4_request\n" +
        to_hex(sha256(canonical));
    auto key = hmac_sha256("AWS4" + std::string(secret), "20150830");
    for (const char* part : {"us-east-1", "dynamodb", "aws4_request"}) key = hmac_sha256(key, part);
    authorization_ =
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=" +
        to_hex(hmac_sha256(key, to_sign));
    return {.method = "POST",
            .target = "/",
            .headers = {{"Host", "example.amazonaws.com"},
                        {"X-Amz-Date", "20150830T123600Z"},
                        {"Authorization", authorization_}},
            .body = "{}"};
  }

  std::string verdict(const net::HttpRequest& request) {
    const auto result = verifier_.verify(request);
    return result ? "ok" : std::string(result.error().type);
  }

  ManualClock clock_{time_of_example()};
  SignatureVerifier verifier_{
      {{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}}, clock_, "dynamodb"};
  std::string authorization_;
};

TEST_F(SignatureTest, AcceptsTheRightOne) {
  EXPECT_EQ(verdict(signed_request("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")), "ok");
}

TEST_F(SignatureTest, DerivesTheKeyAsAwsPublishesIt) {
  // The signing key of AWS's documentation for this secret, 20150830, us-east-1, iam.
  auto key = hmac_sha256("AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830");
  for (const char* part : {"us-east-1", "iam", "aws4_request"}) key = hmac_sha256(key, part);
  EXPECT_EQ(to_hex(key), "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
}

TEST_F(SignatureTest, RefusesOtherSecretsBodiesHeadersAndTimes) {
  const std::string secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  EXPECT_EQ(verdict(signed_request("another")), "InvalidSignatureException");
  auto body = signed_request(secret);
  body.body = "{ }";
  EXPECT_EQ(verdict(body), "InvalidSignatureException");
  auto host = signed_request(secret);
  host.headers[0].second = "evil.example.com";
  EXPECT_EQ(verdict(host), "InvalidSignatureException");
  auto none = signed_request(secret);
  none.headers.pop_back();
  EXPECT_EQ(verdict(none), "MissingAuthenticationTokenException");
  clock_.advance(std::chrono::minutes(16));
  EXPECT_EQ(verdict(signed_request(secret)), "InvalidSignatureException");
  clock_.advance(std::chrono::minutes(-32));
  EXPECT_EQ(verdict(signed_request(secret)), "InvalidSignatureException");
  auto future = signed_request(secret);
  future.headers[1].second = "30200101T000000Z";
  EXPECT_NE(verifier_.verify(future).error().message.find("not yet current"), std::string::npos);
}

// What botocore's SigV4QueryAuth made at the time of the example, for an hour.
constexpr std::string_view kPresigned =
    "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fdynamodb%2F"
    "aws4_request&X-Amz-Date=20150830T123600Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host%3Bx-amz-target&"
    "X-Amz-Signature=4804cc4740bcb6dc4ffb62a1119c90c8ece812e4bd2dbd67de122cd1f6642088";

net::HttpRequest presigned_request(std::string_view target = kPresigned) {
  return {.method = "POST",
          .target = target,
          .headers = {{"Host", "example.amazonaws.com"}, {"X-Amz-Target", "DynamoDB_20120810.ListTables"}},
          .body = "{}"};
}

TEST_F(SignatureTest, AcceptsPresignedRequestsUntilTheyExpire) {
  EXPECT_EQ(verdict(presigned_request()), "ok");
  clock_.advance(std::chrono::minutes(60));
  EXPECT_EQ(verdict(presigned_request()), "ok");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(verdict(presigned_request()), "InvalidSignatureException");
  EXPECT_NE(verifier_.verify(presigned_request()).error().message.find("Signature expired"),
            std::string::npos);
  clock_.advance(-std::chrono::minutes(76));
  EXPECT_EQ(verdict(presigned_request()), "InvalidSignatureException") << "it is from the future";
}

TEST_F(SignatureTest, RefusesPresignedRequestsThatWereChanged) {
  auto body = presigned_request();
  body.body = "{ }";
  EXPECT_EQ(verdict(body), "InvalidSignatureException");
  auto operation = presigned_request();
  operation.headers[1].second = "DynamoDB_20120810.DescribeLimits";
  EXPECT_EQ(verdict(operation), "InvalidSignatureException");
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string target(kPresigned);
    target.replace(target.find(from), from.size(), to);
    return verdict(presigned_request(target));
  };
  EXPECT_EQ(changed("Signature=4804", "Signature=4805"), "InvalidSignatureException");
  EXPECT_EQ(changed("Expires=3600", "Expires=7200"), "InvalidSignatureException");
  EXPECT_EQ(changed("Expires=3600", "Expires=604801"), "IncompleteSignatureException");
  EXPECT_EQ(changed("Expires=3600", "Expires=-1"), "IncompleteSignatureException");
  EXPECT_EQ(changed("Expires=3600", "Expires=1h"), "IncompleteSignatureException");
  EXPECT_EQ(changed("/?", "/?Action=ListTables&"), "InvalidSignatureException");
  EXPECT_EQ(changed("%3Bx-amz-target", ""), "InvalidSignatureException");
  EXPECT_EQ(changed("HMAC-SHA256", "HMAC-MD5"), "IncompleteSignatureException");
  EXPECT_EQ(changed("AKIDEXAMPLE", "AKIDSTRANGE"), "UnrecognizedClientException");
}

TEST_F(SignatureTest, DoesNotKnowStrangers) {
  auto request = signed_request("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
  std::string other = authorization_;
  other.replace(other.find("AKIDEXAMPLE"), 11, "AKIDSTRANGE");
  request.headers[2].second = other;
  EXPECT_EQ(verdict(request), "UnrecognizedClientException");
}

TEST_F(SignatureTest, SaysWhoSignedItAndForWhichServiceItMustBe) {
  const std::string secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  const auto request = signed_request(secret);
  EXPECT_EQ(verifier_.verify(request), "AKIDEXAMPLE");
  EXPECT_EQ(SignatureVerifier({{"AKIDEXAMPLE", secret}}, clock_, "").verify(request), "AKIDEXAMPLE");
  const auto other = SignatureVerifier({{"AKIDEXAMPLE", secret}}, clock_, "ses").verify(request);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "Credential should be scoped to correct service: 'ses'. ");
}

TEST_F(SignatureTest, IsClaimedByAHeaderOrAQuery) {
  EXPECT_TRUE(claims_signature(signed_request("any")));
  EXPECT_TRUE(claims_signature(presigned_request()));
  EXPECT_FALSE(
      claims_signature({.method = "GET", .target = "/?a=b", .headers = {{"Authorization", "Basic x"}}}));
}

}  // namespace
}  // namespace tabella::protocol

// What the wire adds to a Store: envelopes, constraints, signatures, encodings. The Store behind it answers
// nothing; operations are tested through Store.
#include <ctime>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/checksum.h"
#include "base/gzip.h"
#include "support/empty_store.h"
#include "wire/door.h"
#include "wire/encoding.h"

namespace tabella::wire {
namespace {

constexpr std::string_view kAuthorization =
    "AWS4-HMAC-SHA256 Credential=any/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, "
    "Signature=0";

class DoorTest : public testing::Test {
 protected:
  net::HttpRequest request(std::string_view operation, std::string_view body) {
    target_ = std::string("DynamoDB_20120810.") + std::string(operation);
    return {.method = "POST",
            .target = "/",
            .headers = {{"Host", "localhost:8000"},
                        {"Content-Type", "application/x-amz-json-1.0"},
                        {"X-Amz-Date", "20260101T000000Z"},
                        {"Authorization", kAuthorization},
                        {"X-Amz-Target", target_}},
            .body = body};
  }

  net::HttpResponse send(const net::HttpRequest& request, Door& door) {
    net::HttpResponse response;
    boost::asio::io_context context;
    boost::asio::co_spawn(context, door.handle(request, response), boost::asio::detached);
    context.run();
    return response;
  }
  net::HttpResponse send(const net::HttpRequest& request) { return send(request, door_); }
  std::string answer(std::string_view operation, std::string_view body) {
    return send(request(operation, body)).body;
  }

  test::EmptyStore store_;
  SystemClock clock_;
  Door door_{store_, clock_, {}};
  std::string target_;
};

TEST_F(DoorTest, IsHealthy) {
  const auto response = send({.method = "GET", .target = "/", .headers = {{"Host", "here:8000"}}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "healthy: here:8000 ");
  EXPECT_NE(response.headers.find("x-amz-crc32: "), std::string::npos);
  EXPECT_NE(response.headers.find("x-amzn-RequestId: "), std::string::npos);
}

TEST_F(DoorTest, NamesErrorsAsAwsDoes) {
  EXPECT_EQ(answer("PutItem", "not json"), R"({"__type":"com.amazon.coral.service#SerializationException"})");
  EXPECT_EQ(answer("PutItem", ""), R"({"__type":"com.amazon.coral.service#SerializationException"})");
  EXPECT_EQ(answer("PutItem", "[]"), R"({"__type":"com.amazon.coral.service#SerializationException"})");
  EXPECT_EQ(answer("Nonsense", "{}"), R"({"__type":"com.amazon.coral.service#UnknownOperationException"})");
  EXPECT_EQ(
      answer("PutItem", R"({"TableName":7})"),
      R"({"__type":"com.amazon.coral.service#SerializationException","Message":"NUMBER_VALUE cannot be converted to String"})");
  EXPECT_EQ(
      answer("GetItem", R"({"TableName":"abc","Key":{"a":{"S":"b"}}})"),
      R"({"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"})");
}

TEST_F(DoorTest, AnswersAnExceptionWithInternalServerError) {
  const auto response = send(request("DeleteItem", R"({"TableName":"abc","Key":{"a":{"S":"b"}}})"));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("a broken disk"), std::string::npos) << "what went wrong is for the log";
}

TEST_F(DoorTest, GathersBrokenConstraints) {
  EXPECT_EQ(
      answer("PutItem", "{}"),
      R"({"__type":"com.amazon.coral.validate#ValidationException","message":"1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"})");
  EXPECT_EQ(
      answer("UpdateItem", R"({"TableName":"abc","ReturnValues":"x","ReturnConsumedCapacity":"y"})"),
      R"({"__type":"com.amazon.coral.validate#ValidationException","message":"3 validation errors detected: Value null at 'key' failed to satisfy constraint: Member must not be null; Value 'y' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; Value 'x' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"})");
  EXPECT_EQ(
      answer("ListTables", R"({"Limit":101,"ExclusiveStartTableName":"a"})"),
      R"({"__type":"com.amazon.coral.validate#ValidationException","message":"2 validation errors detected: Value 'a' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have length greater than or equal to 3; Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100"})");
}

TEST_F(DoorTest, WantsASignatureOfSomeKind) {
  auto unsigned_request = request("ListTables", "{}");
  std::erase_if(unsigned_request.headers, [](const auto& h) { return h.first == "Authorization"; });
  EXPECT_EQ(
      send(unsigned_request).body,
      R"({"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"})");
}

TEST_F(DoorTest, AnswersPreflightRequests) {
  const auto response = send({.method = "OPTIONS",
                              .target = "/",
                              .headers = {{"Origin", "https://example.com"},
                                          {"Access-Control-Request-Method", "POST"},
                                          {"Access-Control-Request-Headers", "x-amz-target"}}});
  EXPECT_NE(response.headers.find("Access-Control-Allow-Origin: *\r\n"), std::string::npos);
  EXPECT_NE(response.headers.find("Access-Control-Allow-Methods: POST\r\n"), std::string::npos);
  EXPECT_NE(response.headers.find("Access-Control-Allow-Headers: x-amz-target\r\n"), std::string::npos);
  const auto plain = send({.method = "OPTIONS", .target = "/"});
  EXPECT_EQ(plain.headers.find("Access-Control"), std::string::npos);
}

TEST_F(DoorTest, CompressesBothWays) {
  auto small = request("ListTables", "");
  const auto packed = compress("{}", Compression::gzip);
  small.body = packed;
  small.headers.emplace_back("Content-Encoding", "gzip");
  small.headers.emplace_back("Accept-Encoding", "gzip");
  const auto response = send(small);
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.headers.find("Content-Encoding: gzip\r\n"), std::string::npos);
  EXPECT_NE(response.headers.find("x-amz-crc32: " + std::to_string(crc32(response.body))), std::string::npos)
      << "the checksum is of the bytes as sent";
  EXPECT_TRUE(decompress(response.body, Compression::gzip, 1u << 20).bytes.starts_with("{\"TableNames\":["));
  small.body = "garbage";
  EXPECT_EQ(send(small).status, 500);
}

TEST(AcceptEncoding, IsReadAsAwsReadsIt) {
  const auto chosen = [](std::string_view header) -> std::string {
    const auto encoding = choose_encoding(header);
    if (!encoding) return "none";
    return *encoding == Compression::gzip ? "gzip" : "deflate";
  };
  EXPECT_EQ(chosen(""), "none");
  EXPECT_EQ(chosen("identity"), "none");
  EXPECT_EQ(chosen("gzip, deflate"), "gzip");
  EXPECT_EQ(chosen("br, identity, deflate, gzip"), "deflate");
  EXPECT_EQ(chosen("GZIP"), "gzip");
  EXPECT_EQ(chosen("dog, gzip ,, cat"), "gzip");
  EXPECT_EQ(chosen("gzip;q=0.5, deflate;q=0.8"), "deflate");
  EXPECT_EQ(chosen("gzip;q=0"), "none");
  EXPECT_EQ(chosen("*"), "gzip");
  EXPECT_EQ(chosen("*, gzip;q=0.5"), "deflate");
  EXPECT_EQ(chosen("*, deflate"), "deflate");
  EXPECT_EQ(chosen("*;q=0"), "none");
}

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
    if (result) return "ok";
    return result.error().type.substr(result.error().type.find('#') + 1);
  }

  ManualClock clock_{time_of_example()};
  SignatureVerifier verifier_{{{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}}, clock_};
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
  EXPECT_NE(verifier_.verify(future).error().message->find("not yet current"), std::string::npos);
}

TEST_F(SignatureTest, DoesNotKnowStrangers) {
  auto request = signed_request("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
  std::string other = authorization_;
  other.replace(other.find("AKIDEXAMPLE"), 11, "AKIDSTRANGE");
  request.headers[2].second = other;
  EXPECT_EQ(verdict(request), "UnrecognizedClientException");
}

}  // namespace
}  // namespace tabella::wire

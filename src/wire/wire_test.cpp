// What the wire adds to a Store: envelopes, constraints, encodings. The Store behind it answers
// nothing; operations are tested through Store.
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

TEST_F(DoorTest, RefusesByNameWhatItDoesNotSupport) {
  const auto refused = [](std::string_view parameter) {
    return R"({"__type":"com.amazon.coral.validate#ValidationException","message":"One or more parameter values were invalid: )" +
           std::string(parameter) + R"( is not supported"})";
  };
  for (const std::string parameter :
       {"ResourcePolicy", "VectorIndexes", "GlobalTableSourceArn", "GlobalTableSettingsReplicationMode"})
    EXPECT_EQ(answer("CreateTable", R"({"TableName":"abc",")" + parameter + R"(":"x"})"), refused(parameter));
  for (const std::string parameter :
       {"ReplicaUpdates", "MultiRegionConsistency", "GlobalTableWitnessUpdates",
        "GlobalTableSettingsReplicationMode", "DisassociationProtectionEnabled", "VectorIndexUpdates"})
    EXPECT_EQ(answer("UpdateTable", R"({"TableName":"abc",")" + parameter + R"(":[]})"), refused(parameter));
  EXPECT_EQ(answer("UpdateTable", R"({"TableName":"abc","ReplicaUpdates":null})").find("not supported"),
            std::string::npos);
  EXPECT_EQ(send(request("ListTables", R"({"Unheard":[]})")).status, 200) << "AWS does not know it either";
}

TEST_F(DoorTest, ReadsHowATableIsToBeEncrypted) {
  const auto encrypted = [&](std::string_view specification) {
    return answer("UpdateTable",
                  R"({"TableName":"abc","SSESpecification":)" + std::string(specification) + "}");
  };
  constexpr std::string_view kGood = "Requested resource not found";
  EXPECT_NE(encrypted(R"({"Enabled":true})").find(kGood), std::string::npos);
  EXPECT_NE(encrypted(R"({"Enabled":true,"SSEType":"KMS","KMSMasterKeyId":"alias/mine"})").find(kGood),
            std::string::npos);
  EXPECT_NE(encrypted(R"({"Enabled":true,"KMSMasterKeyId":"alias/mine"})")
                .find("SSEType KMS is required if KMSMasterKeyId is specified"),
            std::string::npos);
  EXPECT_NE(encrypted(R"({"Enabled":true,"SSEType":"AES256"})").find("SSEType AES256 is not supported"),
            std::string::npos);
  EXPECT_NE(encrypted(R"({"SSEType":"x"})").find("Member must satisfy enum value set: [AES256, KMS]"),
            std::string::npos);
}

TEST_F(DoorTest, ReadsSignaturesInTheQueryString) {
  auto presigned = request("ListTables", "{}");
  std::erase_if(presigned.headers, [](const auto& h) { return h.first == "Authorization"; });
  presigned.target =
      "/?X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-SignedHeaders=d&X-Amz-Date=e";
  EXPECT_EQ(send(presigned).status, 200);
  presigned.target = "/?X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-Date=d";
  EXPECT_EQ(
      send(presigned).body,
      R"({"__type":"com.amazon.coral.service#IncompleteSignatureException","message":"AWS query-string parameters must include 'X-Amz-SignedHeaders'. Re-examine the query-string parameters."})");
  presigned.target = "/?X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d";
  EXPECT_NE(send(presigned).body.find("MissingAuthenticationTokenException"), std::string::npos);
  auto both = request("ListTables", "{}");
  both.target = "/?X-Amz-Algorithm";
  EXPECT_EQ(
      send(both).body,
      R"({"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."})");
}

TEST_F(DoorTest, AnswersPreflightRequests) {
  const net::HttpRequest request{.method = "OPTIONS",
                                 .target = "/",
                                 .headers = {{"Origin", "https://example.com"},
                                             {"Access-Control-Request-Method", "POST"},
                                             {"Access-Control-Request-Headers", "x-amz-target"}}};
  Door open(store_, clock_, {.cors_origin = "https://example.com"});
  const auto response = send(request, open);
  EXPECT_NE(response.headers.find("Access-Control-Allow-Origin: https://example.com\r\n"), std::string::npos);
  EXPECT_NE(response.headers.find("Access-Control-Allow-Methods: POST\r\n"), std::string::npos);
  EXPECT_NE(response.headers.find("Access-Control-Allow-Headers: x-amz-target\r\n"), std::string::npos);
  const auto plain = send({.method = "OPTIONS", .target = "/"});
  EXPECT_EQ(plain.headers.find("Access-Control"), std::string::npos);
}

TEST_F(DoorTest, RefusesPagesOfOtherOriginsAndUnknownNames) {
  const net::HttpRequest preflight{.method = "OPTIONS",
                                   .target = "/",
                                   .headers = {{"Host", "127.0.0.1:8000"},
                                               {"Origin", "https://example.com"},
                                               {"Access-Control-Request-Method", "POST"}}};
  EXPECT_EQ(send(preflight).status, 403);
  EXPECT_EQ(send(preflight).headers.find("Access-Control"), std::string::npos);
  auto call = request("ListTables", "{}");
  call.headers.emplace_back("Origin", "https://example.com");
  EXPECT_EQ(send(call).status, 403);
  Door here(store_, clock_, {.hosts = net::KnownHosts(std::vector<std::string>{"tabella.local"})});
  for (const auto& [host, status] :
       {std::pair("127.0.0.1:8000", 200), std::pair("localhost:8000", 200), std::pair("tabella.local", 200),
        std::pair("evil.example.com:8000", 403)})
    EXPECT_EQ(send({.method = "GET", .target = "/", .headers = {{"Host", host}}}, here).status, status)
        << host;
}

TEST_F(DoorTest, SaysWhenTheStoreIsNotWell) {
  Door ill(store_, clock_, {.problem = [] { return std::string("the disk is almost full"); }});
  const auto response = send({.method = "GET", .target = "/"}, ill);
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("almost full"), std::string::npos);
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

}  // namespace
}  // namespace tabella::wire

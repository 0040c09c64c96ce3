#include "net/http.h"

#include <gtest/gtest.h>

namespace tabella::net {
namespace {

HeadResult parse(std::string_view text) {
  RequestHead head;
  return parse_head(text, head);
}

TEST(RequestHead, ReadsMethodTargetAndHeaders) {
  RequestHead head;
  const std::string_view text =
      "POST /?a=b HTTP/1.1\r\nHost: x\r\nX-Two:  spaced \r\ncontent-length: 5\r\n\r\nhello";
  ASSERT_EQ(parse_head(text, head), HeadResult::complete);
  EXPECT_EQ(head.request.method, "POST");
  EXPECT_EQ(head.request.target, "/?a=b");
  EXPECT_EQ(head.request.header("x-two"), "spaced");
  EXPECT_EQ(head.content_length, 5u);
  EXPECT_EQ(text.substr(head.size), "hello");
  EXPECT_TRUE(head.request.keep_alive);
}

TEST(RequestHead, WaitsForTheWholeHead) {
  const std::string text = "POST / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (size_t n = 0; n + 1 < text.size(); ++n)
    EXPECT_EQ(parse(text.substr(0, n)), HeadResult::incomplete) << n;
}

TEST(RequestHead, RefusesWhatLetsRequestsBeSmuggled) {
  for (const char* text : {
           "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
           "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
           "POST / HTTP/1.1\r\nContent-Length: 5 5\r\n\r\n",
           "POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
           "POST / HTTP/1.1\r\n folded: x\r\n\r\n",
           "POST / HTTP/1.1\r\nno colon\r\n\r\n",
           "POST  / HTTP/1.1\r\n\r\n",
           "POST /\r\n\r\n",
           "\r\n\r\n",
       })
    EXPECT_EQ(parse(text), HeadResult::malformed) << text;
  EXPECT_EQ(parse("GET / HTTP/2.0\r\n\r\n"), HeadResult::unsupported_version);
  EXPECT_EQ(parse("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"), HeadResult::unsupported_encoding);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')), HeadResult::too_large);
}

TEST(RequestHead, KnowsWhenToKeepTheConnection) {
  const auto keeps = [](std::string_view text) {
    RequestHead head;
    parse_head(text, head);
    return head.request.keep_alive;
  };
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
}

TEST(ChunkedBody, IsDecoded) {
  const std::string_view body = "4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nTrailer: x\r\n\r\nrest";
  const auto measured = measure_chunked(body);
  EXPECT_EQ(measured.state, Chunked::State::complete);
  EXPECT_EQ(body.substr(measured.consumed), "rest");
  EXPECT_EQ(decode_chunked(body), "Wikipedia");
  for (size_t n = 0; n < measured.consumed; ++n)
    EXPECT_EQ(measure_chunked(body.substr(0, n)).state, Chunked::State::incomplete) << n;
}

TEST(ChunkedBody, RefusesBrokenSizes) {
  for (const char* body : {"x\r\n", "-1\r\n", "4\r\nWikiXX", "fffffffffffffffff\r\n", "\r\n"})
    EXPECT_EQ(measure_chunked(body).state, Chunked::State::malformed) << body;
}

TEST(ResponseHead, CarriesItsLength) {
  HttpResponse response;
  response.body = "{}";
  response.add_header("X-Test", "1");
  std::string head;
  append_response_head(head, response, true);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(head.find("Content-Length: 2\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-Test: 1\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("Connection: close\r\n\r\n"));
}

}  // namespace
}  // namespace tabella::net

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
           "GET /\x01 HTTP/1.1\r\n\r\n",
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
  RequestHead head;
  parse_head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", head);
  EXPECT_FALSE(head.request.chunks);
  parse_head("GET / HTTP/1.1\r\n\r\n", head);
  EXPECT_TRUE(head.request.chunks);
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
}

TEST(RequestHead, NamesOneHost) {
  RequestHead head;
  EXPECT_EQ(parse_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n", head), HeadResult::complete);
  EXPECT_EQ(parse_head("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", head), HeadResult::malformed);
  EXPECT_EQ(parse_head("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", head), HeadResult::malformed);
}

// Feeds the body in pieces of the given size, as a slow sender would.
ChunkedBody::State feed(std::string_view text, size_t piece, std::string* decoded = nullptr,
                        size_t max_size = 1000) {
  ChunkedBody body(max_size);
  std::string pending;
  auto state = ChunkedBody::State::incomplete;
  while (state == ChunkedBody::State::incomplete && !text.empty()) {
    pending.append(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    std::string_view rest = pending;
    state = body.feed(rest);
    pending = std::string(rest);
  }
  if (decoded) *decoded = body.body() + "|" + pending;
  return state;
}

TEST(ChunkedBody, IsDecodedHoweverItArrives) {
  const std::string_view text = "4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nTrailer: x\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    std::string decoded;
    EXPECT_EQ(feed(text, piece, &decoded), ChunkedBody::State::complete) << piece;
    EXPECT_EQ(decoded, "Wikipedia|");
  }
  std::string decoded;
  feed(std::string(text) + "rest", 1000, &decoded);
  EXPECT_EQ(decoded, "Wikipedia|rest");
}

TEST(ChunkedBody, RefusesBrokenAndEndlessOnes) {
  for (const char* text : {"x\r\n", "-1\r\n", "4\r\nWikiXX\r\n", "fffffffffffffffff\r\n", "\r\n"})
    EXPECT_EQ(feed(text, 3), ChunkedBody::State::malformed) << text;
  // What another parser might take for the end of a line, or for a request that follows.
  for (const char* text :
       {"4;a\nb\r\nWiki\r\n", "4;a\rb\r\nWiki\r\n", " 4\r\nWiki\r\n", "0\r\nTrailer\r\n\r\n",
        "0\r\nTrail er: x\r\n\r\n", "0\r\nTrailer: a\nb\r\n\r\n", "0\r\n: x\r\n\r\n"})
    EXPECT_EQ(feed(text, 3), ChunkedBody::State::malformed) << text;
  EXPECT_EQ(feed("ffff\r\n", 3), ChunkedBody::State::too_large);
  EXPECT_EQ(feed(std::string(2000, 'a'), 100), ChunkedBody::State::malformed);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 5000; ++i) trailers += "X: y\r\n";
  EXPECT_EQ(feed(trailers, 100), ChunkedBody::State::too_large);
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

#include "net/streams.h"

#include <charconv>

#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "net/router.h"
#include "net/server.h"

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

// Counts from behind where the client left off, up to five.
awaitable<void> count_on(Call& call) {
  const auto from = last_event_id(call);
  int last = 0;
  std::from_chars(from.data(), from.data() + from.size(), last);
  answer_events(call, [last](EventStream& stream) -> awaitable<void> {
    for (int i = last + 1; i <= 5; ++i)
      if (!co_await stream.send(std::to_string(i), "count", "one\rtwo\nthree")) co_return;
  });
  co_return;
}

// A hundred thousand lines, or as many as somebody reads.
awaitable<void> write_lines(Call& call) {
  const bool breaks = call.flag("breaks");
  answer_lines(call, [breaks](LineWriter& lines) -> awaitable<bool> {
    for (int i = 0; i < 100'000; ++i) {
      if (breaks && i == 50'000) co_return false;
      lines.line().append("{\"n\":").append(std::to_string(i)).append("}");
      if (!co_await lines.end_line()) co_return false;
    }
    co_return true;
  });
  co_return;
}

class StreamedAnswers : public testing::Test {
 protected:
  StreamedAnswers() {
    router.add({"GET", "/events", "test:read", "Counts", count_on});
    router.add({"GET", "/lines", "test:read", "Writes lines", write_lines});
    server.emplace(threads, ServerOptions{}, [this](const HttpRequest& request, HttpResponse& response) {
      return router.handle(request, response);
    });
  }
  void TearDown() override { server->stop(std::chrono::milliseconds(0)); }

  // All that comes until the other side closes.
  std::string get(const std::string& path, const std::string& headers = "") {
    asio::io_context context;
    tcp::socket socket(context);
    socket.connect({asio::ip::make_address("127.0.0.1"), server->port()});
    asio::write(socket, asio::buffer("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
                                     headers + "\r\n"));
    std::string answer;
    boost::system::error_code ended;
    asio::read(socket, asio::dynamic_buffer(answer), ended);
    return answer;
  }

  IoThreads threads{1};
  Router router{{}};
  std::optional<HttpServer> server;
};

size_t times(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(StreamedAnswers, AreEventsThatCanBeResumed) {
  const auto all = get("/events");
  EXPECT_NE(all.find("text/event-stream"), all.npos);
  EXPECT_EQ(times(all, "event: count\n"), 5u);
  EXPECT_NE(all.find("id: 1\ndata: onetwo\ndata: three\n\n"), all.npos) << "a CR would end the line";
  const auto rest = get("/events", "Last-Event-ID: 3\r\n");
  EXPECT_EQ(times(rest, "event: count\n"), 2u);
  EXPECT_EQ(times(get("/events?last-event-id=4"), "event: count\n"), 1u);
}

TEST_F(StreamedAnswers, AreLinesThatEndWhole) {
  const auto all = get("/lines");
  EXPECT_NE(all.find("application/x-ndjson"), all.npos);
  EXPECT_EQ(times(all, "{\"n\":"), 100'000u);
  EXPECT_TRUE(all.ends_with("0\r\n\r\n")) << "the last chunk says that this was all";
}

TEST_F(StreamedAnswers, DoNotLookWholeWhereTheyBreakOff) {
  EXPECT_FALSE(get("/lines?breaks").ends_with("0\r\n\r\n"));
}

}  // namespace
}  // namespace tabella::net

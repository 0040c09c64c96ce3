#include "net/router.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "net/openapi.h"

namespace tabella::net {
namespace {

using boost::asio::awaitable;

// Lets "Bearer good" in with one scope.
class OneToken : public Gate {
 public:
  awaitable<std::variant<Caller, Refusal>> admit(const HttpRequest& request) override {
    if (request.header("authorization") == "Bearer good") co_return Caller{"token good", {"toy:read"}};
    co_return Refusal{.status = 401, .message = "who are you?", .headers = {{"WWW-Authenticate", "Basic"}}};
  }
};

Route route(std::string method, std::string path, std::string scope = "toy:read") {
  return {.method = std::move(method),
          .path = std::move(path),
          .scope = std::move(scope),
          .summary = "answers with its own path",
          .handler = [](Call& call) -> awaitable<void> {
            call.answer_json().append("\"here\"");
            co_return;
          }};
}

HttpResponse ask_router(Router& router, std::string_view method, std::string_view target,
                        HttpHeaders headers = {}, std::string_view body = "") {
  HttpRequest request{.method = method, .target = target, .headers = std::move(headers), .body = body};
  HttpResponse response;
  boost::asio::io_context context;
  std::exception_ptr failure;
  boost::asio::co_spawn(context, router.handle(request, response),
                        [&](std::exception_ptr e) { failure = e; });
  context.run();
  if (failure) std::rethrow_exception(failure);
  return response;
}

TEST(Router, FindsWordsBeforeWhatCaptures) {
  Router router({});
  const auto answers = [&](std::string path, std::string text) {
    auto added = route("GET", std::move(path));
    added.handler = [text](Call& call) -> awaitable<void> {
      call.answer_json().append(text);
      co_return;
    };
    router.add(std::move(added));
  };
  answers("/j/{name}/all", "all");
  answers("/j/{name}/{id}/events", "events");
  EXPECT_EQ(ask_router(router, "GET", "/j/one/all").body, "all");
  EXPECT_EQ(ask_router(router, "GET", "/j/one/all/").body, "all");
  EXPECT_EQ(ask_router(router, "GET", "/j/one/all/events").body, "events");
  EXPECT_EQ(ask_router(router, "GET", "/j/one/x").status, 404);
  EXPECT_EQ(ask_router(router, "GET", "/j//all").status, 404);
}

TEST(Router, HandsOutWhatThePathCaptures) {
  Router router({});
  auto added = route("GET", "/a/{first}/b/{second}");
  added.handler = [](Call& call) -> awaitable<void> {
    call.answer_json().append(call.path("second") + "," + call.path("first"));
    co_return;
  };
  router.add(std::move(added));
  EXPECT_EQ(ask_router(router, "GET", "/a/x%2Fy/b/2").body, "2,x/y");
}

TEST(Router, SaysWhichMethodsThereAre) {
  Router router({});
  router.add(route("GET", "/a"));
  router.add(route("PUT", "/a"));
  const auto wrong = ask_router(router, "POST", "/a");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_NE(wrong.headers.find("Allow: GET, PUT, OPTIONS"), std::string::npos);
  EXPECT_EQ(ask_router(router, "OPTIONS", "/a").status, 200);
  EXPECT_EQ(ask_router(router, "HEAD", "/a").status, 200);
}

TEST(Router, RefusesTheSameRouteTwice) {
  Router router({});
  router.add(route("GET", "/a/{b}"));
  EXPECT_THROW(router.add(route("GET", "/a/{c}")), std::logic_error);
}

TEST(Router, AsksForCredentialsBeforeItSaysWhatThereIs) {
  OneToken gate;
  Router router({}, &gate);
  router.add(route("GET", "/read"));
  router.add(route("GET", "/write", "toy:write"));
  router.add(route("GET", "/open", kAnybody));
  const HttpHeaders good = {{"authorization", "Bearer good"}};
  EXPECT_EQ(ask_router(router, "GET", "/read").status, 401);
  EXPECT_EQ(ask_router(router, "GET", "/nowhere").status, 401);
  EXPECT_EQ(ask_router(router, "POST", "/open").status, 401);
  EXPECT_EQ(ask_router(router, "GET", "/open").status, 200);
  EXPECT_EQ(ask_router(router, "GET", "/read", good).status, 200);
  EXPECT_EQ(ask_router(router, "GET", "/nowhere", good).status, 404);
  const auto lacking = ask_router(router, "GET", "/write", good);
  EXPECT_EQ(lacking.status, 403);
  EXPECT_EQ(lacking.body, R"({"error":"token good lacks the scope toy:write"})");
}

TEST(Router, RefusesPagesOfOtherOrigins) {
  Router router({.cors_origin = "https://app.example"});
  router.add(route("GET", "/a"));
  EXPECT_EQ(ask_router(router, "GET", "/a", {{"host", "x"}, {"origin", "https://evil.example"}}).status, 403);
  EXPECT_EQ(ask_router(router, "GET", "/a", {{"host", "x"}, {"origin", "null"}}).status, 403);
  EXPECT_EQ(ask_router(router, "GET", "/a", {{"host", "x"}, {"origin", "http://x"}}).status, 200);
  EXPECT_EQ(ask_router(router, "GET", "/a", {{"host", "x"}, {"origin", "https://app.example"}}).status, 200);
}

TEST(Router, AnswersABrowserThatAsksWhetherItMayAsk) {
  OneToken gate;
  Router router({.cors_origin = "https://app.example"}, &gate);
  router.add(route("PUT", "/a"));
  const auto allowed = ask_router(router, "OPTIONS", "/a", {{"origin", "https://app.example"}});
  EXPECT_EQ(allowed.status, 200);
  EXPECT_NE(allowed.headers.find("Access-Control-Allow-Methods: PUT, OPTIONS"), std::string::npos);
  EXPECT_EQ(ask_router(router, "OPTIONS", "/a", {{"origin", "https://evil.example"}}).status, 403);
}

TEST(Router, LivesUnderAPath) {
  Router router({.web_path = "/mail"});
  router.add(route("GET", "/"));
  router.add(route("GET", "/a"));
  auto healthy = route("GET", "/healthz", kAnybody);
  healthy.at_root = true;
  router.add(std::move(healthy));
  for (const auto* there : {"/mail", "/mail/", "/mail?x=1", "/mail/a", "/healthz", "/mail/healthz"})
    EXPECT_EQ(ask_router(router, "GET", there).status, 200) << there;
  for (const auto* nowhere : {"/", "/a", "/mailer", "/mail/b"})
    EXPECT_EQ(ask_router(router, "GET", nowhere).status, 404) << nowhere;
}

TEST(Router, BoundsBodies) {
  Router router({});
  auto added = route("POST", "/a");
  added.max_body = 10;
  router.add(std::move(added));
  EXPECT_EQ(ask_router(router, "POST", "/a", {}, "0123456789").status, 200);
  EXPECT_EQ(ask_router(router, "POST", "/a", {}, "0123456789a").status, 413);
  EXPECT_EQ(router.body_limit({.method = "POST", .target = "/a?x=1"}), 10);
}

TEST(Router, TurnsWhatAHandlerThrowsInto500) {
  Router router({});
  auto added = route("GET", "/a");
  added.handler = [](Call&) -> awaitable<void> {
    throw std::runtime_error("secret inner workings");
    co_return;
  };
  router.add(std::move(added));
  const auto answer = ask_router(router, "GET", "/a");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
}

TEST(Call, ReadsTheQueryByTypeAndSaysWhatIsWrong) {
  Router router({});
  auto added = route("GET", "/a");
  added.handler = [](Call& call) -> awaitable<void> {
    const auto limit = call.number("limit", 50, 1, 250);
    const auto wait = call.duration("wait", std::chrono::seconds{1}, std::chrono::minutes{1});
    const auto all = call.flag("all");
    if (call.answered()) co_return;
    call.answer_json().append(std::to_string(limit) + " " + std::to_string(wait.count()) +
                              (all ? " all" : ""));
  };
  router.add(std::move(added));
  EXPECT_EQ(ask_router(router, "GET", "/a").body, "50 1000");
  EXPECT_EQ(ask_router(router, "GET", "/a?limit=7&wait=2h&all").body, "7 60000 all");
  EXPECT_EQ(ask_router(router, "GET", "/a?limit=251").body,
            R"({"error":"limit: expected a whole number from 1 to 250"})");
  EXPECT_EQ(ask_router(router, "GET", "/a?limit=x&wait=y").status, 400);
  EXPECT_EQ(ask_router(router, "GET", "/a?all=perhaps").body, R"({"error":"all: expected true or false"})");
}

TEST(Call, ReadsTheBodyByTypeAndSaysWhatIsWrong) {
  Router router({});
  auto added = route("POST", "/a");
  added.handler = [](Call& call) -> awaitable<void> {
    auto body = call.json("{\"name\": \"…\"}");
    if (!body) co_return;
    auto text = body->text("name");
    text += "/" + std::to_string(body->number("count", 1, 0, 9));
    for (const auto& tag : body->texts("tags")) text += "/" + tag;
    if (body->flag("loud", false)) text += "!";
    body->no_others();
    if (!call.answered()) call.answer_json().append(text);
  };
  router.add(std::move(added));
  const auto answer = [&](std::string_view body) { return ask_router(router, "POST", "/a", {}, body).body; };
  EXPECT_EQ(answer(R"({"name":"x"})"), "x/1");
  EXPECT_EQ(answer(R"({"name":"x","count":3,"tags":["a","b"],"loud":true})"), "x/3/a/b!");
  EXPECT_EQ(answer(R"({"count":3})"), R"({"error":"name is missing"})");
  EXPECT_EQ(answer(R"({"name":"x","count":10})"),
            R"({"error":"count: expected a whole number from 0 to 9"})");
  EXPECT_EQ(answer(R"({"name":"x","tags":["a",1]})"), R"({"error":"tags: expected a list of texts"})");
  EXPECT_EQ(answer(R"({"name":"x","nmae":"y"})"), R"({"error":"nmae is not known here"})");
  EXPECT_EQ(answer("[1]"), R"({"error":"expected a JSON object: {\"name\": \"…\"}"})");
}

TEST(Caller, HasScopesByNameBySystemOrAll) {
  EXPECT_TRUE((Caller{"", {"mail:read"}}.may("mail:read")));
  EXPECT_FALSE((Caller{"", {"mail:read"}}.may("mail:write")));
  EXPECT_TRUE((Caller{"", {"mail:*"}}.may("mail:write")));
  EXPECT_FALSE((Caller{"", {"mail:*"}}.may("mailer:write")));
  EXPECT_TRUE((Caller{"", {"*"}}.may("journal:read")));
  EXPECT_FALSE((Caller{"", {}}.may("journal:read")));
}

TEST(OpenApi, ListsEveryRoute) {
  Router router({});
  auto added = route("POST", "/a/{id}/things");
  added.query = {{"limit", "how many"}};
  added.body = R"({"name": "x"})";
  router.add(std::move(added));
  router.add(route("GET", "/a/{id}/things"));
  const auto text = openapi(router, "/mail", "1.0");
  JsonDocument document;
  const auto json = document.parse(text);
  ASSERT_TRUE(json) << text;
  const auto path = json->find("paths")->find("/a/{id}/things");
  ASSERT_TRUE(path);
  EXPECT_TRUE(path->find("get"));
  EXPECT_TRUE(path->find("post")->find("requestBody"));
  EXPECT_TRUE(path->find("post")->find("responses"));
}

TEST(OpenApi, SaysByWhatOneMayComeIn) {
  Router router({});
  auto added = route("GET", "/a");
  added.own_credentials = {{"X-Key"}, {"X-User", "X-Proof"}};
  router.add(std::move(added));
  const auto text = openapi(router, "", "1.0");
  JsonDocument document;
  const auto json = document.parse(text);
  ASSERT_TRUE(json) << text;
  EXPECT_NE(text.find(R"({"X-Key":[]},{"X-User":[],"X-Proof":[]})"), std::string::npos) << text;
  for (const auto* header : {"X-Key", "X-User", "X-Proof"}) {
    const auto scheme = json->find("components")->find("securitySchemes")->find(header);
    ASSERT_TRUE(scheme) << header;
    EXPECT_EQ(scheme->text("in"), "header");
    EXPECT_EQ(scheme->text("name"), header);
  }
}

}  // namespace
}  // namespace tabella::net

// Who may come in: tokens, sessions and the gate in front of all routes.
#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "access/gate.h"
#include "access/routes.h"
#include "access/table.h"
#include "base/base64.h"
#include "base/checksum.h"
#include "contract/contract.h"
#include "protocol/signature.h"
#include "store/tables.h"

namespace tabella::contract {
namespace {

using access::AccessGate;
using access::PasswordCheck;
using access::Sessions;
using access::Tokens;
using boost::asio::awaitable;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kTable = "access";

// Several of a kind stand for several processes on one store.
class Access : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (IsSkipped()) return;
    const auto made = run(store::prepare_tables(store(), {access::plan(kTable)}, store::Missing::create));
    ASSERT_TRUE(made) << made.error().message;
  }

  Tokens tokens() { return {store(), time_, kTable}; }
  // Without an answer from the store the test fails.
  template <class T>
  static T must(store::Async<T> call) {
    auto result = run(std::move(call));
    EXPECT_TRUE(result) << result.error().message;
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }
  template <class T>
  static T wait(awaitable<T> work) {
    boost::asio::io_context context;
    std::optional<T> value;
    boost::asio::co_spawn(context, std::move(work), [&](std::exception_ptr failure, T result) {
      if (failure) std::rethrow_exception(failure);
      value = std::move(result);
    });
    context.run();
    return std::move(*value);
  }
  std::string secret(std::vector<std::string> scopes = {"mail:read"}) {
    auto all = tokens();
    return must(all.create("ci", std::move(scopes), {})).secret;
  }
  static std::string wrong(std::string secret) {
    secret.back() = secret.back() == '0' ? '1' : '0';
    return secret;
  }

  // The store's own time goes on beside it, and its time to live by that.
  ManualClock time_{std::chrono::system_clock::now()};
};

class AccessTokens : public Access {};

TEST_P(AccessTokens, AreFoundByTheirSecretUntilTheyAreRevoked) {
  auto here = tokens();
  auto elsewhere = tokens();
  EXPECT_FALSE(must(here.any()));
  const auto made = must(here.create("ci", {"mail:read", "journal:*", "mail:read"}, {}));
  EXPECT_TRUE(made.secret.starts_with("tab_" + made.token.id + "_"));
  EXPECT_TRUE(must(here.any())) << "whoever makes one knows at once";
  for (auto* process : {&here, &elsewhere}) {
    const auto found = must(process->find(made.secret));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->id, made.token.id);
    EXPECT_EQ(found->name, "ci");
    EXPECT_EQ(found->scopes, (std::vector<std::string>{"journal:*", "mail:read"}));
    EXPECT_EQ(found->created, made.token.created);
    EXPECT_FALSE(found->expires);
  }
  EXPECT_TRUE(must(here.revoke(made.token.id)));
  EXPECT_FALSE(must(here.revoke(made.token.id)));
  EXPECT_FALSE(must(here.find(made.secret))) << "whoever revokes one knows at once";
  time_.advance(seconds{2});
  EXPECT_FALSE(must(elsewhere.find(made.secret))) << "and everybody else within two seconds";
  EXPECT_FALSE(must(elsewhere.any()));
}

TEST_P(AccessTokens, AreNotFoundByAnythingElse) {
  auto all = tokens();
  const auto right = secret();
  EXPECT_FALSE(must(all.find(wrong(right))));
  EXPECT_FALSE(must(all.find(wrong(right)))) << "nor the second time";
  EXPECT_TRUE(must(all.find(right))) << "and the right one is, after a wrong one";
  auto id = right;
  id[4] = id[4] == '0' ? '1' : '0';
  for (const auto& other : {id, right + "0", right.substr(0, right.size() - 1), right.substr(4),
                            std::string("tab_"), std::string("tab__"), std::string()})
    EXPECT_FALSE(must(all.find(other))) << other;
}

TEST_P(AccessTokens, AreKeptAsAHashOnly) {
  const auto right = secret();
  const auto random = right.substr(right.rfind('_') + 1);
  const auto rows = scan({.options = {.table = kTable}});
  EXPECT_EQ(rows.find(random), std::string::npos) << rows;
  EXPECT_NE(rows.find("\"ci\""), std::string::npos) << rows;
}

TEST_P(AccessTokens, HaveATimeThatEndsAndLeaveTheDoorClosed) {
  auto all = tokens();
  const auto made = must(all.create("ci", {"*"}, minutes{10}));
  time_.advance(minutes{10} - milliseconds{1});
  EXPECT_TRUE(must(all.find(made.secret)));
  time_.advance(milliseconds{1});
  EXPECT_FALSE(must(all.find(made.secret)));
  time_.advance(hours{24});
  EXPECT_TRUE(must(all.any()));
  EXPECT_EQ(must(all.list()).size(), 1u);
}

TEST_P(AccessTokens, NoteTheirLastUseOnceAMinute) {
  auto all = tokens();
  const auto right = secret();
  const auto last_use = [&] { return must(all.list()).at(0).last_used; };
  EXPECT_FALSE(last_use());
  must(all.find(wrong(right)));
  EXPECT_FALSE(last_use()) << "that was none";
  must(all.find(right));
  const auto first = last_use();
  ASSERT_TRUE(first);
  EXPECT_EQ(epoch_milliseconds(*first), epoch_milliseconds(time_.now()));
  time_.advance(seconds{59});
  must(all.find(right));
  EXPECT_EQ(last_use(), first);
  time_.advance(seconds{1});
  must(all.find(right));
  EXPECT_EQ(last_use(), *first + minutes{1});
}

TEST_P(AccessTokens, AreListedByAge) {
  auto all = tokens();
  for (const auto* name : {"first", "second", "third"}) {
    must(all.create(name, {"*"}, {}));
    time_.advance(milliseconds{5});
  }
  std::vector<std::string> names;
  for (const auto& token : must(all.list())) names.push_back(token.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third"}));
}

TEST_P(AccessTokens, AreNotMadeOfNonsense) {
  auto all = tokens();
  EXPECT_EQ(run(all.create("ci", {}, {})).error().message, "a token needs a scope, as in mail:read");
  EXPECT_EQ(run(all.create("ci", {"mail"}, {})).error().message,
            "'mail' is no scope: expected one as mail:read, mail:* or *");
  EXPECT_FALSE(run(all.create("", {"*"}, {})));
  EXPECT_FALSE(run(all.create("two\nlines", {"*"}, {})));
  EXPECT_FALSE(run(all.create("ci", {"*"}, seconds{0})));
  EXPECT_FALSE(must(all.any()));
}

TABELLA_CONTRACT(AccessTokens);

class AccessSessions : public Access {
 protected:
  Passwords passwords_{{{"ann", "apple"}, {"ben", "pear"}}};
};

TEST_P(AccessSessions, HoldInEveryProcessUntilLogout) {
  Sessions here(store(), time_, passwords_, kTable);
  Sessions elsewhere(store(), time_, passwords_, kTable);
  const auto cookie = must(here.begin("ann"));
  const auto other = must(here.begin("ben"));
  EXPECT_EQ(must(here.find(cookie)), "ann");
  EXPECT_EQ(must(elsewhere.find(cookie)), "ann");
  EXPECT_EQ(must(elsewhere.find(other)), "ben");
  EXPECT_FALSE(must(here.find(wrong(cookie))));
  EXPECT_FALSE(must(here.find("")));
  EXPECT_EQ(scan({.options = {.table = kTable}}).find(cookie), std::string::npos);
  must(here.end(cookie));
  must(here.end(cookie));
  EXPECT_FALSE(must(here.find(cookie)));
  time_.advance(seconds{2});
  EXPECT_FALSE(must(elsewhere.find(cookie)));
  EXPECT_EQ(must(elsewhere.find(other)), "ben");
}

TEST_P(AccessSessions, EndWhenTheyAreNotUsed) {
  Sessions sessions(store(), time_, passwords_, kTable);
  const auto used = must(sessions.begin("ann"));
  const auto unused = must(sessions.begin("ann"));
  time_.advance(hours{11});
  EXPECT_TRUE(must(sessions.find(used)));
  time_.advance(hours{1});
  EXPECT_TRUE(must(sessions.find(used))) << "use extends it";
  EXPECT_FALSE(must(sessions.find(unused)));
  time_.advance(hours{12});
  EXPECT_FALSE(must(sessions.find(used)));
}

TEST_P(AccessSessions, EndAfterAWeekInAnyCase) {
  Sessions sessions(store(), time_, passwords_, kTable);
  const auto cookie = must(sessions.begin("ann"));
  for (int i = 0; i < 7 * 24 / 8 - 1; ++i) {
    time_.advance(hours{8});
    EXPECT_TRUE(must(sessions.find(cookie))) << i;
  }
  time_.advance(hours{8});
  EXPECT_FALSE(must(sessions.find(cookie)));
}

TEST_P(AccessSessions, EndWithTheirUserAndWithHisPassword) {
  Sessions sessions(store(), time_, passwords_, kTable);
  const auto cookie = must(sessions.begin("ann"));
  const auto other = must(sessions.begin("ben"));
  const Passwords changed({{"ann", "another"}});
  Sessions restarted(store(), time_, changed, kTable);
  EXPECT_FALSE(must(restarted.find(cookie)));
  EXPECT_FALSE(must(restarted.find(other)));
  EXPECT_FALSE(run(restarted.begin("ben")));
}

TABELLA_CONTRACT(AccessSessions);

class AccessGates : public Access {
 protected:
  using Keys = protocol::SignatureVerifier::Secrets;

  struct House {
    House(AccessGates& test, bool with_users, Keys keys) : House(test, test.passwords_, with_users, keys) {}
    House(AccessGates& test, Passwords& passwords, bool with_users, Keys keys)
        : tokens(test.tokens()),
          check(passwords),
          sessions(test.store(), test.time_, passwords, kTable),
          users(with_users ? std::optional(access::Users{check, sessions}) : std::nullopt),
          gate(tokens, users, protocol::SignatureVerifier(std::move(keys), test.time_, "")) {}
    Tokens tokens;
    PasswordCheck check;
    Sessions sessions;
    std::optional<access::Users> users;
    AccessGate gate;
  };

  // Who comes in with these headers, and what they may do; or how they are refused.
  static std::string asks_with(House& house, net::HttpHeaders headers) {
    return asks(house, net::HttpRequest{.method = "GET", .target = "/x", .headers = std::move(headers)});
  }
  static std::string asks(House& house, const net::HttpRequest& request) {
    return told(wait(house.gate.admit(request)));
  }
  static std::string told(const AccessGate::Admission& admission) {
    if (const auto* caller = std::get_if<net::Caller>(&admission)) {
      auto text = caller->name.empty() ? "anybody" : caller->name;
      for (const auto& scope : caller->scopes) text += " " + scope;
      return text;
    }
    const auto& refusal = std::get<net::Refusal>(admission);
    EXPECT_FALSE(refusal.message.empty());
    return std::to_string(refusal.status) + " " + refusal.headers.at(0).first;
  }
  static std::string basic(std::string_view user_and_password) {
    return "Basic " + to_base64(user_and_password);
  }

  // A request signed by the key "AKID", for some service of AWS.
  net::HttpRequest signed_request(std::string_view secret) {
    signed_at_ = protocol::basic_date(std::chrono::system_clock::to_time_t(time_.now()));
    const protocol::SignatureScope scope{
        .date = std::string_view(signed_at_).substr(0, 8), .region = "eu-west-1", .service = "ses"};
    net::HttpRequest request{.method = "POST",
                             .target = "/v2/email",
                             .headers = {{"Host", "localhost"}, {"X-Amz-Date", signed_at_}},
                             .body = "{}"};
    const auto signature = protocol::signature({.method = request.method,
                                                .target = request.target,
                                                .headers = request.headers,
                                                .signed_headers = "host;x-amz-date",
                                                .body = request.body},
                                               signed_at_, scope, protocol::signing_key(secret, scope));
    authorization_ = "AWS4-HMAC-SHA256 Credential=AKID/" + std::string(scope.date) +
                     "/eu-west-1/ses/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + signature;
    request.headers.emplace_back("Authorization", authorization_);
    return request;
  }

  static constexpr const char* kRefused = "401 WWW-Authenticate";
  Passwords passwords_{{{"ann", "apple"}}};
  std::string signed_at_;
  std::string authorization_;
};

TEST_P(AccessGates, LetEverybodyInUntilThereAreUsersOrTokens) {
  House open(*this, false, {});
  EXPECT_EQ(asks_with(open, {}), "anybody *");
  House with_keys(*this, false, {{"AKID", "secret"}});
  EXPECT_EQ(asks_with(with_keys, {}), "anybody *") << "keys are for the DynamoDB door";
  House with_users(*this, true, {});
  EXPECT_EQ(asks_with(with_users, {}), kRefused);
  secret();
  time_.advance(seconds{2});
  EXPECT_EQ(asks_with(open, {}), kRefused);
}

TEST_P(AccessGates, TellWhoeverHasWrongCredentialsEvenWhereAnybodyMayComeIn) {
  House open(*this, false, {{"AKID", "secret"}});
  const std::string unknown = "tab_0123456789abcdef_" + std::string(64, '0');
  const auto bearer = "Bearer " + unknown;
  EXPECT_EQ(asks_with(open, {{"Authorization", bearer}}), kRefused);
  EXPECT_EQ(asks_with(open, {{"X-API-Key", unknown}}), kRefused);
  EXPECT_EQ(asks(open, signed_request("wrong")), kRefused);
}

TEST_P(AccessGates, LeaveTheCredentialsOfOthersAlone) {
  House open(*this, false, {});
  const auto somebody = basic("ann:apple");
  EXPECT_EQ(asks_with(open, {{"Authorization", somebody}}), "anybody *");
  EXPECT_EQ(asks_with(open, {{"Authorization", "Bearer eyJhbGciOi.x.y"}}), "anybody *");
  EXPECT_EQ(asks_with(open, {{"Cookie", "tabella_session=" + std::string(64, '0')}}), "anybody *");
  EXPECT_EQ(asks(open, signed_request("any")), "anybody *");
  House closed(*this, true, {});
  EXPECT_EQ(asks_with(closed, {{"Authorization", "Bearer eyJhbGciOi.x.y"}}), kRefused);
  EXPECT_EQ(asks(closed, signed_request("any")), kRefused);
}

TEST_P(AccessGates, TakeTokensInEveryFormWithTheirScopes) {
  House house(*this, true, {});
  const auto right = secret({"mail:*", "journal:read"});
  const std::string caller = "token ci journal:read mail:*";
  const auto bearer = "Bearer " + right;
  const auto small = "bearer " + right;
  const auto password = basic("token:" + right);
  EXPECT_EQ(asks_with(house, {{"Authorization", bearer}}), caller);
  EXPECT_EQ(asks_with(house, {{"Authorization", small}}), caller);
  EXPECT_EQ(asks_with(house, {{"X-API-Key", right}}), caller);
  EXPECT_EQ(asks_with(house, {{"Authorization", password}}), caller);
  const auto changed = basic("token:" + wrong(right));
  EXPECT_EQ(asks_with(house, {{"Authorization", changed}}), kRefused);
}

TEST_P(AccessGates, TakeUsersByPasswordAndBySession) {
  House house(*this, true, {});
  const auto right = basic("ann:apple");
  const auto off = basic("ann:apples");
  const auto stranger = basic("eve:apple");
  EXPECT_EQ(asks_with(house, {{"Authorization", right}}), "user ann *");
  for (const auto& mistake : {off, stranger, std::string("Basic ???"), std::string("Basic ")})
    EXPECT_EQ(asks_with(house, {{"Authorization", mistake}}), kRefused) << mistake;
  const auto cookie = "tabella_session=" + must(house.sessions.begin("ann"));
  EXPECT_EQ(asks_with(house, {{"Cookie", cookie}}), "user ann *");
  EXPECT_EQ(asks_with(house, {{"Cookie", wrong(cookie)}}), kRefused);
}

TEST_P(AccessGates, TakeSignaturesForAnyService) {
  House house(*this, true, {{"AKID", "secret"}});
  EXPECT_EQ(asks(house, signed_request("secret")), "key AKID *");
  EXPECT_EQ(asks(house, signed_request("another")), kRefused);
  auto changed = signed_request("secret");
  changed.body = "{ }";
  EXPECT_EQ(asks(house, changed), kRefused);
}

TEST_P(AccessGates, PreferWhatWasSentForThisRequestToTheCookie) {
  House house(*this, true, {{"AKID", "secret"}});
  const auto cookie = "tabella_session=" + must(house.sessions.begin("ann"));
  const auto right = secret();
  const auto bearer = "Bearer " + right;
  const auto changed = "Bearer " + wrong(right);
  EXPECT_EQ(asks_with(house, {{"Cookie", cookie}, {"Authorization", bearer}}), "token ci mail:read");
  EXPECT_EQ(asks_with(house, {{"Cookie", cookie}, {"Authorization", changed}}), kRefused);
  auto request = signed_request("wrong");
  request.headers.emplace_back("Cookie", cookie);
  EXPECT_EQ(asks(house, request), kRefused);
}

TEST_P(AccessGates, AskToComeAgainWhileTooManyPasswordsAreChecked) {
  Passwords passwords({{"ann", bcrypt("apple")}});
  House house(*this, passwords, true, {});
  const auto right = basic("ann:apple");
  {
    std::vector<std::shared_ptr<void>> waiting(Passwords::kMostWaiting);
    for (auto& place : waiting) place = wait_in_line(passwords);
    EXPECT_EQ(asks_with(house, {{"Authorization", right}}), "503 Retry-After");
  }
  EXPECT_EQ(asks_with(house, {{"Authorization", right}}), "user ann *");
}

TABELLA_CONTRACT(AccessGates);

class AccessRoutes : public AccessGates {
 protected:
  struct Answer {
    int status = 0;
    std::map<std::string, std::string> headers;
    std::string body;
  };

  static Answer ask(net::Router& router, std::string_view method, std::string_view target,
                    net::HttpHeaders headers = {}, std::string_view body = "") {
    const net::HttpRequest request{
        .method = method, .target = target, .headers = std::move(headers), .body = body};
    net::HttpResponse response;
    boost::asio::io_context context;
    boost::asio::co_spawn(context, router.handle(request, response), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    context.run();
    Answer answer{.status = response.status, .headers = {}, .body = std::move(response.body)};
    std::string_view lines = response.headers;
    while (!lines.empty()) {
      const auto line = lines.substr(0, lines.find("\r\n"));
      answer.headers.emplace(line.substr(0, line.find(": ")), line.substr(line.find(": ") + 2));
      lines.remove_prefix(line.size() + 2);
    }
    return answer;
  }
  static std::string cookie_in(const Answer& answer) {
    const auto& set = answer.headers.at("Set-Cookie");
    return set.substr(0, set.find(';'));
  }
  static void add(net::Router& router, House& house, access::LoginOptions options = {}) {
    access::add_routes(router, house.users, std::move(options));
    router.add({.method = "GET",
                .path = "/x",
                .scope = "toy:read",
                .summary = "answers",
                .handler = [](net::Call& call) -> awaitable<void> {
                  call.answer_json().append(call.caller.name);
                  co_return;
                }});
  }

  const net::HttpHeaders form_ = {{"Content-Type", "application/x-www-form-urlencoded"}};
};

TEST_P(AccessRoutes, LogInByAFormAndOutAgain) {
  House house(*this, true, {});
  net::Router router({}, &house.gate);
  add(router, house);
  EXPECT_EQ(ask(router, "GET", "/x").status, 401);
  const auto page = ask(router, "GET", "/login?next=/x");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("action=\"/login?next=%2Fx\""), std::string::npos) << page.body;
  const auto mistake = ask(router, "POST", "/login?next=/x", form_, "user=ann&password=pear");
  EXPECT_EQ(mistake.status, 401);
  EXPECT_NE(mistake.body.find("the name or the password is wrong"), std::string::npos);
  EXPECT_FALSE(mistake.headers.contains("Set-Cookie"));
  const auto in = ask(router, "POST", "/login?next=/x", form_, "user=ann&password=apple");
  EXPECT_EQ(in.status, 303);
  EXPECT_EQ(in.headers.at("Location"), "/x");
  const auto cookie = cookie_in(in);
  EXPECT_EQ(ask(router, "GET", "/x", {{"Cookie", cookie}}).body, "user ann");
  auto headers = form_;
  headers.emplace_back("Cookie", cookie);
  const auto out = ask(router, "POST", "/logout", headers);
  EXPECT_EQ(out.status, 303);
  EXPECT_EQ(out.headers.at("Location"), "/login");
  EXPECT_EQ(cookie_in(out), "tabella_session=");
  EXPECT_EQ(ask(router, "GET", "/x", {{"Cookie", cookie}}).status, 401);
}

TEST_P(AccessRoutes, LogInByJson) {
  House house(*this, true, {});
  net::Router router({}, &house.gate);
  add(router, house);
  const auto in = ask(router, "POST", "/login", {}, R"({"user":"ann","password":"apple"})");
  EXPECT_EQ(in.status, 204);
  const auto cookie = cookie_in(in);
  EXPECT_EQ(ask(router, "GET", "/x", {{"Cookie", cookie}}).body, "user ann");
  EXPECT_EQ(ask(router, "POST", "/logout", {{"Cookie", cookie}}).status, 204);
  EXPECT_EQ(ask(router, "POST", "/logout").status, 204) << "who is out stays out";
  EXPECT_EQ(ask(router, "POST", "/login", {}, R"({"user":"ann","password":"pear"})").status, 401);
  EXPECT_EQ(ask(router, "POST", "/login", {}, R"({"user":"ann"})").status, 400);
  EXPECT_EQ(ask(router, "POST", "/login", {}, "what").status, 400);
}

TEST_P(AccessRoutes, KeepCookiesToTheirPathAndToEncryptedConnections) {
  House house(*this, true, {});
  net::Router router({.web_path = "/tools"}, &house.gate);
  add(router, house, {.web_path = "/tools", .tls = true});
  const auto in = ask(router, "POST", "/tools/login", form_, "user=ann&password=apple");
  EXPECT_TRUE(in.headers.at("Set-Cookie").ends_with("; Path=/tools; HttpOnly; SameSite=Strict; Secure"));
  EXPECT_EQ(in.headers.at("Location"), "/tools/");
}

TEST_P(AccessRoutes, SayWhereNobodyNeedsToLogIn) {
  House house(*this, false, {});
  net::Router router({}, &house.gate);
  add(router, house);
  EXPECT_EQ(ask(router, "GET", "/login").status, 404);
  EXPECT_EQ(ask(router, "POST", "/login", form_, "user=ann&password=apple").status, 404);
  EXPECT_EQ(ask(router, "POST", "/logout").status, 204);
}

TABELLA_CONTRACT(AccessRoutes);

}  // namespace
}  // namespace tabella::contract

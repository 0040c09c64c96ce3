#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "item/attribute_json.h"
#include "net/server.h"
#include "remote/credentials.h"
#include "remote/endpoint.h"
#include "remote/remote_store.h"
#include "remote/repeat.h"
#include "remote/retry.h"
#include "remote/signer.h"
#include "support/folder.h"

namespace tabella::remote {
namespace {

item::Item item_of(std::string_view json) {
  JsonDocument document;
  return *item::read_item(*document.parse(json));
}

TEST(Endpoints, AreNamedByRegionOrByUrl) {
  const auto aws = parse_endpoint("dynamodb://eu-west-1", "us-east-1");
  ASSERT_TRUE(aws);
  EXPECT_TRUE(aws->aws);
  EXPECT_EQ(aws->items.authority(), "dynamodb.eu-west-1.amazonaws.com");
  EXPECT_EQ(aws->streams.authority(), "streams.dynamodb.eu-west-1.amazonaws.com");
  EXPECT_EQ(aws->region, "eu-west-1");
  EXPECT_EQ(parse_endpoint("dynamodb://cn-north-1", "")->items.host, "dynamodb.cn-north-1.amazonaws.com.cn");
  EXPECT_TRUE(parse_endpoint("https://dynamodb.eu-west-1.amazonaws.com", "us-east-1")->aws);
  EXPECT_EQ(parse_endpoint("https://dynamodb.eu-west-1.amazonaws.com", "")->streams.host,
            "streams.dynamodb.eu-west-1.amazonaws.com");
  const auto own_network =
      parse_endpoint("https://vpce-1a2b-3c4d.dynamodb.eu-west-1.vpce.amazonaws.com", "us-east-1");
  EXPECT_TRUE(own_network->aws);
  EXPECT_EQ(own_network->region, "eu-west-1");
  EXPECT_EQ(parse_endpoint("https://dynamodb-fips.us-gov-west-1.amazonaws.com", "")->region, "us-gov-west-1");
  EXPECT_TRUE(parse_endpoint("https://dynamodb.eu-west-1.api.aws", "")->aws);
  EXPECT_FALSE(parse_endpoint("https://dynamodb.eu-west-1.amazonaws.com.example.org", "")->aws);
  EXPECT_FALSE(parse_endpoint("http://localhost:8000", "us\r\nA: b"));
  const auto local = parse_endpoint("http://localhost:8000", "");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->items.authority(), "localhost:8000");
  EXPECT_EQ(local->streams.authority(), "localhost:8000");
  EXPECT_EQ(local->region, "us-east-1");
  EXPECT_EQ(parse_endpoint("https://[::1]:443/", "eu-west-1")->items.host, "::1");
  for (const auto* wrong : {"", "embedded", "dynamodb://", "dynamodb://EU", "http://", "http://a:b",
                            "http://a:0", "http://host/path", "ftp://host", "http://user@host"})
    EXPECT_FALSE(parse_endpoint(wrong, "")) << wrong;
}

Repeat of_update(std::string update, const char* values, std::string condition = "") {
  store::UpdateItemRequest request{.table = "t", .key = {}, .update = std::move(update)};
  if (values) request.options.attributes.values = item_of(values);
  if (!condition.empty()) request.options.condition = std::move(condition);
  return repeat_of(request);
}

TEST(Repeats, OfUpdatesDependOnWhatTheyDo) {
  EXPECT_EQ(of_update("SET a = :v, b.c = :v REMOVE d", R"({":v":{"N":"1"}})"), Repeat::harmless);
  EXPECT_EQ(of_update("SET a = if_not_exists(a, :v)", R"({":v":{"N":"1"}})"), Repeat::harmless);
  EXPECT_EQ(of_update("ADD tags :v", R"({":v":{"SS":["x"]}})"), Repeat::harmless);
  EXPECT_EQ(of_update("DELETE tags :v", R"({":v":{"SS":["x"]}})"), Repeat::harmless);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"}})"), Repeat::never);
  EXPECT_EQ(of_update("SET n = n + :v", R"({":v":{"N":"1"}})"), Repeat::never);
  EXPECT_EQ(of_update("SET l = list_append(l, :v)", R"({":v":{"L":[]}})"), Repeat::never);
  EXPECT_EQ(of_update("SET a = b", nullptr), Repeat::never);
  EXPECT_EQ(of_update("REMOVE l[0]", nullptr), Repeat::never);
  EXPECT_EQ(of_update("SET l[9] = :v", R"({":v":{"N":"1"}})"), Repeat::never);
  EXPECT_EQ(of_update("SET this is not one", nullptr), Repeat::never);
}

TEST(Repeats, OfConditionalUpdatesDependOnWhatTheConditionSees) {
  EXPECT_EQ(of_update("SET a = :v", R"({":v":{"N":"1"}})", "attribute_exists(a)"), Repeat::guarded);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"},":o":{"S":"me"}})", "o = :o"), Repeat::never);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"},":s":{"N":"4"}})", "n = :s"), Repeat::guarded);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"0"},":s":{"N":"4"}})", "n = :s"), Repeat::never);
  EXPECT_EQ(of_update("SET k = k + :v, d = :n", R"({":v":{"N":"1"},":s":{"N":"4"},":n":{"N":"5"}})",
                      "d = :s AND attribute_not_exists(o)"),
            Repeat::guarded);
  EXPECT_EQ(
      of_update("SET k = k + :v, d = :n", R"({":v":{"N":"1"},":s":{"N":"4"},":n":{"N":"4.0"}})", "d = :s"),
      Repeat::never);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"}})", "attribute_not_exists(n)"), Repeat::guarded);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"},":s":{"N":"4"}})", "n = :s OR attribute_exists(x)"),
            Repeat::never);
  EXPECT_EQ(of_update("ADD n :v", R"({":v":{"N":"1"},":s":{"N":"4"}})", "NOT n = :s"), Repeat::never);
  EXPECT_EQ(of_update("SET l[9] = :v", R"({":v":{"N":"1"}})", "attribute_not_exists(l[9])"), Repeat::never)
      << "it goes to the end of a shorter list, again and again";
  EXPECT_EQ(of_update("REMOVE l[0]", R"({":x":{"N":"1"}})", "l[0] = :x"), Repeat::never)
      << "the next element may be the same";
}

TEST(Repeats, OfOtherWrites) {
  store::PutItemRequest put{.table = "t", .item = {}, .options = {}};
  EXPECT_EQ(repeat_of(put), Repeat::harmless);
  put.options.condition = "attribute_not_exists(pk)";
  EXPECT_EQ(repeat_of(put), Repeat::guarded);
  put.options.return_values = store::ReturnValues::all_old;
  EXPECT_EQ(repeat_of(put), Repeat::never) << "the second time it would return what the first has put";
  const auto statement = [](std::string text) {
    return repeat_of(store::ExecuteStatementRequest{.statement = {.text = std::move(text)}});
  };
  EXPECT_EQ(statement("SELECT * FROM t"), Repeat::read);
  EXPECT_EQ(statement("INSERT INTO t VALUE {'pk':'a'}"), Repeat::guarded);
  EXPECT_EQ(statement("UPDATE t SET n = n + 1 WHERE pk = 'a'"), Repeat::never);
  EXPECT_EQ(statement("SELEKT"), Repeat::never);
  store::UpdateItemRequest legacy{.table = "t", .key = {}};
  legacy.updates = {{.attribute = "n", .action = "ADD", .value = item::encode(item::Value::integer(1))}};
  EXPECT_EQ(repeat_of(legacy), Repeat::never);
  legacy.updates->at(0).action = "PUT";
  EXPECT_EQ(repeat_of(legacy), Repeat::harmless);
}

TEST(Retries, StopWhenTooManyFail) {
  Retry retry({.quota = 20, .cost = 5, .cost_of_timeout = 10});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(retry.draw(retry.cost(false)));
  EXPECT_FALSE(retry.draw(retry.cost(false)));
  for (int i = 0; i < 4; ++i) retry.succeeded(0);
  EXPECT_FALSE(retry.draw(retry.cost(false)));
  retry.succeeded(0);
  EXPECT_TRUE(retry.draw(retry.cost(false)));
  retry.succeeded(5);
  EXPECT_TRUE(retry.draw(retry.cost(false)));
}

TEST(Retries, PauseUnderABoundThatDoubles) {
  const Retry retry(
      {.first_pause = std::chrono::milliseconds{10}, .longest_pause = std::chrono::milliseconds{100}});
  for (int attempt = 2; attempt < 40; ++attempt)
    for (int i = 0; i < 50; ++i) {
      const auto pause = retry.pause_before(attempt);
      EXPECT_GE(pause.count(), 0);
      const auto doubled = std::chrono::milliseconds{10 * (1 << std::min(attempt - 2, 10))};
      EXPECT_LE(pause, std::min(doubled, std::chrono::milliseconds{100}));
    }
}

// Sets variables for a test and puts them back.
class Variables {
 public:
  ~Variables() {
    for (const auto& [name, value] : before_)
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    remember(name);
    setenv(name.c_str(), value.c_str(), 1);
  }
  void unset(const std::string& name) {
    remember(name);
    unsetenv(name.c_str());
  }

 private:
  void remember(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    before_.emplace(name, value ? std::optional<std::string>(value) : std::nullopt);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

class CredentialPlaces : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
                             "AWS_REGION", "AWS_DEFAULT_REGION"})
      variables_.unset(name);
    variables_.set("AWS_SHARED_CREDENTIALS_FILE", (folder_.path() / "credentials").string());
    variables_.set("AWS_CONFIG_FILE", (folder_.path() / "config").string());
  }
  void write(const char* file, std::string_view text) { std::ofstream(folder_.path() / file) << text; }

  test::Folder folder_;
  Variables variables_;
};

TEST_F(CredentialPlaces, InTheEnvironment) {
  EXPECT_EQ(from_environment()->has_value(), false);
  variables_.set("AWS_ACCESS_KEY_ID", "id");
  EXPECT_FALSE(from_environment()) << "half of them";
  variables_.set("AWS_SECRET_ACCESS_KEY", "secret");
  variables_.set("AWS_SESSION_TOKEN", "token");
  const auto found = from_environment();
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->access_key, "id");
  EXPECT_EQ((*found)->session_token, "token");
}

TEST_F(CredentialPlaces, InTheSharedFiles) {
  EXPECT_EQ(from_files("")->has_value(), false);
  EXPECT_FALSE(from_files("nobody")) << "a profile that was asked for is not there";
  write("credentials",
        "# mine\n[default]\naws_access_key_id = id1\naws_secret_access_key=s1 # not a secret\n\n"
        "[work]\naws_access_key_id=id2\naws_secret_access_key=s2\naws_session_token=t2\n[sso]\nsso_session="
        "x\n");
  write("config",
        "[default]\nregion = eu-central-1\ns3 =\n  region = nonsense\n[profile work]\nregion=eu-west-2\n");
  const auto first = from_files("");
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->access_key, "id1");
  EXPECT_EQ((*first)->secret_key, "s1");
  variables_.set("AWS_PROFILE", "work");
  const auto work = from_files("");
  ASSERT_TRUE(work && *work);
  EXPECT_EQ((*work)->session_token, "t2");
  EXPECT_EQ(default_region(""), "eu-west-2");
  EXPECT_EQ(default_region("default"), "eu-central-1");
  EXPECT_NE(from_files("sso").error().message.find("not supported"), std::string::npos);
  variables_.set("AWS_PROFILE", "");
  write("config", "[default]\nsso_session = x\n");
  EXPECT_FALSE(from_files(""));
  EXPECT_EQ(from_files("", true)->has_value(), false) << "nobody asked for it, and any will do";
  variables_.set("AWS_REGION", "ap-south-1");
  EXPECT_EQ(default_region(""), "ap-south-1");
}

// The container's endpoint, which gives what lasts ten minutes, until it fails.
TEST_F(CredentialPlaces, AreAskedAgainBeforeTheirTimeIsOver) {
  ManualClock clock(TimePoint(std::chrono::seconds{1'700'000'000}));
  std::atomic<int> asked = 0;
  std::atomic<bool> fails = false;
  net::IoThreads threads(1);
  net::HttpServer endpoint(
      threads, {},
      [&](const net::HttpRequest& request, net::HttpResponse& response) -> boost::asio::awaitable<void> {
        ++asked;
        if (fails || request.header("authorization") != "token") response.status = 500;
        const auto end = std::chrono::system_clock::to_time_t(clock.now() + std::chrono::minutes{10});
        std::tm tm{};
        gmtime_r(&end, &tm);
        char time[40];
        std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &tm);
        response.body =
            fmt::format(R"({{"AccessKeyId":"id{}","SecretAccessKey":"s","Token":"t","Expiration":"{}"}})",
                        asked.load(), time);
        co_return;
      });
  variables_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", fmt::format("http://127.0.0.1:{}/", endpoint.port()));
  variables_.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token");
  CredentialChain chain({}, clock);
  const auto get = [&]() -> std::string {
    const auto found =
        boost::asio::co_spawn(threads.at(0),
                              chain.get(std::chrono::steady_clock::now() + std::chrono::seconds{10}),
                              boost::asio::use_future)
            .get();
    return found ? (*found)->access_key : found.error().message;
  };
  EXPECT_EQ(get(), "id1");
  EXPECT_EQ(get(), "id1");
  clock.advance(std::chrono::minutes{6});
  EXPECT_EQ(get(), "id2") << "less than five minutes are left";
  clock.advance(std::chrono::minutes{6});
  fails = true;
  EXPECT_EQ(get(), "id2") << "they are still good";
  EXPECT_EQ(get(), "id2");
  EXPECT_EQ(asked, 3) << "and nobody asks all the time";
  clock.advance(std::chrono::minutes{4});
  EXPECT_NE(get().find("answered 500"), std::string::npos);
  EXPECT_NE(get().find("answered 500"), std::string::npos);
  EXPECT_EQ(asked, 4) << "not once for each";
  fails = false;
  clock.advance(std::chrono::minutes{1});
  EXPECT_EQ(get(), "id5");
  clock.advance(std::chrono::minutes{6});
  endpoint.stop(std::chrono::milliseconds{0});
}

TEST_F(CredentialPlaces, AreRefusedWithALineEndInThem) {
  const ManualClock clock;
  CredentialChain chain({.given = Credentials{.access_key = "id\n", .secret_key = "s"}}, clock);
  net::IoThreads threads(1);
  const auto found = boost::asio::co_spawn(threads.at(0), chain.get(std::chrono::steady_clock::now()),
                                           boost::asio::use_future)
                         .get();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("line end"), std::string::npos);
}

// An endpoint that says yes to everything, and nothing else.
TEST(Answers, ThatLackWhatTheyMustHoldAreErrors) {
  net::IoThreads threads(1);
  net::HttpServer endpoint(
      threads, {}, [](const net::HttpRequest&, net::HttpResponse& response) -> boost::asio::awaitable<void> {
        response.body = "{}";
        co_return;
      });
  RemoteOptions options;
  options.calls.endpoint = *parse_endpoint(fmt::format("http://localhost:{}", endpoint.port()), "");
  options.calls.credentials.given = Credentials{.access_key = "id", .secret_key = "s"};
  options.calls.retry.attempts = 2;
  const SystemClock clock;
  RemoteStore store(options, clock);
  const auto code = [&](auto call) {
    const auto result = boost::asio::co_spawn(threads.at(0), std::move(call), boost::asio::use_future).get();
    return result ? "ok" : result.error().message;
  };
  const std::string wrong = "the answer is not DynamoDB's";
  EXPECT_TRUE(code(store.get_records({.iterator = "i"})).starts_with(wrong))
      << "it would be the end of the shard";
  EXPECT_TRUE(code(store.query({})).starts_with(wrong));
  EXPECT_TRUE(code(store.list_tables({})).starts_with(wrong));
  EXPECT_EQ(code(store.get_item({.table = "t", .key = {}})), "ok") << "there is no such item";
  EXPECT_TRUE(code(store.ping(std::chrono::seconds{1})).starts_with(wrong));
  endpoint.stop(std::chrono::milliseconds{0});
}

TEST(Health, IsNotWellWithoutCredentialsOrEndpoint) {
  Variables variables;
  variables.set("HOME", "/nonexistent");
  variables.set("AWS_EC2_METADATA_DISABLED", "true");
  RemoteOptions options;
  options.calls.endpoint = *parse_endpoint("http://127.0.0.1:1", "");
  const SystemClock clock;
  RemoteStore store(options, clock);
  net::IoThreads threads(1);
  const auto answered = boost::asio::co_spawn(threads.at(0), store.ping(std::chrono::milliseconds{300}),
                                              boost::asio::use_future)
                            .get();
  EXPECT_FALSE(answered);
}

TEST(Signing, FollowsTheServersClock) {
  const ManualClock clock(TimePoint(std::chrono::seconds{1'700'000'000}));  // 2023-11-14T22:13:20Z
  Signer signer("us-east-1", clock);
  const auto credentials =
      std::make_shared<const Credentials>(Credentials{.access_key = "id", .secret_key = "secret"});
  std::string headers;
  signer.append_headers(headers, credentials, "host", "DynamoDB_20120810.GetItem", "{}");
  EXPECT_NE(headers.find("X-Amz-Date: 20231114T221320Z"), std::string::npos) << headers;
  const auto signed_at = clock.now();
  EXPECT_FALSE(signer.correct_by("Tue, 14 Nov 2023 22:14:20 GMT", signed_at)) << "a minute is nothing";
  EXPECT_FALSE(signer.correct_by("nonsense", signed_at));
  EXPECT_FALSE(signer.correct_by("Wed, 15 Nov 9999 01:13:20 GMT", signed_at));
  EXPECT_TRUE(signer.correct_by("Wed, 15 Nov 2023 01:13:20 GMT", signed_at));
  EXPECT_TRUE(signer.correct_by("Wed, 15 Nov 2023 01:13:20 GMT", signed_at))
      << "one that was signed before it was known";
  headers.clear();
  signer.append_headers(headers, credentials, "host", "DynamoDB_20120810.GetItem", "{}");
  EXPECT_NE(headers.find("X-Amz-Date: 20231115T011320Z"), std::string::npos) << headers;
  EXPECT_NE(headers.find("Credential=id/20231115/us-east-1/dynamodb/aws4_request"), std::string::npos);
  EXPECT_FALSE(signer.correct_by("Wed, 15 Nov 2023 01:13:20 GMT", clock.now() + std::chrono::hours{3}))
      << "it is right now";
}

}  // namespace
}  // namespace tabella::remote

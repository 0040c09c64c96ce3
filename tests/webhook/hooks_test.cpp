// Webhooks over the embedded engine, with a schedule that runs and a program that listens.
#include "webhook/hooks.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "access/secrets.h"
#include "engine/engine.h"
#include "support/answering_server.h"
#include "support/folder.h"
#include "support/own_thread.h"
#include "support/run.h"
#include "webhook/signature.h"

namespace tabella::webhook {
namespace {

using std::chrono::milliseconds;
using test::AnsweringServer;
using test::run;

std::string answer(int status) {
  return fmt::format("HTTP/1.1 {} x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status);
}

struct Received {
  explicit Received(const std::string& request) : text(request) {
    net::RequestHead head;
    EXPECT_EQ(net::parse_head(text, head), net::HeadResult::complete);
    const auto header = [&](std::string_view name) { return std::string(head.request.header(name)); };
    id = header("webhook-id");
    timestamp = header("webhook-timestamp");
    signature = header("webhook-signature");
    body = text.substr(head.size);
  }
  bool is_signed_by(std::string_view secret) const {
    return verify(secret, {.id = id, .timestamp = timestamp, .body = body}, signature,
                  std::chrono::system_clock::now());
  }

  std::string text, id, timestamp, signature, body;
};

class WebhookHooks : public testing::Test {
 protected:
  WebhookHooks() {
    const auto made = run(store::prepare_tables(
        engine_, {schedule::plan("timers"), store::Settings::plan("settings")}, store::Missing::create));
    EXPECT_TRUE(made);
  }

  Hooks& begin(std::vector<Hook> fixed = {}, net::AddressRules::Options rules = {}) {
    auto schedule =
        std::make_unique<schedule::Schedule>(engine_, clock_,
                                             schedule::Schedule::Options{.table = "timers",
                                                                         .poll = milliseconds{20},
                                                                         .first_retry = milliseconds{20},
                                                                         .longest_retry = milliseconds{20}});
    outbound_.emplace(net::Outbound::Options{.rules = std::move(rules)});
    hooks_ = std::make_unique<Hooks>(
        "test",
        Hooks::Parts{.settings = settings_,
                     .secrets = secrets_,
                     .schedule = *schedule,
                     .outbound = *outbound_,
                     .clock = clock_},
        std::move(fixed), [this](const Hook& hook, const std::string& event) { return render(hook, event); });
    running_ = std::make_unique<test::OwnThread<schedule::Schedule>>(std::move(schedule));
    return *hooks_;
  }

  Hook add(std::string url, std::string secret = "", std::string query = "") {
    auto added =
        run(hooks_->add({.url = std::move(url), .secret = std::move(secret), .query = std::move(query)}));
    EXPECT_TRUE(added) << added.error().message;
    return added.value_or(Hook{});
  }
  void announce(const std::string& event) { EXPECT_TRUE(run(hooks_->announce(event))); }

  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 500; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(milliseconds{10});
    }
    return false;
  }
  // "delivered/failed".
  std::string counts() const {
    metrics::Exposition out;
    hooks_->write_metrics(out);
    const auto text = out.text();
    const auto value = [&](std::string_view name) {
      const auto at = text.find(fmt::format("\n{} ", name)) + name.size() + 2;
      return text.substr(at, text.find('\n', at) - at);
    };
    return value("tabella_test_webhooks_total") + "/" + value("tabella_test_webhooks_failed_total");
  }
  // That the counts become these, and stay so.
  bool counts_end_at(const std::string& expected) {
    if (!eventually([&] { return counts() == expected; })) return false;
    std::this_thread::sleep_for(milliseconds{150});
    return counts() == expected;
  }

  std::atomic<int> missing_{0};  // how often an event is not there yet
  test::Folder folder_;
  SystemClock clock_;
  engine::Engine engine_{{.folder = folder_.path() / "data", .durability = engine::Durability::relaxed},
                         clock_};
  store::Settings settings_{engine_, "settings"};
  access::Secrets secrets_ = access::Secrets::from_file(folder_.path() / "key", true);
  std::optional<net::Outbound> outbound_;
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<test::OwnThread<schedule::Schedule>> running_;  // ends before all that it uses

 private:
  // Events are for all, or for the hooks that ask for them.
  store::Async<Rendered> render(const Hook& hook, const std::string& event) {
    if (!hook.query.empty() && hook.query != event) co_return NotForThisHook{};
    if (missing_-- > 0) co_return NotThereYet{};
    co_return Body{fmt::format(R"({{"event":"{}"}})", event)};
  }
};

TEST_F(WebhookHooks, AreToldOfEventsAndSignThem) {
  const AnsweringServer server([](const std::string&) { return answer(204); });
  begin({{.id = "option-1", .url = server.url("/fixed"), .secret = "whsec_a2V5"}});
  add(server.url("/added"), "hidden secret");
  add(server.url("/unsigned"), "", "e1");
  add(server.url("/other"), "", "e2");
  announce("e1");
  ASSERT_TRUE(eventually([&] { return server.requests().size() == 3; }));
  EXPECT_TRUE(counts_end_at("3/0"));
  for (const auto& request : server.requests()) {
    const Received received(request);
    EXPECT_EQ(received.id, "e1");
    EXPECT_EQ(received.body, R"({"event":"e1"})");
    const auto path = request.substr(5, request.find(" HTTP") - 5);
    EXPECT_EQ(received.is_signed_by("whsec_a2V5"), path == "/fixed") << path;
    EXPECT_EQ(received.is_signed_by("hidden secret"), path == "/added") << path;
    EXPECT_EQ(received.signature.empty(), path == "/unsigned") << path;
  }
}

TEST_F(WebhookHooks, KeepTheirSecretsSealed) {
  const AnsweringServer server([](const std::string&) { return answer(200); });
  begin();
  const auto hook = add(server.url(), "hidden secret");
  EXPECT_NE(hook.secret, "hidden secret");
  const auto rows = run(settings_.all("webhook"));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(hook.id).find("hidden"), std::string::npos);
  EXPECT_TRUE(run(hooks_->remove(hook.id)).value());
  EXPECT_FALSE(run(hooks_->remove(hook.id)).value());

  // As versions before this one kept them.
  EXPECT_TRUE(
      run(settings_.put("webhook", "old", fmt::format(R"({{"url":"{}","secret":"plain"}})", server.url()))));
  announce("e");
  ASSERT_TRUE(eventually([&] { return server.requests().size() == 1; }));
  EXPECT_TRUE(Received(server.last()).is_signed_by("plain"));
}

TEST_F(WebhookHooks, AreToldAgainUntilTheyTakeIt) {
  std::atomic<int> failures = 2;
  const AnsweringServer server([&](const std::string&) { return answer(failures-- > 0 ? 500 : 200); });
  begin();
  add(server.url());
  missing_ = 2;
  announce("e");
  EXPECT_TRUE(counts_end_at("1/2"));
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(WebhookHooks, AreGivenUpInTheEnd) {
  const AnsweringServer server([&](const std::string&) { return answer(302); });
  begin();
  add(server.url());
  announce("e");
  EXPECT_TRUE(counts_end_at("0/12"));
}

TEST_F(WebhookHooks, AreGivenUpAtOnceWhereTheyAreGone) {
  const AnsweringServer server([&](const std::string&) { return answer(410); });
  begin();
  add(server.url());
  announce("e");
  EXPECT_TRUE(counts_end_at("0/1"));
}

TEST_F(WebhookHooks, OfUsersAreOnlyWhereTheyMayBe) {
  const AnsweringServer server([&](const std::string&) { return answer(200); });
  begin({{.id = "option-1", .url = server.url("/fixed")}}, {.allowed = {}, .loopback = false});
  const auto refused = run(hooks_->add({.url = server.url()}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, store::ErrorCode::access_denied);
  EXPECT_NE(refused.error().message.find("--outbound-allow 127.0.0.1"), std::string::npos);
  EXPECT_EQ(run(hooks_->add({.url = "nonsense"})).error().code, store::ErrorCode::validation);
  add(server.url("/added", "localhost"));  // which is known only when it is looked up
  announce("e");
  EXPECT_TRUE(counts_end_at("1/1"));
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_TRUE(server.last().starts_with("POST /fixed "));
}

TEST_F(WebhookHooks, AreToldOnceMoreWhenAsked) {
  const AnsweringServer server([&](const std::string&) { return answer(200); });
  begin();
  const auto hook = add(server.url());
  announce("e");
  EXPECT_TRUE(eventually([&] { return counts() == "1/0"; }));
  EXPECT_TRUE(run(hooks_->replay("e", hook.id)).value());
  EXPECT_TRUE(counts_end_at("2/0"));
  EXPECT_FALSE(run(hooks_->replay("e", "nobody")).value());
}

}  // namespace
}  // namespace tabella::webhook

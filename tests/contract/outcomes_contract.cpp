#include "store/outcomes.h"

#include <atomic>
#include <future>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "contract/contract.h"
#include "store/pause.h"

namespace tabella::contract {
namespace {

using std::chrono::milliseconds;
using store::Async;
using store::ErrorCode;
using store::Outcomes;

class IdempotencyKeys : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (IsSkipped()) return;
    const auto made =
        run(store::prepare_tables(store(), {Outcomes::plan("outcomes")}, store::Missing::create));
    ASSERT_TRUE(made) << made.error().message;
  }

  static constexpr milliseconds kLease{1500};
  Outcomes outcomes() { return {store(), clock(), {.table = "outcomes", .lease = kLease}}; }

  static Outcomes::Request request(std::string key, std::string fingerprint = "f") {
    return {.scope = "test", .key = std::move(key), .fingerprint = std::move(fingerprint)};
  }
  // Answers, and counts.
  Outcomes::Work says(std::string text) {
    return [this, text](bool again) -> Async<std::string> {
      ++done_;
      again_ = again;
      co_return text;
    };
  }
  // Answers once it is let.
  Outcomes::Work says_when_let(std::string text) {
    return [this, text](bool again) -> Async<std::string> {
      ++done_;
      again_ = again;
      while (!let_) co_await store::pause_for(milliseconds{5});
      co_return text;
    };
  }
  Outcomes::Work fails(ErrorCode code) {
    return [this, code](bool) -> Async<std::string> {
      ++done_;
      co_return store::fail(code, "it failed");
    };
  }

  // "text", "text again" if it was there already, or what went wrong.
  static std::string said(const store::Result<Outcomes::Answer>& answer) {
    if (!answer) return answer.error().message;
    return answer->text + (answer->repeated ? " again" : "");
  }
  std::string ask(Outcomes::Request request, Outcomes::Work work) {
    auto keys = outcomes();
    return said(run(keys.once(std::move(request), std::move(work))));
  }
  // On a thread of its own, as in a process of its own.
  std::future<std::string> ask_beside(Outcomes::Request request, Outcomes::Work work) {
    return std::async(std::launch::async, [this, request = std::move(request), work = std::move(work)] {
      return ask(request, work);
    });
  }
  // Time goes by, on stores whose time stands still unless it is moved.
  bool eventually_over_time(const std::function<bool()>& condition) {
    return eventually([&] {
      advance(milliseconds{20});
      return condition();
    });
  }
  static bool is_ready(std::future<std::string>& answer) {
    return answer.wait_for(milliseconds{0}) == std::future_status::ready;
  }

  std::atomic<int> done_ = 0;
  std::atomic<bool> again_ = false;
  std::atomic<bool> let_ = false;
};

TEST_P(IdempotencyKeys, HaveOneAnswerEach) {
  EXPECT_EQ(ask(request("a"), says("one")), "one");
  EXPECT_EQ(ask(request("a"), says("two")), "one again");
  EXPECT_EQ(ask(request("b"), says("three")), "three");
  auto elsewhere = request("a");
  elsewhere.scope = "elsewhere";
  EXPECT_EQ(ask(elsewhere, says("four")), "four");
  restart();
  EXPECT_EQ(ask(request("a"), says("five")), "one again");
  EXPECT_EQ(done_, 3);
  EXPECT_FALSE(again_);
}

TEST_P(IdempotencyKeys, KeepAnyBytesAndNone) {
  const std::string bytes("\0\xff\n", 3);
  EXPECT_EQ(ask(request("bytes"), says(bytes)), bytes);
  EXPECT_EQ(ask(request("bytes"), says("")), bytes + " again");
  EXPECT_EQ(ask(request("none"), says("")), "");
  EXPECT_EQ(ask(request("none"), says("x")), " again");
}

TEST_P(IdempotencyKeys, WaitForTheFirstWhileItRuns) {
  auto first = ask_beside(request("a"), says_when_let("one"));
  ASSERT_TRUE(eventually([&] { return done_ == 1; }));
  auto second = ask_beside(request("a"), says("two"));
  auto third = ask_beside(request("a"), says("three"));
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_FALSE(is_ready(second));
  let_ = true;
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(second.get(), "one again");
  EXPECT_EQ(third.get(), "one again");
  EXPECT_EQ(done_, 1);
}

TEST_P(IdempotencyKeys, StopWaitingAtTheDeadline) {
  auto first = ask_beside(request("a"), says_when_let("one"));
  ASSERT_TRUE(eventually([&] { return done_ == 1; }));
  auto soon = request("a");
  soon.deadline = std::chrono::steady_clock::now() + milliseconds{30};
  EXPECT_EQ(ask(soon, says("two")), "a request with the same idempotency key is still running");
  let_ = true;
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(done_, 1);
}

TEST_P(IdempotencyKeys, BelongToOneRequest) {
  EXPECT_EQ(ask(request("a", "this"), says("one")), "one");
  auto keys = outcomes();
  const auto other = run(keys.once(request("a", "that"), says("two")));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::idempotent_parameter_mismatch);
  // Also while the first still runs.
  auto first = ask_beside(request("b", "this"), says_when_let("three"));
  ASSERT_TRUE(eventually([&] { return done_ == 2; }));
  EXPECT_FALSE(run(keys.once(request("b", "that"), says("four"))));
  let_ = true;
  EXPECT_EQ(first.get(), "three");
  EXPECT_EQ(done_, 2);
}

TEST_P(IdempotencyKeys, KeepErrorsOfTheRequestItself) {
  auto keys = outcomes();
  for (int i = 0; i < 2; ++i) {
    const auto answer = run(keys.once(request("a"), fails(ErrorCode::validation)));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::validation);
    EXPECT_EQ(answer.error().message, "it failed");
  }
  EXPECT_EQ(done_, 1);
}

TEST_P(IdempotencyKeys, AreFreeAgainAfterAnErrorThatMayPass) {
  EXPECT_EQ(ask(request("a"), fails(ErrorCode::unavailable)), "it failed");
  EXPECT_EQ(ask(request("a"), [](bool) -> Async<std::string> { throw std::runtime_error("it threw"); }),
            "it threw");
  EXPECT_EQ(ask(request("a", "other"), says("x")), "the idempotency key was used for another request before");
  EXPECT_EQ(ask(request("a"), says("one")), "one");
  EXPECT_TRUE(again_) << "the work that failed may have done something";
  EXPECT_EQ(ask(request("a"), says("two")), "one again");
}

TEST_P(IdempotencyKeys, AreKeptHoweverLongTheWorkTakes) {
  auto first = ask_beside(request("a"), says_when_let("one"));
  ASSERT_TRUE(eventually([&] { return done_ == 1; }));
  auto second = ask_beside(request("a"), says("two"));
  const auto end = clock().now() + 2 * kLease;
  EXPECT_TRUE(eventually([&] {
    advance(milliseconds{15});
    std::this_thread::sleep_for(milliseconds{15});
    return clock().now() > end;
  }));
  let_ = true;
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(second.get(), "one again");
  EXPECT_EQ(done_, 1);
}

TEST_P(IdempotencyKeys, AreTakenOverFromOneThatDied) {
  auto keys = outcomes();
  {
    boost::asio::io_context dies;
    boost::asio::co_spawn(dies, keys.once(request("a"), says_when_let("never")),
                          [](const std::exception_ptr&, const store::Result<Outcomes::Answer>&) {});
    ASSERT_TRUE(eventually([&] {
      dies.restart();
      dies.run_for(milliseconds{10});
      return done_ == 1;
    }));
  }
  auto second = ask_beside(request("a"), says("two"));
  auto third = ask_beside(request("a"), says("two"));
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(eventually_over_time([&] { return is_ready(second) && is_ready(third); }));
  const auto answers = second.get() + ", " + third.get();
  EXPECT_TRUE(answers == "two, two again" || answers == "two again, two") << answers;
  EXPECT_EQ(done_, 2);
  EXPECT_TRUE(again_);
}

TEST_P(IdempotencyKeys, DoTheWorkOnceForManyAtATime) {
  std::vector<std::future<std::string>> all;
  for (int i = 0; i < 8; ++i) all.push_back(ask_beside(request("a"), says("one")));
  int first = 0;
  for (auto& each : all) first += each.get() == "one" ? 1 : 0;
  EXPECT_EQ(first, 1);
  EXPECT_EQ(done_, 1);
}

TEST_P(IdempotencyKeys, KeepNoAnswerThatDoesNotFit) {
  auto keys = outcomes();
  for (int i = 0; i < 2; ++i) {
    const auto answer = run(keys.once(request("a"), says(std::string(Outcomes::kMostBytes + 1, 'x'))));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::limit_exceeded);
  }
  EXPECT_EQ(ask(request("b"), says(std::string(Outcomes::kMostBytes, 'x'))).size(), Outcomes::kMostBytes);
  EXPECT_EQ(done_, 2);
}

TEST_P(IdempotencyKeys, AreForgottenInTheEnd) {
  EXPECT_EQ(ask(request("a"), says("one")), "one");
  if (!advance(std::chrono::hours{23})) GTEST_SKIP() << "its time cannot be moved";
  EXPECT_EQ(ask(request("a"), says("two")), "one again");
  advance(std::chrono::hours{2});
  EXPECT_EQ(ask(request("a", "another"), says("three")), "three");
  EXPECT_FALSE(again_);
}

TABELLA_CONTRACT(IdempotencyKeys);

}  // namespace
}  // namespace tabella::contract

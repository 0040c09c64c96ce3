#include "store/turns.h"

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace tabella::store {
namespace {

namespace asio = boost::asio;

class TurnsTest : public testing::Test {
 protected:
  // Notes its name once it is its turn, and keeps the turn until it is told to end.
  asio::awaitable<void> take(char name) {
    held_.emplace(co_await turns_.take());
    had_turn_ += name;
  }
  void start(asio::io_context& on, char name) {
    asio::co_spawn(on, take(name), asio::detached);
    run(on);
  }
  // As far as it goes without waiting.
  static void run(asio::io_context& context) {
    context.restart();
    context.poll();
  }
  void end_turn() {
    const auto ending = std::move(*held_);
    held_.reset();
  }

  Turns turns_;
  std::string had_turn_;
  asio::io_context context_;
  std::optional<Turns::Turn> held_;
};

TEST_F(TurnsTest, ComeInTheOrderInWhichTheyWereAskedFor) {
  for (const char name : {'a', 'b', 'c'}) start(context_, name);
  EXPECT_EQ(had_turn_, "a");
  end_turn();
  // Whoever comes now is behind those who wait.
  start(context_, 'd');
  EXPECT_EQ(had_turn_, "ab");
  for (const auto* expected : {"abc", "abcd"}) {
    end_turn();
    run(context_);
    EXPECT_EQ(had_turn_, expected);
  }
  end_turn();
  start(context_, 'e');
  EXPECT_EQ(had_turn_, "abcde");
}

TEST_F(TurnsTest, KeepTheThreadOfWhoWaitsRunning) {
  start(context_, 'a');
  asio::io_context other;
  start(other, 'b');
  EXPECT_FALSE(other.stopped());
  end_turn();
  other.run();  // returns once it has had its turn
  EXPECT_EQ(had_turn_, "ab");
}

TEST_F(TurnsTest, PassOverOneWhoIsGone) {
  start(context_, 'a');
  auto gone = std::make_unique<asio::io_context>();
  start(*gone, 'b');
  start(context_, 'c');
  gone.reset();
  end_turn();
  run(context_);
  EXPECT_EQ(had_turn_, "ac");
}

TEST_F(TurnsTest, AreGivenBackByOneWhoGoesBeforeHeKnows) {
  start(context_, 'a');
  auto gone = std::make_unique<asio::io_context>();
  start(*gone, 'b');
  start(context_, 'c');
  end_turn();
  gone.reset();
  run(context_);
  EXPECT_EQ(had_turn_, "ac");
}

TEST_F(TurnsTest, AreNotWaitedForByOneWhoIsCancelled) {
  start(context_, 'a');
  asio::cancellation_signal cancel;
  asio::co_spawn(context_, take('b'), asio::bind_cancellation_slot(cancel.slot(), asio::detached));
  run(context_);
  start(context_, 'c');
  cancel.emit(asio::cancellation_type::terminal);
  run(context_);
  end_turn();
  run(context_);
  EXPECT_EQ(had_turn_, "ac");
}

}  // namespace
}  // namespace tabella::store

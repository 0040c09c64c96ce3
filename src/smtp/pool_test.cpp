#include "smtp/pool.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "support/scripted_smtp.h"

namespace tabella::smtp {
namespace {

using namespace test;
using namespace std::chrono_literals;

// Delivers over a pool, and says what became of it.
class SmtpPool : public testing::Test {
 protected:
  Delivery deliver_to(const Destination& destination, const Letter& letter = kLetter) {
    // A pool that rests keeps the loop running: not until it has nothing left, but until this is done.
    auto result = asio::co_spawn(context_, pool_.deliver(destination, letter), asio::use_future);
    context_.restart();
    while (result.wait_for(0s) != std::future_status::ready) context_.run_one();
    return result.get();
  }
  void close() {
    auto closed = asio::co_spawn(context_, pool_.close(), asio::use_future);
    context_.restart();
    context_.run();
    closed.get();
  }

  asio::io_context context_;
  const Trust trust_;
  ConnectionPool pool_{
      context_.get_executor(),
      trust_,
      {.timeouts = short_ones(), .max_idle_per_destination = 1, .max_letters = 3, .idle = 200ms}};
};

TEST_F(SmtpPool, UsesAConnectionAgainAndTakesItsLeaveAtTheEnd) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    talk.take_letter();
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(deliver_to(server.destination()).recipients.at(0).kind, Kind::delivered);
  EXPECT_EQ(pool_.idle(), 1u);
  close();
  EXPECT_EQ(pool_.idle(), 0u);
}

TEST_F(SmtpPool, TakesItsLeaveAfterSoManyLetters) {
  const auto script = [](Talk& talk) {
    talk.greet();
    for (int i = 0; i < 3; ++i) talk.take_letter();
    EXPECT_EQ(talk.hear(), "QUIT");
  };
  ScriptedServer server({script, script});
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(deliver_to(server.destination()).recipients.at(0).kind, Kind::delivered);
  EXPECT_EQ(pool_.idle(), 0u);
}

TEST_F(SmtpPool, TakesItsLeaveWhenItHasRestedTooLong) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  deliver_to(server.destination());
  EXPECT_EQ(pool_.idle(), 1u);
  context_.restart();
  context_.run();
  EXPECT_EQ(pool_.idle(), 0u);
}

TEST_F(SmtpPool, SendsOnceMoreWhatAConnectionThatRestedDidNotTake) {
  const std::vector<ScriptedServer::Script> ends = {
      [](Talk&) {},
      [](Talk& talk) { talk.hear(); },
      [](Talk& talk) {
        talk.hear();
        talk.reset();
      },
      [](Talk& talk) {
        talk.hear();
        talk.say("421 4.4.2 idle too long\r\n");
      },
  };
  for (const auto& end : ends) {
    ScriptedServer server({[&](Talk& talk) {
                             talk.greet();
                             talk.take_letter();
                             end(talk);
                           },
                           [](Talk& talk) {
                             talk.greet();
                             talk.take_letter("250 second\r\n");
                           }});
    deliver_to(server.destination());
    expect(deliver_to(server.destination()).recipients.at(0), Kind::delivered, Step::content, "250 second");
  }
}

TEST_F(SmtpPool, DoesNotRepeatWhatWasAcceptedInPart) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    talk.hear();
    talk.say("250 ok\r\n");
    talk.hear();
  });
  deliver_to(server.destination());
  expect(deliver_to(server.destination()).recipients.at(0), Kind::deferred, Step::recipient, kClosed);
  EXPECT_EQ(pool_.idle(), 0u);
}

TEST_F(SmtpPool, DoesNotLendTheConnectionOfAnotherLogin) {
  const auto script = [](Talk& talk) {
    talk.greet("250-AUTH PLAIN\r\n");
    talk.hear();
    talk.say("235 welcome\r\n");
    talk.take_letter();
  };
  ScriptedServer server({script, [](Talk& talk) {
                           talk.greet("250-AUTH PLAIN\r\n");
                           talk.hear();
                           talk.say("535 no\r\n");
                         }});
  auto destination = server.destination();
  destination.user = "me";
  destination.password = "right";
  EXPECT_EQ(deliver_to(destination).recipients.at(0).kind, Kind::delivered);
  destination.password = "wrong";
  expect(deliver_to(destination).recipients.at(0), Kind::deferred, Step::login, "535 no");
}

TEST_F(SmtpPool, GoesInTheClearWherePreferredTlsFails) {
  ScriptedServer server({[](Talk& talk) {
                           talk.greet("250-STARTTLS\r\n");
                           talk.hear();
                           talk.say("220 go on\r\n");
                           talk.say("this is no handshake\r\n");
                         },
                         [](Talk& talk) {
                           talk.greet("250-STARTTLS\r\n");
                           talk.take_letter();
                           talk.take_letter();
                         }});
  const auto delivery = deliver_to(server.destination());
  EXPECT_EQ(delivery.recipients.at(0).kind, Kind::delivered);
  EXPECT_FALSE(delivery.secure);
  EXPECT_EQ(deliver_to(server.destination()).recipients.at(0).kind, Kind::delivered);
}

}  // namespace
}  // namespace tabella::smtp

#include "smtp/connection.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "net/address_rules.h"
#include "net/transport.h"
#include "smtp/client.h"
#include "smtp/data.h"
#include "support/folder.h"
#include "support/scripted_smtp.h"

namespace tabella::smtp {
namespace {

using namespace test;
using namespace std::chrono_literals;
using asio::awaitable;

// The outcome of opening is that of all recipients, as the pool sees it.
awaitable<Delivery> deliver_once(ClientConnection& connection, const Letter& letter) {
  const auto opened = co_await connection.open();
  if (!opened) co_return Delivery{.recipients = {letter.to.size(), opened.error()}};
  auto delivery = co_await connection.deliver(letter);
  co_await connection.quit();
  co_return delivery;
}

Delivery deliver(Destination destination, const Letter& letter,
                 const net::TlsTrust& trust = net::TlsTrust::anyone()) {
  asio::io_context context;
  ClientConnection connection(context.get_executor(), std::move(destination), trust, short_ones());
  return run_alone(context, deliver_once(connection, letter));
}

Outcome outcome_of(const ScriptedServer::Script& script, const Letter& letter = kLetter) {
  ScriptedServer server(script);
  return deliver(server.destination(), letter).recipients.at(0);
}

TEST(SmtpOutcome, OfALetterThatWasTakenIsWhatTheServerSaid) {
  const auto outcome = outcome_of([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  expect(outcome, Kind::delivered, Step::content, "250 2.0.0 Ok: queued as 4F2B");
  EXPECT_EQ(outcome.code, 250);
  EXPECT_EQ(outcome.enhanced, "2.0.0");
}

TEST(SmtpOutcome, IsNotChangedByAQuitThatFails) {
  const auto outcome = outcome_of([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    talk.reset();
  });
  expect(outcome, Kind::delivered, Step::content, "250 2.0.0 Ok: queued as 4F2B");
}

TEST(SmtpOutcome, OfAServerThatIsNotThereIsDeferred) {
  Destination nowhere{.host = "127.0.0.1", .port = 1};
  expect(deliver(nowhere, kLetter).recipients.at(0), Kind::deferred, Step::connect,
         "cannot connect to 127.0.0.1:1: Connection refused");
}

TEST(SmtpOutcome, OfAServerThatTheRulesForbidIsRefused) {
  const auto rules = net::AddressRules::make({.loopback = false});
  Destination inside{.host = "127.0.0.1", .port = 1, .rules = &*rules};
  const auto outcome = deliver(inside, kLetter).recipients.at(0);
  EXPECT_EQ(outcome.kind, Kind::refused);
  EXPECT_EQ(outcome.step, Step::connect);
}

TEST(SmtpOutcome, OfEndpointsThatWereGivenIsThatOfTheFirstThatAnswers) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    talk.take_letter();
  });
  auto destination = server.destination();
  const auto loopback = asio::ip::address_v4::loopback();
  destination.host = "mx.nowhere.test";
  destination.endpoints = {{loopback, 1}, {loopback, destination.port}};
  const auto delivery = deliver(destination, kLetter);
  EXPECT_EQ(delivery.recipients.at(0).kind, Kind::delivered);
  EXPECT_EQ(delivery.peer, "127.0.0.1");
}

TEST(SmtpOutcome, OfARefusedGreetingOrHelloIsDeferredForAnotherHostToBeTried) {
  expect(outcome_of([](Talk& talk) { talk.say("554 5.7.1 go away\r\n"); }), Kind::deferred, Step::greeting,
         "554 5.7.1 go away");
  expect(outcome_of([](Talk& talk) {
           talk.say("220 hi\r\n");
           talk.hear();
           talk.say("502 what?\r\n");
           EXPECT_EQ(talk.hear(), "HELO us.test");
           talk.say("550 not you\r\n");
           EXPECT_EQ(talk.hear(), "QUIT");
         }),
         Kind::deferred, Step::hello, "550 not you");
}

TEST(SmtpOutcome, OfAnOldServerThatOnlyKnowsHeloIsDelivered) {
  const auto outcome = outcome_of([](Talk& talk) {
    talk.say("220 hi\r\n");
    talk.hear();
    talk.say("502 what?\r\n");
    EXPECT_EQ(talk.hear(), "HELO us.test");
    talk.say("250 hello\r\n");
    EXPECT_EQ(talk.hear(), "MAIL FROM:<me@us.test>");
    talk.say("250 ok\r\n");
    talk.take_letter_after_sender("250 thanks\r\n");
  });
  expect(outcome, Kind::delivered, Step::content, "250 thanks");
}

TEST(SmtpOutcome, OfSilenceIsDeferredAtTheStepThatWasWaitedFor) {
  expect(outcome_of([](Talk& talk) { talk.hear_the_end(); }), Kind::deferred, Step::greeting, kLate);
  expect(outcome_of([](Talk& talk) {
           talk.greet();
           talk.hear_the_end();
         }),
         Kind::deferred, Step::sender, kLate);
}

TEST(SmtpOutcome, OfAReplyThatDripsIsDeferredAfterTheTimeForAWholeOne) {
  const auto before = std::chrono::steady_clock::now();
  expect(outcome_of([](Talk& talk) { talk.drip("220 " + std::string(100, 'x'), 20ms); }), Kind::deferred,
         Step::greeting, kLate);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1500ms);
}

TEST(SmtpOutcome, OfGarbageIsDeferredBeforeTheContent) {
  for (const auto* garbage :
       {"HTTP/1.1 400 Bad Request\r\n", "2x0 hi\r\n", "199 hi\r\n", "2500 hi\r\n", "\r\n"})
    expect(outcome_of([garbage](Talk& talk) { talk.say(garbage); }), Kind::deferred, Step::greeting,
           kNonsense);
  // Yes where there was no question of it.
  expect(outcome_of([](Talk& talk) {
           talk.greet();
           talk.hear();
           talk.say("354 go on\r\n");
         }),
         Kind::deferred, Step::sender, kNonsense);
}

TEST(SmtpOutcome, OfAReplyWithoutEndIsDeferred) {
  expect(outcome_of([](Talk& talk) { talk.say("220 " + std::string(100'000, 'x')); }), Kind::deferred,
         Step::greeting, kNonsense);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "220-more\r\n";
  expect(outcome_of([&](Talk& talk) { talk.say(many); }), Kind::deferred, Step::greeting, kNonsense);
}

TEST(SmtpOutcome, KeepsOfALongReplyWhatALogCanTake) {
  const auto outcome = outcome_of([](Talk& talk) {
    talk.greet();
    talk.hear();
    talk.say("550-5.7.1 no\x01\x7f\xff\r\n550 5.7.1 \xc3\xa9\xc2\x85" + std::string(2000, 'x') + "\r\n");
  });
  EXPECT_EQ(outcome.kind, Kind::refused);
  EXPECT_EQ(outcome.enhanced, "5.7.1");
  EXPECT_TRUE(outcome.reply.starts_with("550 5.7.1 no  \xef\xbf\xbd 5.7.1 \xc3\xa9 xxx")) << outcome.reply;
  EXPECT_LE(outcome.reply.size(), 500u);
}

TEST(SmtpOutcome, OfTheSenderIsThatOfAllRecipients) {
  for (const auto& [reply, kind] :
       {std::pair{"451 4.3.0 later\r\n", Kind::deferred}, {"550 no\r\n", Kind::refused}}) {
    ScriptedServer server([said = reply](Talk& talk) {
      talk.greet();
      talk.hear();
      talk.say(said);
      EXPECT_EQ(talk.hear(), "QUIT");
    });
    const auto delivery = deliver(server.destination(), kThree);
    EXPECT_TRUE(delivery.reusable);
    for (const auto& outcome : delivery.recipients) {
      EXPECT_EQ(outcome.kind, kind);
      EXPECT_EQ(outcome.step, Step::sender);
    }
  }
}

void say_one_by_one(Talk& talk) {
  talk.greet();
  talk.hear();
  talk.say("250 ok\r\n");
  for (const auto* reply : {"550 5.1.1 nobody\r\n", "250 ok\r\n", "452 4.5.3 too many\r\n"}) {
    EXPECT_TRUE(talk.hear().starts_with("RCPT TO:<"));
    talk.say(reply);
  }
  EXPECT_EQ(talk.hear(), "DATA");
  talk.say("354 go on\r\n");
  talk.hear_content();
  talk.say("250 queued\r\n");
}

void say_at_once(Talk& talk) {
  talk.greet("250-PIPELINING\r\n");
  EXPECT_EQ(talk.hear_at_once("DATA\r\n"),
            "MAIL FROM:<me@us.test>\r\nRCPT TO:<one@mx.test>\r\nRCPT TO:<two@mx.test>\r\nRCPT "
            "TO:<three@mx.test>\r\nDATA\r\n");
  talk.say("250 ok\r\n550 5.1.1 nobody\r\n250 ok\r\n452 4.5.3 too many\r\n354 go on\r\n");
  EXPECT_EQ(talk.hear_content(), "Subject: x\r\n\r\ntext");
  talk.say("250 queued\r\n");
}

TEST(SmtpOutcome, IsForEachRecipientHisOwn) {
  for (const auto script : {say_one_by_one, say_at_once}) {
    ScriptedServer server(script);
    const auto delivery = deliver(server.destination(), kThree);
    expect(delivery.recipients.at(0), Kind::refused, Step::recipient, "550 5.1.1 nobody");
    expect(delivery.recipients.at(1), Kind::delivered, Step::content, "250 queued");
    expect(delivery.recipients.at(2), Kind::deferred, Step::recipient, "452 4.5.3 too many");
    EXPECT_TRUE(delivery.reusable);
  }
}

TEST(SmtpOutcome, OfTooManyRecipientsIsDeferredAlsoByItsOldCode) {
  const auto to_recipient = [](const char* reply) {
    return outcome_of([reply](Talk& talk) {
      talk.greet();
      talk.hear();
      talk.say("250 ok\r\n");
      talk.hear();
      talk.say(reply);
    });
  };
  EXPECT_EQ(to_recipient("552 too many recipients\r\n").kind, Kind::deferred);
  EXPECT_EQ(to_recipient("552 5.5.3 too many recipients\r\n").kind, Kind::deferred);
  EXPECT_EQ(to_recipient("552 5.2.2 mailbox full\r\n").kind, Kind::refused);
}

TEST(SmtpOutcome, OfDataAndContentIsThatOfThoseWhoWereAccepted) {
  const auto to_data = [](const char* reply) {
    return outcome_of([reply](Talk& talk) {
      talk.greet("250-PIPELINING\r\n");
      talk.hear_at_once("DATA\r\n");
      talk.say(fmt::format("250 ok\r\n250 ok\r\n{}", reply));
    });
  };
  expect(to_data("451 later\r\n"), Kind::deferred, Step::data, "451 later");
  expect(to_data("554 never\r\n"), Kind::refused, Step::data, "554 never");
  expect(to_data("250 ok\r\n"), Kind::deferred, Step::data, kNonsense);
  const auto to_content = [](const char* reply) {
    return outcome_of([reply](Talk& talk) {
      talk.greet();
      talk.take_letter(reply);
    });
  };
  expect(to_content("452 4.3.1 disk full\r\n"), Kind::deferred, Step::content, "452 4.3.1 disk full");
  expect(to_content("554-5.7.1 spam\r\n554 5.7.1 really\r\n"), Kind::refused, Step::content,
         "554 5.7.1 spam 5.7.1 really");
}

TEST(SmtpOutcome, Of421IsDeferredAtAnyStepAndEndsTheConnection) {
  const std::string_view bye = "421 4.3.2 shutting down\r\n";
  const auto expect_bye = [](const Delivery& delivery, Step step) {
    expect(delivery.recipients.at(0), Kind::deferred, step, "421 4.3.2 shutting down");
    EXPECT_FALSE(delivery.reusable);
  };
  const std::vector<std::pair<Step, ScriptedServer::Script>> scripts = {
      {Step::greeting, [&](Talk& talk) { talk.say(bye); }},
      {Step::sender,
       [&](Talk& talk) {
         talk.greet();
         talk.hear();
         talk.say(bye);
       }},
      {Step::recipient,
       [&](Talk& talk) {
         talk.greet("250-PIPELINING\r\n");
         talk.hear_at_once("DATA\r\n");
         talk.say(fmt::format("250 ok\r\n{}", bye));
       }},
      {Step::data,
       [&](Talk& talk) {
         talk.greet("250-PIPELINING\r\n");
         talk.hear_at_once("DATA\r\n");
         talk.say(fmt::format("250 ok\r\n250 ok\r\n{}", bye));
       }},
      {Step::content,
       [&](Talk& talk) {
         talk.greet();
         talk.take_letter(bye);
       }},
  };
  for (const auto& [step, script] : scripts) {
    ScriptedServer server(script);
    expect_bye(deliver(server.destination(), kLetter), step);
  }
}

TEST(SmtpOutcome, OfAConnectionLostBeforeTheContentIsDeferred) {
  expect(outcome_of([](Talk& talk) {
           talk.greet();
           talk.hear();
         }),
         Kind::deferred, Step::sender, kClosed);
  expect(outcome_of([](Talk& talk) {
           talk.greet();
           talk.hear();
           talk.say("250 ok\r\n");
           talk.hear();
           talk.reset();
         }),
         Kind::deferred, Step::recipient, kClosed);
}

// More than the network holds, so that it cannot have been handed over.
std::string large_content() {
  std::string content;
  while (content.size() < 30'000'000) content += "a line of a large letter that goes on and on\r\n";
  return content;
}

TEST(SmtpOutcome, OfAConnectionLostWithinTheContentIsDeferred) {
  const auto content = large_content();
  auto letter = kLetter;
  letter.data = content;
  const auto until_content = [](Talk& talk) {
    talk.greet("250-PIPELINING\r\n");
    talk.hear_at_once("DATA\r\n");
    talk.say("250 ok\r\n250 ok\r\n354 go on\r\n");
    talk.hear();
  };
  expect(outcome_of(
             [&](Talk& talk) {
               until_content(talk);
               talk.reset();
             },
             letter),
         Kind::deferred, Step::content, kClosed);
  // A yes to half of it is none; a no is one.
  const auto closes_after = [&](std::string_view reply) {
    return outcome_of(
        [&](Talk& talk) {
          until_content(talk);
          talk.say(reply);
        },
        letter);
  };
  EXPECT_EQ(closes_after("250 ok\r\n").kind, Kind::deferred);
  expect(closes_after("552 5.3.4 too large\r\n"), Kind::refused, Step::content, "552 5.3.4 too large");
}

TEST(SmtpOutcome, OfSilenceOrGarbageOrALostConnectionAfterTheContentIsUnknown) {
  const auto after_content = [](const std::function<void(Talk&)>& then) {
    return outcome_of([&](Talk& talk) {
      talk.greet();
      talk.hear();
      talk.say("250 ok\r\n");
      talk.hear();
      talk.say("250 ok\r\n");
      talk.hear();
      talk.say("354 go on\r\n");
      talk.hear_content();
      then(talk);
    });
  };
  expect(after_content([](Talk&) {}), Kind::unknown, Step::content, kClosed);
  expect(after_content([](Talk& talk) { talk.reset(); }), Kind::unknown, Step::content, kClosed);
  expect(after_content([](Talk& talk) { talk.hear_the_end(); }), Kind::unknown, Step::content, kLate);
  expect(after_content([](Talk& talk) { talk.say("what?\r\n"); }), Kind::unknown, Step::content, kNonsense);
  expect(after_content([](Talk& talk) { talk.say("354 go on\r\n"); }), Kind::unknown, Step::content,
         kNonsense);
  expect(after_content([](Talk& talk) { talk.say("250-half a repl"); }), Kind::unknown, Step::content,
         kClosed);
  expect(after_content([](Talk& talk) { talk.drip("250-" + std::string(100, 'x'), 20ms); }), Kind::unknown,
         Step::content, kLate);
}

TEST(SmtpOutcome, OfAReplyToContentThatWasNotSentIsDeferred) {
  expect(outcome_of([](Talk& talk) {
           talk.greet("250-PIPELINING\r\n");
           talk.hear_at_once("DATA\r\n");
           talk.say("250 ok\r\n250 ok\r\n354 go on\r\n250 queued\r\n");
           EXPECT_EQ(talk.hear(), "");
         }),
         Kind::deferred, Step::content, kNonsense);
}

TEST(SmtpConnection, EndsDataThatIsAwaitedForNobodyWithADotAlone) {
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-PIPELINING\r\n");
    talk.hear_at_once("DATA\r\n");
    talk.say("250 ok\r\n550 a\r\n450 b\r\n550 c\r\n354 go on\r\n");
    EXPECT_EQ(talk.hear(), ".");
    talk.say("554 no valid recipients\r\n");
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  const auto delivery = deliver(server.destination(), kThree);
  expect(delivery.recipients.at(0), Kind::refused, Step::recipient, "550 a");
  expect(delivery.recipients.at(1), Kind::deferred, Step::recipient, "450 b");
  expect(delivery.recipients.at(2), Kind::refused, Step::recipient, "550 c");
  EXPECT_TRUE(delivery.reusable);
}

TEST(SmtpConnection, TakesTheSendersRefusalForAllThatWasPipelinedBehindIt) {
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-PIPELINING\r\n");
    talk.hear_at_once("DATA\r\n");
    talk.say("550 not you\r\n503 a\r\n503 b\r\n503 c\r\n503 d\r\n");
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  const auto delivery = deliver(server.destination(), kThree);
  for (const auto& outcome : delivery.recipients) expect(outcome, Kind::refused, Step::sender, "550 not you");
  EXPECT_TRUE(delivery.reusable);
}

TEST(SmtpConnection, SendsManyRecipientsInSeveralWrites) {
  Letter letter{.from = "", .data = "x\r\n"};
  for (int i = 0; i < 120; ++i) letter.to.push_back(fmt::format("r{}@mx.test", i));
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-PIPELINING\r\n");
    int heard = 0;
    while (true) {
      const auto line = talk.hear();
      if (line == "DATA" || line.empty()) break;
      talk.say(++heard % 2 == 0 ? "550 no\r\n" : "250 ok\r\n");
    }
    EXPECT_EQ(heard, 121);
    talk.say("354 go on\r\n");
    EXPECT_EQ(talk.hear_content(), "x");
    talk.say("250 queued\r\n");
  });
  const auto delivery = deliver(server.destination(), letter);
  for (size_t i = 0; i < 120; ++i)
    EXPECT_EQ(delivery.recipients[i].kind, i % 2 == 0 ? Kind::refused : Kind::delivered);
}

TEST(SmtpConnection, ResetsOnlyAfterATransactionThatWasBrokenOff) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    talk.take_letter();
    talk.take_letter();
    talk.hear();
    talk.say("250 ok\r\n");
    talk.hear();
    talk.say("550 nobody\r\n");
    EXPECT_EQ(talk.hear(), "RSET");
    talk.say("250 ok\r\n");
    talk.take_letter();
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  asio::io_context context;
  const auto trust = net::TlsTrust::anyone();
  ClientConnection connection(context.get_executor(), server.destination(), trust, short_ones());
  ASSERT_TRUE(run_alone(context, connection.open()));
  for (const auto kind : {Kind::delivered, Kind::delivered, Kind::refused, Kind::delivered})
    EXPECT_EQ(run_alone(context, connection.deliver(kLetter)).recipients.at(0).kind, kind);
  EXPECT_EQ(connection.letters(), 4u);
  run_alone(context, [](ClientConnection& c) -> awaitable<bool> {
    co_await c.quit();
    co_return true;
  }(connection));
}

TEST(SmtpConnection, RefusesWhatTheServerCannotTake) {
  ScriptedServer small([](Talk& talk) {
    talk.greet("250-SIZE 10\r\n");
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  const auto outcome = deliver(small.destination(), kLetter).recipients.at(0);
  expect(outcome, Kind::refused, Step::sender, "127.0.0.1 takes 10 bytes at most, and these are 20");
  EXPECT_EQ(outcome.code, 552);
  EXPECT_EQ(outcome.enhanced, "5.3.4");

  ScriptedServer old([](Talk& talk) {
    talk.greet("250-SIZE 20\r\n250-8BITMIME\r\n");
    EXPECT_EQ(talk.hear(), "MAIL FROM:<me@us.test> SIZE=20");
    talk.say("250 ok\r\n");
    talk.take_letter_after_sender();
  });
  auto letter = kLetter;
  letter.to = {"j\xc3\xb6rg@mx.test", "one@mx.test", "two@mx.test>\r\nRCPT TO:<three@mx.test"};
  const auto delivery = deliver(old.destination(), letter);
  expect(delivery.recipients.at(0), Kind::refused, Step::recipient,
         "127.0.0.1 does not take addresses beyond ASCII");
  EXPECT_EQ(delivery.recipients.at(0).enhanced, "5.6.7");
  EXPECT_EQ(delivery.recipients.at(1).kind, Kind::delivered);
  expect(delivery.recipients.at(2), Kind::refused, Step::recipient, "the recipient is no address");
}

TEST(SmtpConnection, AnnouncesWhatTheLetterNeeds) {
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-SIZE\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n");
    EXPECT_EQ(talk.hear(), "MAIL FROM:<me@us.test> SIZE=8 BODY=8BITMIME SMTPUTF8");
    talk.say("250 ok\r\n");
    EXPECT_EQ(talk.hear(), "RCPT TO:<j\xc3\xb6rg@mx.test>");
    talk.say("250 ok\r\n");
    talk.hear();
    talk.say("354 go on\r\n");
    // Stuffed, and counted without the dots.
    EXPECT_EQ(talk.hear_content(), "..a\r\n\xc3\xa9");
    talk.say("250 ok\r\n");
  });
  const Letter letter{.from = "me@us.test", .to = {"j\xc3\xb6rg@mx.test"}, .data = ".a\n\xc3\xa9\n"};
  EXPECT_EQ(deliver(server.destination(), letter).recipients.at(0).kind, Kind::delivered);
}

TEST(SmtpConnection, SendsToAllOrNone) {
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-PIPELINING\r\n");
    talk.hear_at_once("three@mx.test>\r\n");
    talk.say("250 ok\r\n250 ok\r\n550 nobody\r\n250 ok\r\n");
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  auto letter = kThree;
  letter.all_or_none = true;
  const auto delivery = deliver(server.destination(), letter);
  expect(delivery.recipients.at(0), Kind::deferred, Step::recipient, "550 nobody");
  expect(delivery.recipients.at(1), Kind::refused, Step::recipient, "550 nobody");
  expect(delivery.recipients.at(2), Kind::deferred, Step::recipient, "550 nobody");
}

TEST(SmtpLogin, ThatFailsIsDeferredAndNeverShowsThePassword) {
  ScriptedServer server([](Talk& talk) {
    talk.greet("250-AUTH PLAIN LOGIN\r\n");
    const auto line = talk.hear();
    EXPECT_TRUE(line.starts_with("AUTH PLAIN "));
    talk.say("535 5.7.8 not good: " + line + "\r\n");
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  auto destination = server.destination();
  destination.user = "me";
  destination.password = "secret";
  const auto outcome = deliver(destination, kLetter).recipients.at(0);
  expect(outcome, Kind::deferred, Step::login, "535 (the rest of the reply repeats the password)");
  EXPECT_EQ(outcome.enhanced, "5.7.8");
}

class SmtpTls : public testing::Test {
 protected:
  void SetUp() override {
    const auto command = fmt::format(
        "cd {} && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mx.test -keyout key -out "
        "certificate "
        "2>/dev/null",
        folder_.path().string());
    ASSERT_EQ(std::system(command.c_str()), 0);
    identity_.emplace(net::TlsFiles{folder_.path() / "certificate", folder_.path() / "key"});
  }

  test::Folder folder_;
  std::optional<net::TlsIdentity> identity_;
};

TEST_F(SmtpTls, BeginsByCommandOrFromTheStart) {
  ScriptedServer server({[&](Talk& talk) {
                           talk.greet("250-STARTTLS\r\n");
                           EXPECT_EQ(talk.hear(), "STARTTLS");
                           talk.say("220 go on\r\n");
                           EXPECT_TRUE(talk.start_tls(*identity_));
                           talk.hello("250-PIPELINING\r\n");
                           EXPECT_EQ(talk.hear_at_once("DATA\r\n").substr(0, 10), "MAIL FROM:");
                           talk.say("250 ok\r\n250 ok\r\n354 go on\r\n");
                           talk.hear_content();
                           talk.say("250 queued\r\n");
                           EXPECT_EQ(talk.hear(), "QUIT");
                         },
                         [&](Talk& talk) {
                           EXPECT_TRUE(talk.start_tls(*identity_));
                           talk.greet();
                           talk.take_letter();
                         }});
  auto destination = server.destination();
  for (const auto security : {Security::required, Security::implicit}) {
    destination.security = security;
    const auto delivery = deliver(destination, kLetter);
    EXPECT_EQ(delivery.recipients.at(0).kind, Kind::delivered) << delivery.recipients.at(0).reply;
    EXPECT_TRUE(delivery.secure);
  }
}

TEST_F(SmtpTls, ThatIsRequiredAndNotToBeHadIsDeferred) {
  ScriptedServer server([](Talk& talk) {
    talk.greet();
    EXPECT_EQ(talk.hear(), "QUIT");
  });
  auto destination = server.destination();
  destination.security = Security::required;
  expect(deliver(destination, kLetter).recipients.at(0), Kind::deferred, Step::tls,
         "127.0.0.1 does not offer STARTTLS");
}

TEST_F(SmtpTls, WithACertificateThatIsNotTrustedIsDeferred) {
  ScriptedServer server([&](Talk& talk) { talk.start_tls(*identity_); });
  auto destination = server.destination();
  destination.security = Security::implicit;
  const auto outcome = deliver(destination, kLetter, net::TlsTrust("")).recipients.at(0);
  EXPECT_EQ(outcome.kind, Kind::deferred);
  EXPECT_EQ(outcome.step, Step::tls);
}

TEST(SmtpSend, SaysWhatTheServerSaid) {
  ScriptedServer server({[](Talk& talk) {
                           talk.greet();
                           talk.take_letter();
                         },
                         [](Talk& talk) {
                           talk.greet();
                           talk.hear();
                           talk.say("250 ok\r\n");
                           talk.hear();
                           talk.say("550 5.1.1 nobody\r\n");
                           EXPECT_EQ(talk.hear(), "QUIT");
                         },
                         [](Talk& talk) { talk.hear_the_end(); }});
  asio::io_context context;
  const auto sent = [&] { return run_alone(context, send(server.destination(), kLetter, 300ms)); };
  EXPECT_EQ(sent().value_or(""), "250 2.0.0 Ok: queued as 4F2B");
  const auto refused = sent();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 550);
  EXPECT_EQ(refused.error().message, "550 5.1.1 nobody");
  EXPECT_EQ(sent().error().message, kLate);
}

TEST(SmtpContent, GoesAsItIsWhereStuffingWouldChangeNothing) {
  for (const std::string_view text : {"", "a\r\n", "a\r\n\r\nb\r\n", ".a\r\n", "a\r\n.b\r\n", "a", "a\n",
                                      "a\r", "a\rb\r\n", "\n", "a\r\r\n", "\r\n"})
    EXPECT_EQ(is_stuffed(text), stuff_dots(text) == text) << text;
  EXPECT_EQ(stuff_dots("a\rb\nc\r\n.d\r\r\ne\r"), "a\r\nb\r\nc\r\n..d\r\n\r\ne\r\n");
}

}  // namespace
}  // namespace tabella::smtp

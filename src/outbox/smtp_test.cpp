// What comes in by SMTP: the headers of submissions, and the addresses and reports of bounces.
#include <gtest/gtest.h>

#include "outbox/bounces.h"
#include "outbox/submission.h"

namespace tabella::outbox {
namespace {

TEST(Submission, TakesItsOwnHeadersOutOfTheMessage) {
  std::string message =
      "Subject: hello\r\nX-Outbox-Priority: High\r\nx-outbox-send-at:\r\n 2026-11-18T09:30:00Z\r\n"
      "To: a@b.c\r\nX-Outbox-Callback: https://example.com/done\r\n\r\nX-Outbox-Priority: text\r\n";
  const auto read = take_submission_headers(message);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->priority, Priority::high);
  EXPECT_EQ(read->callback, "https://example.com/done");
  EXPECT_TRUE(read->send_at);
  EXPECT_EQ(message, "Subject: hello\r\nTo: a@b.c\r\n\r\nX-Outbox-Priority: text\r\n");
}

TEST(Submission, RefusesHeadersOfItsOwnThatItDoesNotKnow) {
  for (std::string message : {"X-Outbox-Priority: soon\r\n\r\n", "X-Outbox-Sned-At: now\r\n\r\n",
                              "X-Outbox-Callback: file:///etc\r\n\r\n", "X-Outbox-Send-At: tomorrow"})
    EXPECT_FALSE(take_submission_headers(message)) << message;
}

TEST(Submission, RefusesHeadersOfItsOwnThatAreThereTwice) {
  std::string message = "X-Outbox-Priority: low\r\nTo: a@b.c\r\nx-outbox-priority: low\r\n\r\n";
  EXPECT_FALSE(take_submission_headers(message));
}

TEST(Submission, LeavesMessagesWithoutSuchHeadersAsTheyAre) {
  for (const std::string original : {"", "\r\n", "no headers at all", "A: b\r\n c\r\n\r\nbody", "A: b"}) {
    auto message = original;
    ASSERT_TRUE(take_submission_headers(message));
    EXPECT_EQ(message, original);
  }
}

TEST(Bounces, AnAddressIsReadOnlyWithItsMac) {
  const BounceAddresses addresses("key", "Bounces.Example.com");
  const std::string id = "6f1c1c52-6b1e-4c0e-9d53-0d2f9b6c1a11";
  const auto address = addresses.address_of(id);
  EXPECT_TRUE(address.starts_with("bounce+" + id + "."));
  EXPECT_TRUE(address.ends_with("@bounces.example.com"));
  EXPECT_LE(address.find('@'), 64u);
  EXPECT_EQ(addresses.parse(address), id);
  EXPECT_EQ(addresses.parse("Bounce+" + address.substr(7)), id);
  EXPECT_FALSE(BounceAddresses("other", "bounces.example.com").parse(address));
  EXPECT_FALSE(BounceAddresses("key", "example.com").parse(address));
  auto forged = address;
  forged[8] = forged[8] == 'a' ? 'b' : 'a';
  for (const auto& wrong : {forged, std::string("bounce+@bounces.example.com"), std::string("bounce+x.@"),
                            std::string("ann@bounces.example.com"), std::string()})
    EXPECT_FALSE(addresses.parse(wrong)) << wrong;
}

TEST(Bounces, AreBelievedOnlyAboutRecipientsOfTheEmail) {
  using Action = mime::DeliveryStatus::Action;
  const std::vector<Recipient> recipients = {{.address = "Ann@x.org"}, {.address = "bob@x.org"}};
  const std::vector<mime::DeliveryStatus> report = {
      {.final_recipient = "ann@x.org", .action = Action::failed, .status = "5.1.1"},
      {.original_recipient = "bob@x.org", .action = Action::failed, .status = "4.4.7"},
      {.final_recipient = "stranger@x.org", .action = Action::failed, .status = "5.1.1"},
      {.final_recipient = "bob@x.org", .action = Action::delayed, .status = "4.4.1"}};
  const auto bounces = bounces_in(report, "id", recipients);
  ASSERT_EQ(bounces.size(), 2u);
  EXPECT_EQ(bounces[0].recipient, "Ann@x.org");
  EXPECT_TRUE(bounces[0].permanent);
  EXPECT_EQ(bounces[1].recipient, "bob@x.org");
  EXPECT_FALSE(bounces[1].permanent);
}

TEST(Bounces, AForwardedEmailWithOneRecipientIsStillItsOwn) {
  const mime::DeliveryStatus failed{.final_recipient = "new@y.org", .status = "5.1.1"};
  const std::vector<Recipient> recipients = {{.address = "ann@x.org"}};
  const auto bounces = bounces_in({failed}, "id", recipients);
  ASSERT_EQ(bounces.size(), 1u);
  EXPECT_EQ(bounces[0].recipient, "ann@x.org");
}

TEST(Bounces, TellOfARecipientOnceHoweverOftenAReportNamesIt) {
  const mime::DeliveryStatus failed{.final_recipient = "ann@x.org", .status = "5.1.1"};
  const std::vector<Recipient> recipients = {{.address = "Ann@x.org"}, {.address = "bob@x.org"}};
  EXPECT_EQ(bounces_in({1000, failed}, "id", recipients).size(), 1u);
}

}  // namespace
}  // namespace tabella::outbox

#include "mime/dsn.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tabella::mime {
namespace {

constexpr std::string_view kPostfix = R"(Return-Path: <>
From: MAILER-DAEMON@mx.example.org (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: bounce+1@example.org
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="AB12.1563/mx.example.org"

This is a MIME-encapsulated message.

--AB12.1563/mx.example.org
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

<nobody@example.net>: host mx.example.net[192.0.2.1] said: 550 5.1.1
    <nobody@example.net>: Recipient address rejected (in reply to RCPT TO command)

--AB12.1563/mx.example.org
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org
Original-Envelope-Id: envelope7
X-Postfix-Queue-ID: AB12
Arrival-Date: Wed, 31 Jul 2019 11:22:56 +0000 (UTC)

Final-Recipient: rfc822; nobody@example.net
Original-Recipient: rfc822;Nobody@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx.example.net
Diagnostic-Code: smtp; 550 5.1.1 <nobody@example.net>: Recipient address
    rejected: User unknown

Final-Recipient: rfc822; slow@example.net
Action: delayed
Status: 4.4.1 (timeout)
Diagnostic-Code: X-Postfix; connection timed out

--AB12.1563/mx.example.org
Content-Description: Undelivered Message
Content-Type: message/rfc822

Message-ID: <original@example.org>
Subject: Hello

Hi
--AB12.1563/mx.example.org--
)";

constexpr std::string_view kExchange = R"(From: Microsoft Outlook <postmaster@contoso.example>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="_000_"
Subject: Undeliverable: Hello

--_000_
Content-Type: multipart/alternative; differences=Content-Type;
	boundary="_001_"

--_001_
Content-Type: text/plain; charset="us-ascii"

Your message couldn't be delivered.

--_001_
Content-Type: text/html; charset="us-ascii"

<p>Your message couldn't be delivered.</p>
--_001_--

--_000_
Content-Type: message/delivery-status

Reporting-MTA: dns;HE1.prod.outlook.example
Received-From-MTA: dns;mx.example.org

Final-Recipient: rfc822;gone@contoso.example
Action: failed
Status: 5.1.10
Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup


--_000_
Content-Type: text/rfc822-headers
Content-Transfer-Encoding: base64

TWVzc2FnZS1JRDogPG9yaWdpbmFsQGV4YW1wbGUub3JnPg0KU3ViamVjdDogSGVsbG8NCg==
--_000_--
)";

constexpr std::string_view kGmail = R"(From: Mail Delivery Subsystem <mailer-daemon@googlemail.example>
Content-Type: multipart/report; boundary="000000"; report-type=delivery-status
Subject: Delivery Status Notification (Failure)

--000000
Content-Type: multipart/related; boundary="111111"

--111111
Content-Type: text/plain; charset="UTF-8"

** Address not found **
--111111--

--000000
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.example
Arrival-Date: Wed, 31 Jul 2019 04:22:56 -0700 (PDT)
X-Original-Message-ID: <original@example.org>

Final-Recipient: rfc822; gone@gmail.example
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist.
Last-Attempt-Date: Wed, 31 Jul 2019 04:22:57 -0700 (PDT)

--000000--
)";

constexpr std::string_view kQmail = R"(From: MAILER-DAEMON@example.net
To: bounce+1@example.org
Subject: failure notice

Hi. This is the qmail-send program at example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<gone@example.net>:
Sorry, no mailbox here by that name. (#5.1.1)

<full@example.net>:
192.0.2.1 does not like recipient.
Remote host said: 552 mailbox full

--- Below this line is a copy of the message.

Return-Path: <bounce+1@example.org>
Message-ID: <original@example.org>

<not.a.recipient@example.net>:
Hi
)";

std::string told(std::string_view message) {
  std::string text;
  for (const auto& recipient : parse_delivery_report(message))
    text += fmt::format("{},{},{},{};", recipient.original_recipient, recipient.final_recipient,
                        static_cast<int>(recipient.action), recipient.status);
  return text.empty() ? "nothing" : text;
}

TEST(DeliveryReports, AreReadAsPostfixWritesThem) {
  EXPECT_EQ(told(kPostfix), "Nobody@example.net,nobody@example.net,0,5.1.1;,slow@example.net,1,4.4.1;");
  const auto recipients = parse_delivery_report(kPostfix);
  EXPECT_TRUE(recipients[0].diagnostic.starts_with("550 5.1.1 <nobody@example.net>"));
  EXPECT_TRUE(recipients[0].diagnostic.ends_with("rejected: User unknown"));
}

TEST(DeliveryReports, AreReadAsExchangeAndGoogleWriteThem) {
  EXPECT_EQ(told(kExchange), ",gone@contoso.example,0,5.1.10;");
  EXPECT_EQ(parse_delivery_report(kExchange)[0].diagnostic,
            "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup");
  EXPECT_EQ(told(kGmail), ",gone@gmail.example,0,5.1.1;");
}

TEST(DeliveryReports, AreReadAsQmailWritesThem) {
  EXPECT_EQ(told(kQmail), ",gone@example.net,0,5.1.1;,full@example.net,0,5.0.0;");
}

TEST(DeliveryReports, AreReadWhateverEndsTheirLines) {
  for (const auto sample : {kPostfix, kExchange, kGmail, kQmail}) {
    std::string crlf;
    for (const char c : sample) c == '\n' ? crlf += "\r\n" : crlf += c;
    EXPECT_EQ(told(crlf), told(sample));
  }
}

std::string with_status(std::string_view status) {
  return fmt::format(
      "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: "
      "message/delivery-status\n\n{}\n--b--\n",
      status);
}

TEST(DeliveryReports, AreUnderstoodWhereTheyBendTheRules) {
  EXPECT_EQ(told(with_status("Final-Recipient: <a@x>\nAction: Failed (no such user)\nStatus: 5.0.0 (x)")),
            ",a@x,0,5.0.0;");
  EXPECT_EQ(told(with_status("Final-Recipient: rfc822;a@x\nStatus: 4.2.2")), ",a@x,1,4.2.2;");
  EXPECT_EQ(
      told(with_status("\n\nReporting-MTA: x\n\n\nno field\nFinal-Recipient: rfc822;a@x\nAction: relayed")),
      ",a@x,3,;");
  EXPECT_EQ(told(with_status("Final-Recipient: rfc822;a@x\nAction: failed\nStatus: 5.1")), ",a@x,0,;");
}

TEST(DeliveryReports, AreNotOtherMessages) {
  EXPECT_EQ(told(""), "nothing");
  EXPECT_EQ(told("Subject: Hi\n\nHi. This is me.\n"), "nothing");
  EXPECT_EQ(told("Content-Type: message/delivery-status\n\n\nFinal-Recipient: rfc822;a@x\nAction: failed\n"),
            "nothing");
  EXPECT_EQ(told(with_status("Reporting-MTA: x")), "nothing");
  EXPECT_EQ(told(with_status("Final-Recipient: rfc822;a@x\nAction: wondering")), "nothing");
}

TEST(Hostile, DeliveryReportsTakeTimeByTheirSize) {
  std::string lines;
  for (int i = 0; i < 200'000; ++i) lines += "no field\n";
  EXPECT_EQ(told(with_status(lines)), "nothing");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "\nFinal-Recipient: rfc822;a@x\nAction: failed\n";
  EXPECT_EQ(parse_delivery_report(with_status(many)).size(), 1000u);
}

TEST(DeliveryReport, OfQmailNamesSomebody) {
  EXPECT_TRUE(
      parse_delivery_report("Subject: failure notice\n\nHi. This is the qmail program.\n\n<>:\nno.\n\n")
          .empty());
}

}  // namespace
}  // namespace tabella::mime

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "mail/assertions.h"
#include "mail/content.h"
#include "mail/document.h"
#include "mail/feed.h"
#include "mail/id.h"
#include "mail/jim.h"
#include "mail/mailhog.h"
#include "mail/query.h"
#include "mail/service.h"
#include "mail/shown.h"
#include "mime/message.h"
#include "mime/utf8.h"
#include "support/empty_store.h"
#include "support/run.h"

namespace tabella::mail {
namespace {

constexpr Nanoseconds kDocumented = 1564364816345567660;  // of the document that mail started from

TEST(Id, TellsItsPartition) {
  EXPECT_EQ(created_of("1564364816345567660|msg1@localhost"), kDocumented);
  EXPECT_EQ(short_id("1564364816345567660|msg1@localhost"), "msg1@localhost");
  EXPECT_EQ(partition_of(kDocumented, Granularity::day), "2019-07-29");
  EXPECT_EQ(partition_of(kDocumented, Granularity::half_day), "2019-07-29am");
  EXPECT_EQ(partition_of(kDocumented, Granularity::hour), "2019-07-29T01");
  for (const auto* wrong : {"", "|", "x|y", "-1|x", "15643648163455676601|x", "1564364816345567660"})
    EXPECT_FALSE(created_of(wrong)) << wrong;
}

TEST(Id, SortsByTime) {
  EXPECT_LT(make_id(999, "h"), make_id(1'000, "h"));
  EXPECT_LT(make_id(kDocumented, "h"), id_prefix(kDocumented + 1));
}

TEST(Id, IsSpelledWithoutABarInUrls) {
  EXPECT_EQ(url_spelling("1564364816345567660|a|b~c@h"), "1564364816345567660~a|b~c@h");
  for (const auto* id : {"1564364816345567660|msg1@localhost", "7|~@h", "random@host", "", "123", "|x"}) {
    EXPECT_EQ(id_of_spelling(url_spelling(id)), id);
    EXPECT_EQ(id_of_spelling(id), id) << "either is understood";
  }
}

TEST(Partitions, IncludeTheOldestPartialOne) {
  constexpr Nanoseconds kDay = 86400'000'000'000;
  EXPECT_EQ(partitions_between(kDocumented, kDocumented + 2 * kDay, Granularity::day),
            (std::vector<std::string>{"2019-07-29", "2019-07-30", "2019-07-31"}));
  // From one evening to the next morning: two days, though less than one has passed.
  EXPECT_EQ(
      partitions_between(kDocumented + kDay * 9 / 10, kDocumented + kDay * 11 / 10, Granularity::day).size(),
      2u);
  EXPECT_EQ(partitions_between(kDocumented, kDocumented, Granularity::hour).size(), 1u);
}

TEST(Times, AreWrittenAsGoWritesThem) {
  EXPECT_EQ(time_text(kDocumented), "2019-07-29T01:46:56.34556766Z");
  EXPECT_EQ(time_text(1564364816000000000), "2019-07-29T01:46:56Z");
  EXPECT_EQ(mail_date(kDocumented), "Mon, 29 Jul 2019 01:46:56 +0000");
}

// As MailHog itself took these apart (its parser's oddities are its clients' business).
TEST(Content, IsTakenApartAsMailHogDoes) {
  const auto content = parse_content(
      "X-A: one\r\nX-A: two\r\nFoo:bar\r\nLong: a\r\n\tb\r\nEmpty: \r\nContent-Type: multipart/mixed; "
      "boundary=\"b\"\r\n\r\n"
      "pre\r\n--b\r\nContent-Type: text/plain\r\n\r\nfirst\r\n--b\r\n\r\nsecond\r\n--b--\r\n");
  EXPECT_EQ(content.headers.at("X-A"), std::vector<std::string>{"two"});
  EXPECT_FALSE(content.headers.contains("Foo"));
  EXPECT_EQ(content.headers.at("Long"), std::vector<std::string>{"a\tb"});
  EXPECT_EQ(content.headers.at("Empty"), std::vector<std::string>{""});
  ASSERT_TRUE(content.parts);
  ASSERT_EQ(content.parts->size(), 4u);
  EXPECT_EQ((*content.parts)[0].body, "pre");
  EXPECT_EQ((*content.parts)[1].body, "first");
  EXPECT_EQ((*content.parts)[2].body, "second");
  EXPECT_EQ((*content.parts)[3].body, "--");
}

TEST(Content, HasNoHeadersWithoutAnEmptyLine) {
  const auto content = parse_content("Subject: x");
  EXPECT_TRUE(content.headers.empty());
  EXPECT_EQ(content.body, "Subject: x");
}

TEST(Content, EndsSomewhereHoweverItIsMade) {
  std::string nested = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
  for (int i = 0; i < 100'000; ++i) nested += "--b\r\n";
  EXPECT_LE(parse_content(nested).parts->size(), 1001u);
  const std::string boundary(300'000, '-');
  EXPECT_FALSE(
      parse_content("Content-Type: multipart/mixed; boundary=" + boundary + "x\r\n\r\n" + boundary).parts);
}

TEST(Paths, AreSplitAsMailHogSplitsThem) {
  const auto path = split_path("@a.org,@b.org:me@c.org");
  EXPECT_EQ(path.relays, (std::vector<std::string>{"@a.org", "@b.org"}));
  EXPECT_EQ(path.mailbox, "me");
  EXPECT_EQ(path.domain, "c.org");
  EXPECT_EQ(split_path("postmaster").domain, "");
  EXPECT_EQ(split_path("me@[IPv6:::1]").domain, "[IPv6:::1]");
}

Message message(std::string raw) {
  Message made{.id = make_id(kDocumented, "h"),
               .created = kDocumented,
               .expires = 1,
               .from = "env@x.org",
               .to = {"Rcpt@Y.org"},
               .raw = std::move(raw)};
  made.size = made.raw.size();
  return made;
}

bool finds(const Message& found, std::string_view query) {
  const auto filter = parse_query(query, TimePoint());
  EXPECT_TRUE(filter) << query;
  return filter && matches(*filter, document_of(found, mime::parse(found.raw)), labels_of(found));
}

TEST(Query, MeansWhatItSays) {
  auto mail = message(
      "From: Ann <ann@a.org>\r\nTo: bob@b.org\r\nSubject: =?utf-8?q?Caf=C3=A9?= tonight\r\n\r\nSee you at "
      "EIGHT\r\n");
  mail.tags = {"fun"};
  for (const auto* query : {"",
                            "cafe",
                            "café TONIGHT",
                            "from:ann",
                            "from:env@x.org",
                            "to:rcpt",
                            "subject:\"cafe tonight\"",
                            "\"you at eight\"",
                            "-missing",
                            "!missing cafe",
                            "tag:fun",
                            "is:tagged",
                            "inbox:rcpt@y.org",
                            "is:unread",
                            "-is:read",
                            "smaller:1M",
                            "larger:10",
                            "-has:attachment",
                            "after:2019-07-29",
                            "before:2019-07-30",
                            "after:2019-07-29T01:46Z",
                            "before:2019-07-29T03:47+02:00",
                            "ight",
                            "e t",
                            "-before:2019-07-29"})
    EXPECT_TRUE(finds(mail, query)) << query;
  for (const auto* query : {"nowhere", "from:bob", "to:ann", "subject:eight", "-cafe", "tag:fu", "-is:tagged",
                            "inbox:rcpt", "is:read", "larger:1M", "has:attachment", "before:2019-07-29",
                            "after:2019-07-30", "\"from:ann\"", "weird:thing", "\"tonight see\""})
    EXPECT_FALSE(finds(mail, query)) << query;
}

TEST(Query, SaysWhatIsWrong) {
  for (const auto* query : {"is:x", "has:x", "before:x", "after:2019-13-01", "larger:x", "smaller:-1"})
    EXPECT_FALSE(parse_query(query, TimePoint())) << query;
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a ";
  EXPECT_FALSE(parse_query(many, TimePoint()));
}

TEST(Query, TakesDurations) {
  EXPECT_EQ(parse_duration("2h"), std::chrono::hours(2));
  EXPECT_EQ(parse_duration("150ms"), std::chrono::milliseconds(150));
  EXPECT_EQ(parse_duration("3"), std::chrono::seconds(3));
  for (const auto* wrong : {"", "x", "-1s", "1e99d", "2x"}) EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Document, HasBothFormsOfQuotedPrintable) {
  const auto mail = message(
      "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain; "
      "charset=utf-8\r\n\r\nna=C3=AFve\r\n");
  EXPECT_TRUE(finds(mail, "naive"));
  EXPECT_TRUE(finds(mail, "na=C3=AFve"));
}

TEST(Scenario, CountsDownAndPlaysTheSameAgain) {
  Jim jim;
  const auto scenario = scenario_from_json(
      R"({"seed": 5, "steps": [{"to": "@X.org", "reply": "454 4.7.0 Later", "times": 2}, {"to": "@y.org", "reply": "451 x", "times": 0, "chance": 0.5}]})");
  ASSERT_TRUE(scenario) << scenario.error();
  const auto play = [&] {
    jim.play(*scenario);
    std::string codes;
    for (int i = 0; i < 4; ++i)
      codes += jim.refuses(Step::At::recipient, {}, "a@a.org", {"b@x.org"}) ? "454 " : "ok ";
    for (int i = 0; i < 20; ++i)
      codes += jim.refuses(Step::At::recipient, {}, "a@a.org", {"b@y.org"}) ? "451 " : "ok ";
    return codes;
  };
  const auto first = play();
  EXPECT_TRUE(first.starts_with("454 454 ok ok "));
  EXPECT_EQ(play(), first);
  EXPECT_FALSE(jim.refuses(Step::At::recipient, {}, "a@a.org", {"b@z.org"}));
}

TEST(Assertion, NamesWhatIsWrong) {
  const auto assertion = parse_assertion(
      R"({"count": {"max": 1}, "each": {"header:x-kind": {"equals": "a"}, "subject": {"not_contains": "spam"}}})",
      TimePoint());
  ASSERT_TRUE(assertion) << assertion.error();
  std::vector<Message> found;
  found.push_back(message("X-Kind: a\r\nSubject: fine\r\n\r\n"));
  EXPECT_TRUE(count_failures(*assertion, 1).empty());
  EXPECT_TRUE(message_failures(*assertion, found[0]).empty());
  found.push_back(message("X-Kind: b\r\nSubject: spam\r\n\r\n"));
  EXPECT_EQ(count_failures(*assertion, 2).size(), 1u);
  EXPECT_EQ(message_failures(*assertion, found[1]).size(), 2u);
}

TEST(Assertion, KnowsTheTextOfMailThatIsOnlyHtml) {
  const auto assertion = parse_assertion(
      R"({"each": {"text": {"contains": "your code is 42", "not_contains": "<b>"}}})", TimePoint());
  ASSERT_TRUE(assertion) << assertion.error();
  const auto html = message("Content-Type: text/html\r\n\r\n<p>your code is <b>42</b></p>\r\n");
  EXPECT_TRUE(message_failures(*assertion, html).empty());
}

constexpr std::string_view kWithPicture =
    "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n";
constexpr std::string_view kPicture =
    "\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <p@x>\r\nContent-Transfer-Encoding: "
    "base64\r\n\r\niVBORw0K\r\n--b\r\nContent-Type: image/svg+xml\r\nContent-ID: "
    "<s>\r\n\r\n<svg/>\r\n--b--\r\n";

TEST(ShownHtml, HasItsPicturesInIt) {
  const auto raw = std::string(kWithPicture) +
                   "<img src='cid:p@x'><img src='cid:p%40x'><img src='cid:s'><img src='cid:none'>" +
                   std::string(kPicture);
  const auto html = shown_html(mime::parse(raw));
  const auto picture = std::string("<img src=\"data:image/png;base64,iVBORw0K\">");
  EXPECT_NE(html.find(picture + picture), std::string::npos) << html;
  EXPECT_EQ(html.find("svg"), html.npos) << "it could do more than be looked at";
}

TEST(ShownHtml, IsNotMuchLargerThanTheMessageHoweverOftenItRefersToAPicture) {
  std::string raw(kWithPicture);
  for (int i = 0; i < 100'000; ++i) raw += "<img src='cid:p@x'>";
  EXPECT_LT(shown_html(mime::parse(raw + std::string(kPicture))).size(), 8u << 20);
}

TEST(ShownHtml, ShowsLargePicturesThatAreNotInBase64OnceAndLooksAtThemNoMore) {
  std::string raw(kWithPicture);
  for (int i = 0; i < 20'000; ++i) raw += "<img src='cid:p'>";
  raw += "\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <p>\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
  const std::string line(70, 'x');
  for (int i = 0; i < 60'000; ++i) raw += line + "\r\n";
  raw += "--b--\r\n";
  const auto html = shown_html(mime::parse(raw));
  const auto first = html.find("data:image/png");
  EXPECT_NE(first, html.npos);
  EXPECT_EQ(html.find("data:image/png", first + 1), html.npos);
}

TEST(Downloads, KeepTheirCharset) {
  EXPECT_EQ(download_type("text/plain", "iso-8859-15"), "text/plain; charset=iso-8859-15");
  EXPECT_EQ(download_type("text/plain", "x\r\nSet-Cookie: a=b"), "text/plain");
  EXPECT_EQ(download_type("", "utf-8"), "application/octet-stream");
}

// However it is cut into pieces, no character is, and what is no UTF-8 is replaced as it would be in one.
TEST(MailHogJson, IsMadeInPiecesThatFitTogether) {
  for (size_t shift = 0; shift < 4; ++shift) {
    auto raw = "Subject: long\r\n\r\n" + std::string(shift, '.');
    while (raw.size() < 300'000)
      raw +=
          "Gr\xC3\xBC\xC3\x9F"
          "e, \xE6\x97\xA5\xF0\x9F\x98\x80 \x80\xE6\x97\r\n";
    const auto mail = message(raw);
    MessageJson json(mail, "h");
    std::string all;
    size_t pieces = 0;
    for (bool more = true; more; ++pieces) {
      std::string piece;
      more = json.next(piece);
      EXPECT_LT(piece.size(), 300'000u);
      all += piece;
    }
    EXPECT_GT(pieces, 8u);
    std::string at_once;
    append_message_json(at_once, mail, "h");
    EXPECT_EQ(all, at_once);
    JsonDocument document;
    const auto parsed = document.parse(all);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->find("Raw")->find("Data")->string(),
              mime::to_valid_utf8(raw.substr(0, raw.size() - 2)));
    EXPECT_EQ(parsed->find("Content")->find("Headers")->find("Subject")->kind(), JsonValue::Kind::array);
  }
}

TEST(Event, HasBothFormsOfOneText) {
  const Event event(R"({"ID":"x"})");
  EXPECT_EQ(event.server_sent(), "data: {\"ID\":\"x\"}\n\n");
  EXPECT_EQ(event.json(), "{\"ID\":\"x\"}\n");
  EXPECT_EQ(event.frame_head(), "\x81\x0b");
}

// Takes what is put, as slowly as a disk that is in trouble.
class SlowStore final : public test::EmptyStore {
 public:
  explicit SlowStore(ManualClock& clock) : clock_(clock) {}
  store::Async<store::WriteResult> put_item(store::PutItemRequest) override {
    ++puts;
    clock_.advance(std::chrono::seconds{30});
    co_return store::WriteResult{};
  }
  int puts = 0;

 private:
  ManualClock& clock_;
};

TEST(Mail, IsWrittenOnceHoweverLongThatTakes) {
  ManualClock clock;
  SlowStore store(clock);
  Mail mail(store, clock, {});
  smtp::Envelope envelope{.from = "a@x.org", .to = {"b@y.org"}, .data = "Subject: slow\r\n\r\n"};
  const auto id = test::run(mail.take(std::move(envelope)));
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(store.puts, 1);
}

}  // namespace
}  // namespace tabella::mail

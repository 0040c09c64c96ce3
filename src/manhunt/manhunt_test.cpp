#include <gtest/gtest.h>

#include "base/text.h"
#include "base/time_text.h"
#include "base/utf8.h"
#include "manhunt/calendar.h"
#include "manhunt/channel.h"
#include "manhunt/links.h"
#include "manhunt/timeline.h"
#include "manhunt/twilio.h"
#include "manhunt/wording.h"

namespace tabella::manhunt {
namespace {

TimePoint at(std::string_view text) { return parse_time(text).value(); }

TEST(AttemptIds, AreTextsThatSortAndReadBack) {
  const AttemptId id{.round = 2, .step = 1, .track = 3, .number = 12};
  EXPECT_EQ(id.text(), "a02.01.03.12");
  EXPECT_EQ(id.step_text(), "s02.01");
  EXPECT_EQ(AttemptId::parse(id.text()), id);
  for (const auto* wrong :
       {"", "a", "a1.1.1.1", "a01.01.01", "a01.01.01.00", "a01.01.01.01 ", "b01.01.01.01", "a01.01.01.-1"})
    EXPECT_FALSE(AttemptId::parse(wrong)) << wrong;
}

TEST(Links, AreGoodForTheirOwnAttemptAndTimeOnly) {
  const Search search{.id = make_id('s'), .nonce = "nonce"};
  const auto text = link_token(search, {}, at("2026-11-18T09:00:00Z"));
  const auto token = parse_link_token(text);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->search, search.id);
  EXPECT_EQ(token->expires, at("2026-11-18T09:00:00Z"));
  EXPECT_TRUE(is_genuine(*token, search));
  EXPECT_FALSE(is_genuine(*token, {.id = search.id, .nonce = "another"}));
  auto longer = *token;
  longer.expires += std::chrono::hours(1);
  EXPECT_FALSE(is_genuine(longer, search));
  auto other = *token;
  other.attempt.number = 2;
  EXPECT_FALSE(is_genuine(other, search));
  for (const auto* end : {"", "~a01.01.01.01~zz~x", "~x~1~x", "~a01.01.01.01~-1~x", "~~~"})
    EXPECT_FALSE(parse_link_token(search.id + end)) << end;
  for (const auto* row : {"domain#shop", "bundle#m1.1.0", "c0123456789abcdefghij", "s1"})
    EXPECT_FALSE(parse_link_token(row + text.substr(search.id.size()))) << "that is no search: " << row;
}

TEST(Links, AreNotShownToWhoMayNotAnswer) {
  EXPECT_EQ(without_links("1: https://a.example/manhunt/r/abc~def 2: http://b/x/manhunt/r/q\nend"),
            "1: https://a.example/manhunt/r/… 2: http://b/x/manhunt/r/…\nend");
  EXPECT_EQ(without_links("nothing"), "nothing");
}

TEST(Destinations, AreCheckedByTheirChannel) {
  EXPECT_EQ(problem_with_destination(ChannelKind::phone, "+390612345678"), "");
  EXPECT_EQ(problem_with_destination(ChannelKind::email, "ann@example.com"), "");
  EXPECT_EQ(problem_with_destination(ChannelKind::webhook, "https://example.com/hook"), "");
  for (const auto* wrong : {"", "0612345678", "+39 06", "+3906x", "+1234567890123456"})
    EXPECT_NE(problem_with_destination(ChannelKind::text, wrong), "") << wrong;
  for (const auto* wrong : {"", "ann", "@example.com", "ann@", "a b@c.d", "ann@x\r\nBcc: e@v"})
    EXPECT_NE(problem_with_destination(ChannelKind::email, wrong), "") << wrong;
  for (const auto* wrong : {"", "javascript:alert(1)", "ftp://x/", "/hook"})
    EXPECT_NE(problem_with_destination(ChannelKind::webhook, wrong), "") << wrong;
}

TEST(Wordings, AreInTheContactsLanguageAndShowWhatIsMissing) {
  Domain domain{.name = "shop", .title = "Shop"};
  const Search search{.id = "s1", .metadata = R"({"summary":"Disco pieno"})"};
  const Contact ann{.name = "Ann", .language = "it"};
  const Occasion text{.domain = domain,
                      .search = search,
                      .contact = ann,
                      .kind = ChannelKind::text,
                      .link = "http://l",
                      .code = "ABCD"};
  EXPECT_EQ(say(text).text, "Shop: Disco pieno\nRisponda 1 per accettare, 2 per rifiutare, ABCD. http://l");
  domain.wordings["text#it"] = {.text = "{{contact.name}}: {{summary}}, {{host}} {{link}}"};
  const auto said = say(text);
  EXPECT_EQ(said.text, "Ann: Disco pieno, [host] http://l");
  EXPECT_EQ(said.missing, std::vector<std::string>{"host"});
  domain.wordings["text#it"] = {.text = "{{#each x}}"};
  EXPECT_NE(say(text).problem, "");
  EXPECT_EQ(say(text).text.substr(0, 17), "Shop: Disco pieno") << "what cannot be read stops nothing";
}

TEST(Wordings, SayInWhichLanguageTheyAre) {
  Domain domain{.name = "shop"};
  const Search search{.id = "s1", .metadata = R"({"summary":"Disk full"})"};
  const auto language = [&](const std::string& spoken) {
    const Contact ann{.name = "Ann", .language = spoken};
    return say({.domain = domain, .search = search, .contact = ann, .kind = ChannelKind::phone}).language;
  };
  EXPECT_EQ(language("de-AT"), "de-AT") << "our own German";
  EXPECT_EQ(language("pl"), "en") << "we have no words of our own in Polish";
  EXPECT_EQ(language("fil"), "en");
  domain.wordings["phone#pl"] = {.text = "{{summary}}!"};
  EXPECT_EQ(language("pl-PL"), "pl-PL");
  domain.wordings["phone#pl"] = {.text = "{{#each x}}"};
  EXPECT_EQ(language("pl"), "en") << "its template says nothing";
  domain.language = "it";
  domain.wordings["phone#it"] = {.text = "{{summary}}!"};
  EXPECT_EQ(language("sv"), "it") << "the domain's template";
}

TEST(Wordings, AreCutBeforeWhatTheyAreAnsweredBy) {
  const Domain domain{.name = "shop"};
  std::string summary;
  for (int i = 0; i < 3'000; ++i) summary += "ü\\n";
  const Search search{.id = "s1", .metadata = R"({"summary":")" + summary + R"("})"};
  const Contact ann;
  Occasion occasion{.domain = domain, .search = search, .contact = ann, .link = "http://l", .code = "ABCD"};
  for (const auto kind : kChannelKinds) {
    occasion.kind = kind;
    const auto said = say(occasion);
    EXPECT_EQ(printable(said.subject), said.subject) << name_of(kind);
    EXPECT_LE(said.subject.size(), 300u);
    EXPECT_TRUE(is_valid_utf8(said.subject) && is_valid_utf8(said.text)) << name_of(kind);
    if (kind != ChannelKind::text) continue;
    EXPECT_LE(said.text.size(), 1'600u);
    EXPECT_TRUE(said.text.ends_with("ABCD. http://l"));
  }
  occasion.kind = ChannelKind::text;
  occasion.replies = false;
  EXPECT_EQ(say(occasion).text.find("ABCD"), std::string::npos) << "nobody would get it";
}

TEST(QuietHours, EndOnTheWallThroughDst) {
  // Clocks are put forward in Rome on 29 March 2026, at 01:00 UTC.
  const Contact ann{.timezone = "Europe/Rome", .quiet = DailyWindow{.from = 22 * 60, .to = 7 * 60}};
  EXPECT_EQ(after_quiet_hours(ann, at("2026-03-28T20:00:00Z")), at("2026-03-28T20:00:00Z"));
  EXPECT_EQ(after_quiet_hours(ann, at("2026-03-28T21:30:00Z")), at("2026-03-29T05:00:00Z"));
  const Contact weekend{.timezone = "Europe/Rome", .quiet = DailyWindow{.days = 0x60}};
  EXPECT_EQ(after_quiet_hours(weekend, at("2026-11-21T12:00:00Z")), at("2026-11-22T23:00:00Z"));
  // They are put back on 25 October 2026, at 01:00 UTC: 02:30 comes twice, and it is 02:10 the second time.
  const Contact night{.timezone = "Europe/Rome", .quiet = DailyWindow{.from = 22 * 60, .to = 150}};
  EXPECT_EQ(after_quiet_hours(night, at("2026-10-25T01:10:00Z")), at("2026-10-25T01:30:00Z"));
  const Contact always{.quiet = DailyWindow{}};
  EXPECT_EQ(after_quiet_hours(always, at("2026-11-21T12:00:00Z")), at("2026-11-21T12:00:00Z"))
      << "never is no answer";
}

TEST(Calendars, AreFoldedEscapedAndTheSameAgain) {
  OnCallSchedule schedule{
      .title = "Primary; or, so it is said, \\ the first of a rather long list of schedules indeed"};
  schedule.rotations.push_back({.contacts = {"c1"}, .start = *parse_local_time("2026-01-05T09:00:00")});
  const auto make = [&] {
    return calendar_of(schedule, "primary", {{"c1", "Zoë, Ä"}}, at("2026-01-01T00:00:00Z"),
                       at("2026-02-01T00:00:00Z"))
        .value();
  };
  const auto calendar = make();
  EXPECT_EQ(calendar, make());
  EXPECT_NE(calendar.find("DTSTART:20260105T090000Z\r\n"), std::string::npos);
  EXPECT_NE(calendar.find("SUMMARY:Zoë\\, Ä (Primary\\; or\\, so it is said\\, \\\\ the"), std::string::npos);
  size_t begin = 0;
  while (begin < calendar.size()) {
    const auto end = calendar.find("\r\n", begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 75u);
    begin = end + 2;
  }
}

TEST(Twiml, SpeaksEachTextInItsLanguage) {
  const auto spoken = [](const std::string& language) {
    const Message message{.search = "s1", .language = language, .text = "text"};
    const auto twiml = call_twiml(message, "http://here/");
    std::vector<std::string> languages;
    for (size_t at = 0; (at = twiml.find("language=\"", at)) != std::string::npos;) {
      at += 10;
      languages.push_back(twiml.substr(at, twiml.find('"', at) - at));
    }
    return languages;
  };
  using Languages = std::vector<std::string>;  // of the text, of what can be pressed, of the goodbye
  EXPECT_EQ(spoken("en-gb"), (Languages{"en-GB", "en-GB", "en-GB"}));
  EXPECT_EQ(spoken("es-AR"), (Languages{"es-ES", "es-ES", "es-ES"}));
  EXPECT_EQ(spoken("pl"), (Languages{"pl-PL", "en-US", "en-US"})) << "we ask in English";
  EXPECT_EQ(spoken("xx"), (Languages{"en-US", "en-US", "en-US"}));
  EXPECT_EQ(spoken(""), (Languages{"en-US", "en-US", "en-US"}));
}

TEST(Twiml, CannotBeLeftByWhatIsSaid) {
  const Message message{.search = "s1", .language = "de", .text = "</Say><Hangup/>&\"]]>\x01"};
  const auto twiml =
      call_twiml(message, "http://here/manhunt/callbacks/t/call?search=s1&attempt=a01.01.01.01");
  EXPECT_EQ(twiml.find("<Hangup"), std::string::npos);
  EXPECT_NE(twiml.find("&lt;/Say&gt;&lt;Hangup/&gt;&amp;&quot;]]&gt;"), std::string::npos);
  EXPECT_NE(twiml.find("call?search=s1&amp;attempt="), std::string::npos);
  EXPECT_NE(twiml.find("de-DE"), std::string::npos);
  const Message novel{.search = "s1", .text = std::string(20'000, '<')};
  EXPECT_LT(call_twiml(novel, "http://here").size(), 4000u) << "what Twilio takes";
}

}  // namespace
}  // namespace tabella::manhunt

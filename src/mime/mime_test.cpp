#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "mime/encodings.h"
#include "mime/fold.h"
#include "mime/header.h"
#include "mime/html.h"
#include "mime/message.h"
#include "mime/utf8.h"

namespace tabella::mime {
namespace {

TEST(Words, AreDecodedWhateverTheyAreOf) {
  EXPECT_EQ(decode_words("=?UTF-8?B?R3LDvMOfZQ==?="), "Grüße");
  EXPECT_EQ(decode_words("=?iso-8859-1?Q?caf=E9_ol=E9?= ok"), "café olé ok");
  EXPECT_EQ(decode_words("=?utf-8?q?a?= =?utf-8?q?b?="), "ab");
  EXPECT_EQ(decode_words("a =?utf-8?q?b?= c"), "a b c");
  EXPECT_EQ(decode_words("=?ISO-2022-JP?B?GyRCRnxLXBsoQg==?="), "日本");
  EXPECT_EQ(decode_words("=?UTF-8?B?5pel?= =?UTF-8?B?5pys?="), "日本");
  // A character that two words share.
  EXPECT_EQ(decode_words("=?UTF-8?B?5g==?= =?UTF-8?B?l6U=?="), "日");
  EXPECT_EQ(decode_words("=?bogus?B?YQ==?="), "a");
  for (const auto* broken : {"=?", "=?utf-8", "=?utf-8?", "=?utf-8?x?y?=", "=?utf-8?B?a b?="})
    EXPECT_EQ(decode_words(broken), broken);
}

TEST(Parameters, AreReadAsRfc2231HasThem) {
  const auto plain = parse_parameters("text/Plain; charset=\"utf-8\"; Name=a.txt; x");
  EXPECT_EQ(plain.value, "text/plain");
  EXPECT_EQ(plain.get("charset"), "utf-8");
  EXPECT_EQ(plain.get("name"), "a.txt");
  EXPECT_EQ(parse_parameters("a/b; filename*=UTF-8''na%C3%AFve%20file.txt").get("filename"),
            "naïve file.txt");
  EXPECT_EQ(parse_parameters("a/b; filename*0=\"long\"; filename*1=\"name\"").get("filename"), "longname");
  EXPECT_EQ(parse_parameters("a/b; filename*0*=utf-8''%e2%82; filename*1*=%ac").get("filename"), "€");
  EXPECT_EQ(parse_parameters("a/b; name=\"=?utf-8?q?=C3=BC?=.pdf\"").get("name"), "ü.pdf");
  EXPECT_EQ(parse_parameters("multipart/mixed; boundary=\"a;b\\\"c\"").get("boundary"), "a;b\"c");
}

TEST(Addresses, AreReadInAllTheirForms) {
  const auto read = [](std::string_view text) {
    std::string all;
    for (const auto& address : parse_addresses(text)) all += address.name + "|" + address.address + ";";
    return all;
  };
  EXPECT_EQ(read("a@x.org"), "|a@x.org;");
  EXPECT_EQ(read("Bob <b@x.org>, \"Doe, Jane\" <j@x.org>"), "Bob|b@x.org;Doe, Jane|j@x.org;");
  EXPECT_EQ(read("Team: a@x.org, B <b@x.org>;, c@x.org"), "|a@x.org;B|b@x.org;|c@x.org;");
  EXPECT_EQ(read("a@x.org (comment (nested))"), "|a@x.org;");
  EXPECT_EQ(read("=?utf-8?q?M=C3=BCller?= <m@x.org>"), "Müller|m@x.org;");
  EXPECT_EQ(read("undisclosed-recipients:;"), "");
}

TEST(Dates, AreReadWithTheirZones) {
  EXPECT_EQ(parse_date("Wed, 31 Jul 2019 13:22:56 +0200"), 1564572176);
  EXPECT_EQ(parse_date("31 Jul 19 11:22:56 GMT"), 1564572176);
  EXPECT_FALSE(parse_date("yesterday"));
  EXPECT_FALSE(parse_date("32 Jul 2019 11:22:56 +0000"));
}

TEST(Fold, ForgetsCaseAccentsAndBlanks) {
  EXPECT_EQ(fold("HÉLLO  Wörld\r\n\tx"), "hello world x");
  EXPECT_EQ(fold("Straße"), "strasse");
  EXPECT_EQ(fold("ΑΘΗΝΑ"), fold("αθηνα"));
  EXPECT_EQ(fold("Москва́"), "москва");
  EXPECT_EQ(fold("ＡＢＣ"), "abc");
  EXPECT_EQ(fold("e\xCC\x81t\xC3\xA9"), "ete");
  EXPECT_EQ(fold("東京"), "東京");
  EXPECT_EQ(fold("\xff\xfe"), "\xff\xfe");
}

constexpr std::string_view kMixed =
    "From: a@x.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: multipart/mixed; "
    "boundary=outer\r\n\r\n"
    "preamble\r\n--outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n"
    "--inner\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: "
    "quoted-printable\r\n\r\ncaf=E9=\r\n!\r\n"
    "--inner\r\nContent-Type: text/html\r\n\r\n<p>caf\xC3\xA9</p>\r\n--inner--\r\n"
    "--outer\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--outer--\r\nepilogue\r\n";

TEST(Message, IsTakenApart) {
  const auto message = parse(kMixed);
  EXPECT_EQ(message.subject, "Grüße");
  ASSERT_EQ(message.parts.size(), 3u);
  EXPECT_EQ(message.text()->text(), "café!");
  EXPECT_EQ(message.html()->text(), "<p>café</p>");
  EXPECT_EQ(message.parts[2].content(), "%PDF");
  EXPECT_EQ(message.parts[2].filename, "a.pdf");
  EXPECT_EQ(message.attachments(), 1u);
}

TEST(Message, TellsHowALongTextBegins) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "é日";
  for (const auto* encoding : {"8bit", "base64"}) {
    const bool plain = encoding == std::string_view("8bit");
    const auto raw =
        fmt::format("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {}\r\n\r\n{}",
                    encoding, plain ? text : to_base64(text));
    const auto message = parse(raw);
    for (size_t most = 1; most < 40; ++most) {
      const auto begins = message.text()->text_within(most);
      EXPECT_TRUE(text.starts_with(begins)) << most << " of " << encoding << ": " << begins;
      EXPECT_GT(begins.size() + 5, plain ? most : most * 3 / 4);
    }
    EXPECT_EQ(message.text()->text_within(raw.size()), text);
  }
}

TEST(Message, HasLineFeedsOnlyToo) {
  std::string text(kMixed);
  std::erase(text, '\r');
  const auto message = parse(text);
  ASSERT_EQ(message.parts.size(), 3u);
  EXPECT_EQ(message.text()->text(), "café!");
}

TEST(Message, IsSeenHoweverBrokenItIs) {
  for (const std::string_view broken :
       {"", "\r\n", "no headers at all", "Content-Type: multipart/mixed\r\n\r\nno boundary",
        "Content-Type: multipart/mixed; boundary=x\r\n\r\nnever there",
        "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x--\r\n",
        "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nno end", "Content-Type: ;;;\r\n\r\nbody",
        "Content-Transfer-Encoding: base64\r\n\r\n!!!!", "Subject: \xff\xfe\r\n\r\n\xff",
        "Content-Type: text/plain; charset=x-unheard-of\r\n\r\n\xff"}) {
    const auto message = parse(broken);
    ASSERT_GE(message.parts.size(), 1u) << broken;
    for (const auto& part : message.parts) EXPECT_TRUE(is_valid_utf8(part.text()));
    for (const auto& header : message.headers)
      EXPECT_TRUE(is_valid_utf8(header.value) && is_valid_utf8(header.raw));
  }
}

TEST(Message, IsTheSameTextInManyCharsets) {
  EXPECT_EQ(from_charset("\xcf\xf0\xe8\xe2\xe5\xf2", "windows-1251"), "Привет");
  EXPECT_EQ(from_charset("\x93\xfa\x96\x7b", "Shift_JIS"), "日本");
  EXPECT_EQ(from_charset("\xc4\xe3\xba\xc3", "gb2312"), "你好");
  EXPECT_EQ(from_charset("caf\xe9", ""), "café");
  EXPECT_EQ(from_charset("caf\xe9", "utf-8"), "café");
  // Not for iconv, whatever it knows.
  EXPECT_EQ(from_charset("a", "ISO-2022-CN-EXT"), "a");
}

std::string repeat(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Hostile, NestedGroupsInAnAddressDoNotOverflowTheStack) {
  EXPECT_LE(parse("To: " + repeat("a:", 500'000) + "\r\n\r\n").to.size(), 1u);
  EXPECT_LE(parse("To: " + repeat("(", 500'000) + "\r\n\r\n").to.size(), 1u);
}

TEST(Hostile, ManyParametersTakeNoTime) {
  const auto begun = std::chrono::steady_clock::now();
  parse("Content-Type: text/plain; " + repeat("a*0=b; ", 100'000) + "\r\n\r\nx");
  parse("Content-Type: text/plain; " + repeat("=?utf-8?q?x?= ", 100'000) + "\r\n\r\nx");
  std::string words;
  for (int i = 0; i < 16; ++i) words += "X-W" + std::to_string(i) + ": " + repeat("=?x?q?a", 9'000) + "\r\n";
  parse(words + "\r\nx");
  // Minutes, if it grew with the square.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST(Hostile, DeepNestingEndsSomewhere) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "Content-Type: multipart/mixed; boundary=b" + std::to_string(i) + "\r\n\r\n--b" +
            std::to_string(i) + "\r\n";
  text += repeat("--\r\n", 500'000);
  const auto message = parse(text);
  EXPECT_TRUE(message.cut_short);
  EXPECT_GE(message.parts.size(), 1u);
}

TEST(Hostile, ManyPartsEndSomewhere) {
  const auto message =
      parse("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + repeat("--b\r\n\r\nx\r\n", 100'000));
  EXPECT_TRUE(message.cut_short);
  EXPECT_EQ(message.parts.size(), 1000u);
}

TEST(Base64, GoesOnAfterPaddingAndSkipsWhatIsNone) {
  EXPECT_EQ(decode_base64("YQ==Yg=="), "ab");
  EXPECT_EQ(decode_base64("Y Q\r\n=="), "a");
  EXPECT_EQ(decode_base64(""), "");
}

TEST(QuotedPrintable, KeepsWhatIsMalformed) {
  EXPECT_EQ(decode_quoted_printable("a=3Db=\r\nc=zz="), "a=bc=zz");
  EXPECT_EQ(decode_quoted_printable("soft=  \nend"), "softend");
}

TEST(Html, BecomesText) {
  EXPECT_EQ(
      fold(html_to_text("<p>Caf&eacute; &amp; <b>bar</b></p><script>evil()</script><style>x{}</style>")),
      " cafe & bar ");
  EXPECT_NE(html_to_text("<a href='https://x.org/confirm'>go</a>").find("https://x.org/confirm"),
            std::string::npos);
}

std::string cleaned(std::string_view html) {
  return clean_html(
      html, [](std::string_view id) { return id == "pic" ? std::string("/parts/1") : std::string(); });
}

TEST(CleanHtml, LeavesNothingThatRunsLoadsOrPosts) {
  for (const std::string_view harm : {"<script>alert(1)</script>",
                                      "<SCRIPT/x>alert(1)</SCRIPT\n>",
                                      "<img src=x onerror=alert(1)>",
                                      "<a href='javascript:alert(1)'>x</a>",
                                      "<a href=' java\tscript:alert(1)'>x</a>",
                                      "<iframe src='https://evil'></iframe>",
                                      "<svg><script>alert(1)</script></svg>",
                                      "<form action='https://evil'><input name=p></form>",
                                      "<base href='https://evil'>",
                                      "<meta http-equiv=refresh content='0;https://evil'>",
                                      "<link rel=stylesheet href='https://evil'>",
                                      "<img src='https://evil/track.gif'>",
                                      "<div style='background:url(https://evil)'>x</div>",
                                      "<div style='background:\\75rl(https://evil)'>x</div>",
                                      "<style>@import 'https://evil';</style>",
                                      "<style>a{background:u/**/rl(https://evil)}</style>",
                                      "<style></style><script>alert(1)</script>",
                                      "<object data='https://evil'></object>",
                                      "<math><mtext></p><script>alert(1)</script></math>",
                                      "<table background='https://evil'>",
                                      "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
                                      "<<script>alert(1)//<</script>",
                                      "<img src='data:image/svg+xml,<svg onload=alert(1)>'>",
                                      "<template><script>alert(1)</script></template>",
                                      "<!--><script>alert(1)</script>-->",
                                      "<title><script>alert(1)</script></title>",
                                      "<p style=\"x:expression(alert(1))\">",
                                      "<a href=\"&#106;avascript:alert(1)\">x</a>"}) {
    const auto html = cleaned(harm);
    for (const std::string_view never :
         {"<script", "onerror=", "javascript:", "<iframe", "<svg", "<form", "<input", "<base", "http-equiv",
          "<link", " src=\"https://", "url(", "@import", "<object", "<math", "background=\"",
          "data:text/html", "expression("})
      EXPECT_EQ(html.find(never), std::string::npos) << harm << " -> " << html;
  }
}

TEST(CleanHtml, KeepsWhatIsHarmless) {
  EXPECT_NE(cleaned("<p class=x>a <b>b</b></p>").find("<p class=\"x\">a <b>b</b></p>"), std::string::npos);
  EXPECT_NE(cleaned("<img src='cid:pic' alt='\"q\"'>").find("<img src=\"/parts/1\" alt=\"&quot;q&quot;\">"),
            std::string::npos);
  EXPECT_NE(cleaned("<a href='https://x.org/?a=1&b=2'>x</a>").find("href=\"https://x.org/?a=1&amp;b=2\""),
            std::string::npos);
  EXPECT_NE(cleaned("<style>p{color:red}</style>").find("<style>p{color:red}</style>"), std::string::npos);
  EXPECT_NE(cleaned("1 < 2 &lt; 3").find("1 &lt; 2 &lt; 3"), std::string::npos);
}

TEST(CleanHtml, KeepsTheNamesThatStylesAndAnchorsReferTo) {
  for (const std::string_view kept :
       {"<h1 id=\"top\">x</h1>", "<a name=\"end\">x</a>", "<a href=\"#end\">down</a>",
        "<style>#top{color:red}</style>", "<style media=\"(max-width:600px)\">.x{width:100%}</style>",
        "<td headers=\"h1\">x</td>", "<label for=\"a\">x</label>", "<img alt=\"x\" usemap=\"#m\">",
        "<map name=\"m\"><area shape=\"rect\" coords=\"0,0,9,9\" href=\"#end\"></map>"})
    EXPECT_NE(cleaned(kept).find(kept), std::string::npos) << kept << " -> " << cleaned(kept);
}

}  // namespace
}  // namespace tabella::mime

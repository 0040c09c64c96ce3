#include "mime/compose.h"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "base/utf8.h"
#include "mime/encodings.h"
#include "mime/field.h"
#include "mime/message.h"

namespace tabella::mime {
namespace {

Draft a_draft() {
  return {.from = {"", "a@x.org"},
          .to = {{"", "b@y.org"}},
          .subject = "Hello",
          .text = "Hello",
          .message_id = "1@x.org",
          .date = TimePoint(std::chrono::seconds(1'564'572'176))};
}

std::string composed(const Draft& draft) {
  const auto message = compose(draft);
  EXPECT_TRUE(message) << message.error().message;
  return message ? message->bytes : "";
}

std::string refusal_of(const Draft& draft) {
  const auto message = compose(draft);
  EXPECT_FALSE(message);
  return message ? "" : message.error().message;
}

// Every line ends with CR LF and is as short as it has to be.
void expect_good_lines(std::string_view message) {
  ASSERT_TRUE(message.ends_with("\r\n"));
  for (auto line : split(message.substr(0, message.size() - 1), '\n')) {
    ASSERT_TRUE(line.ends_with('\r')) << line;
    line.remove_suffix(1);
    ASSERT_EQ(line.find_first_of(std::string_view("\r\0", 2)), std::string_view::npos) << line;
    ASSERT_LE(line.size(), 998u) << line;
  }
}

// Text of all scripts, with what is special in headers.
class RandomText {
 public:
  std::string operator()(size_t most) {
    static const std::vector<std::string> kPieces = {
        "a",    "Zz", " ",  "  ",      "\"",    "\\", "(", ")", "<", ">",    "@",
        ",",    ";",  ":",  ".",       "=?",    "?=", "_", "=", "ü", "ß",    "€",
        "日本", "語", "😀", "e\u0301", "עברית", "نص", "%", "'", "*", "word", "=?utf-8?q?x?=",
        "-",    "/",  "0"};
    std::string text;
    const auto pieces = std::uniform_int_distribution<size_t>(0, most)(engine_);
    for (size_t i = 0; i < pieces; ++i)
      text += kPieces[std::uniform_int_distribution<size_t>(0, kPieces.size() - 1)(engine_)];
    return text;
  }
  std::string bytes(size_t most) {
    std::string text(std::uniform_int_distribution<size_t>(0, most)(engine_), '\0');
    for (char& c : text) c = static_cast<char>(engine_());
    return text;
  }
  bool coin() { return engine_() % 2 == 0; }

 private:
  std::mt19937 engine_{20260101};
};

// Blanks at the ends of a name say nothing.
std::string trimmed(std::string_view text) { return std::string(trim(text)); }

TEST(Compose, WritesTheSimplestMessage) {
  EXPECT_EQ(composed(a_draft()),
            "Message-ID: <1@x.org>\r\n"
            "Date: Wed, 31 Jul 2019 11:22:56 +0000\r\n"
            "From: a@x.org\r\n"
            "To: b@y.org\r\n"
            "Subject: Hello\r\n"
            "MIME-Version: 1.0\r\n"
            "Content-Type: text/plain; charset=\"utf-8\"\r\n"
            "Content-Transfer-Encoding: 7bit\r\n"
            "\r\n"
            "Hello\r\n");
}

TEST(Compose, ComesBackFromTheParserAsItWas) {
  RandomText random;
  for (int round = 0; round < 2000; ++round) {
    auto draft = a_draft();
    draft.from.name = random(12);
    draft.to = {{random(40), "b@y.org"}, {random(3), "c.d+e@y.org"}};
    draft.cc = {{random(5), "grüße@bücher.example"}};
    draft.subject = random(80);
    draft.headers = {{"X-Note", random(40)}};
    if (random.coin()) draft.html = "<p>" + random(200) + "\n\n\t \n" + random(100) + " ";
    draft.text = random.coin() ? std::optional(random(300)) : std::nullopt;
    const auto files = round % 4;
    for (int i = 0; i < files; ++i)
      draft.attachments.push_back({.name = std::to_string(i) + random(30),
                                   .content_type = i == 1 ? "text/csv; charset=x" : "",
                                   .content_id = i == 2 ? "logo@x" : "",
                                   .bytes = random.bytes(300)});
    const auto message = composed(draft);
    expect_good_lines(message);
    const auto parsed = parse(message);
    EXPECT_EQ(parsed.subject, draft.subject);
    EXPECT_EQ(find_header(parsed.headers, "x-note")->value, draft.headers[0].second);
    ASSERT_EQ(parsed.from.size(), 1u);
    EXPECT_EQ(parsed.from[0].name, trimmed(draft.from.name)) << message;
    ASSERT_EQ(parsed.to.size(), 2u) << message;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(parsed.to[i].name, trimmed(draft.to[i].name)) << message;
      EXPECT_EQ(parsed.to[i].address, draft.to[i].address);
    }
    ASSERT_EQ(parsed.cc.size(), 1u);
    EXPECT_EQ(parsed.cc[0].address, draft.cc[0].address);
    const auto whole_line = [&](std::string text) {
      if (parsed.parts.size() == 1 && !text.empty() && !text.ends_with("\r\n") &&
          parsed.parts[0].encoding != "base64")
        text += "\r\n";
      return text;
    };
    if (draft.text && !draft.text->empty()) EXPECT_EQ(parsed.text()->text(), whole_line(*draft.text));
    if (draft.html) {
      auto html = *draft.html;
      for (size_t at = 0; (at = html.find('\n', at)) != std::string::npos; at += 2) html.insert(at, "\r");
      EXPECT_EQ(parsed.html()->text(), whole_line(html));
    }
    size_t found = 0;
    for (const auto& part : parsed.parts) {
      if (part.disposition.empty()) continue;
      const auto name = part.filename;
      const auto file = std::ranges::find(draft.attachments, name, &Attachment::name);
      ASSERT_NE(file, draft.attachments.end()) << name << "\n" << message;
      EXPECT_EQ(part.content(), file->bytes);
      EXPECT_EQ(part.content_id, file->content_id);
      ++found;
    }
    EXPECT_EQ(found, draft.attachments.size());
    if (HasFailure()) return;
  }
}

TEST(Compose, NestsWhatItIsGiven) {
  const auto shape = [](const Draft& draft) {
    const auto message = composed(draft);
    std::string types;
    for (const auto line : split(message, '\n'))
      if (line.starts_with("Content-Type: "))
        types += lower(line.substr(14, std::min(line.find(';'), line.size()) - 14)) + " ";
    return types;
  };
  auto draft = a_draft();
  draft.html = "<img src=cid:i@x>";
  EXPECT_EQ(shape(draft), "multipart/alternative text/plain text/html ");
  draft.attachments = {{.name = "i.png", .content_type = "image/png", .content_id = "i@x", .bytes = "i"}};
  EXPECT_EQ(shape(draft), "multipart/alternative text/plain multipart/related text/html image/png ");
  draft.attachments.push_back({.name = "a.pdf", .content_type = "application/pdf", .bytes = "p"});
  EXPECT_EQ(shape(draft),
            "multipart/mixed multipart/alternative text/plain multipart/related text/html image/png "
            "application/pdf ");
  draft.html.reset();
  EXPECT_EQ(shape(draft), "multipart/mixed text/plain image/png application/pdf ");
  draft.text.reset();
  draft.attachments.clear();
  EXPECT_EQ(shape(draft), "text/plain ");
  draft.html = "x";
  EXPECT_EQ(shape(draft), "text/html ");
}

TEST(Compose, EncodesWhatSevenBitsCannotHold) {
  const auto encoding = [](std::string text) {
    auto draft = a_draft();
    draft.text = std::move(text);
    const auto message = composed(draft);
    expect_good_lines(message);
    return parse(message).parts[0].encoding;
  };
  EXPECT_EQ(encoding(std::string(998, 'x')), "7bit");
  EXPECT_EQ(encoding(std::string(999, 'x')), "quoted-printable");
  EXPECT_EQ(encoding("a\nb\rc\r\nd"), "7bit");
  EXPECT_EQ(encoding("Grüße aus Köln und anderswo"), "quoted-printable");
  std::string japanese;
  for (int i = 0; i < 100; ++i) japanese += "日本語";
  EXPECT_EQ(encoding(japanese), "base64");
  EXPECT_EQ(encoding("bell\a and some more text"), "quoted-printable");
}

TEST(Compose, KeepsMessagesWithinMessagesReadable) {
  auto draft = a_draft();
  draft.attachments = {{.name = "m.eml", .content_type = "message/rfc822", .bytes = "Subject: x\n\nbody\n"}};
  auto parsed_from = composed(draft);
  EXPECT_NE(parsed_from.find("Content-Type: message/rfc822; name=\"m.eml\"\r\n"), std::string::npos);
  EXPECT_NE(parsed_from.find("\r\n\r\nSubject: x\r\n\r\nbody\r\n"), std::string::npos);
  draft.attachments[0].bytes = "Subject: ü\r\n\r\n";
  parsed_from = composed(draft);
  EXPECT_EQ(parse(parsed_from).parts[1].content_type, "application/octet-stream");
}

TEST(Compose, TellsWhetherTheNextHopMustKnowUtf8) {
  auto draft = a_draft();
  draft.subject = "Grüße";
  draft.from.name = "Müller";
  EXPECT_FALSE(compose(draft)->needs_utf8);
  draft.to = {{"", "jürgen@x.org"}};
  EXPECT_TRUE(compose(draft)->needs_utf8);
}

TEST(HeaderInjection, IsRefusedInEveryField) {
  for (const std::string evil : {"x\r\nBcc: c@z.org", "x\nBcc: c@z.org", "x\rBcc: c@z.org", "\r\n\r\n<b>"}) {
    auto draft = a_draft();
    draft.subject = evil;
    EXPECT_EQ(refusal_of(draft), "Subject must not hold control characters.");
    draft = a_draft();
    draft.from.name = evil;
    EXPECT_EQ(refusal_of(draft), "A name in From must not hold control characters.");
    draft = a_draft();
    draft.to[0].address = evil + "@x.org";
    EXPECT_EQ(refusal_of(draft), "An address in To must not hold control characters.");
    draft = a_draft();
    draft.headers = {{"X-A", evil}};
    EXPECT_EQ(refusal_of(draft), "X-A must not hold control characters.");
    draft.headers = {{evil, "x"}};
    EXPECT_NE(refusal_of(draft), "");
    draft = a_draft();
    draft.message_id = evil + "@x";
    EXPECT_NE(refusal_of(draft), "");
    for (const auto field : {&Attachment::name, &Attachment::content_type, &Attachment::content_id,
                             &Attachment::description, &Attachment::disposition}) {
      draft = a_draft();
      draft.attachments = {{.name = "n", .content_type = "text/plain", .content_id = "c", .bytes = ""}};
      draft.attachments[0].*field = evil;
      EXPECT_NE(refusal_of(draft), "");
    }
  }
}

TEST(HeaderInjection, IsRefusedWhenItComesOutOfPercentSigns) {
  auto draft = a_draft();
  draft.attachments = {{.name = "n", .content_type = "text/plain; x*=utf-8''a%0d%0aBcc:%20z", .bytes = ""}};
  EXPECT_EQ(refusal_of(draft), "An attachment's content type must not hold control characters.");
  draft.attachments[0].content_type = "multipart/mixed; boundary=x";
  EXPECT_EQ(refusal_of(draft), "'multipart/mixed; boundary=x' is not the content type of an attachment.");
}

TEST(Compose, RefusesHeadersThatItWritesItself) {
  for (const auto* name :
       {"From", "bcc", "Content-Type", "DKIM-Signature", "MESSAGE-ID", "Received", "Resent-To"}) {
    auto draft = a_draft();
    draft.headers = {{name, "x"}};
    EXPECT_EQ(refusal_of(draft), fmt::format("The header {} cannot be set as a custom header.", name));
  }
  auto draft = a_draft();
  draft.headers = {{"X:Y", "x"}};
  EXPECT_EQ(refusal_of(draft), "'X:Y' is not the name of a header.");
}

TEST(Compose, RefusesWhatIsNoAddress) {
  for (const auto* address : {"", "a", "@x", "a@", "a b@x", "a@x, b@y", "a@x>", "\"a@x", "a@[", "<a@x>",
                              "a@x@y", "\"a\"b\"@x", "a;b@x", "\xff@x"}) {
    auto draft = a_draft();
    draft.cc = {{"", address}};
    EXPECT_NE(refusal_of(draft), "") << address;
  }
  for (const auto* address : {"a@x", "a.b+c@x.org", "\"a b\"@x", "\"a\\\"b\"@x", "a@[127.0.0.1]",
                              "a@[IPv6:::1]", "ü@ü.example", "a.@docomo.example"}) {
    auto draft = a_draft();
    draft.cc = {{"", address}};
    EXPECT_NE(composed(draft), "") << address;
  }
}

TEST(Fields, AreFoldedAndEncodedWordByWord) {
  EXPECT_EQ(*text_field("Subject", "Re: Bücher an alle"), "Subject: Re: =?UTF-8?Q?B=C3=BCcher?= an alle\r\n");
  EXPECT_EQ(*text_field("Subject", ""), "Subject:\r\n");
  const auto folded =
      *text_field("Subject", "a " + std::string(70, 'x') + " " + std::string(200, 'y') + " z");
  EXPECT_EQ(folded,
            "Subject: a\r\n " + std::string(70, 'x') + "\r\n " + std::string(200, 'y') + "\r\n z\r\n");
  std::string japanese;
  for (int i = 0; i < 60; ++i) japanese += "日本語";
  const auto field = *text_field("Subject", japanese);
  for (const auto line : split(field, '\n')) {
    EXPECT_LE(line.size(), 77u) << line;
    // Each word is a text of its own: no character is cut in two.
    if (const auto word = line.find("=?"); word != std::string_view::npos) {
      const auto end = line.find("?=", word + 10);
      EXPECT_TRUE(is_valid_utf8(decode_base64(line.substr(word + 10, end - word - 10))));
    }
  }
  EXPECT_EQ(*address_field("To", std::vector<Address>{{"Doe, J.", "j@x.org"}, {"A B", "a@x.org"}}),
            "To: \"Doe, J.\" <j@x.org>, A B <a@x.org>\r\n");
}

TEST(Fields, NameFilesByRfc2231) {
  EXPECT_EQ(ParameterField("Content-Disposition", "attachment").parameter("filename", "a \"b\".txt").text(),
            "Content-Disposition: attachment; filename=\"a \\\"b\\\".txt\"\r\n");
  EXPECT_EQ(ParameterField("Content-Disposition", "attachment").parameter("filename", "€.pdf").text(),
            "Content-Disposition: attachment; filename*=UTF-8''%E2%82%AC.pdf\r\n");
  EXPECT_EQ(ParameterField("Content-Type", "a/b").old_parameter("name", "€.pdf").text(),
            "Content-Type: a/b; name=\"=?UTF-8?B?4oKsLnBkZg==?=\"\r\n");
}

TEST(Complete, AddsWhatIsMissingAndHidesBcc) {
  const Defaults defaults{.message_id = "1@x.org", .date = TimePoint(std::chrono::seconds(1'564'572'176))};
  const auto message =
      complete("From: a@x.org\nBcc: c@z.org,\n d@z.org\nTo: b@y.org\n\nGrüße\n.\nBcc: stays\n", defaults);
  EXPECT_EQ(
      message->bytes,
      "From: a@x.org\r\nTo: b@y.org\r\nMessage-ID: <1@x.org>\r\nDate: Wed, 31 Jul 2019 11:22:56 +0000\r\n"
      "\r\nGrüße\r\n.\r\nBcc: stays\r\n");
  EXPECT_TRUE(message->needs_8bit);
  EXPECT_FALSE(message->needs_utf8);
  const std::string whole =
      "from : z\r\ndate: x\r\nMESSAGE-ID : <y>\r\nX:  odd \t\r\n folded\r\n\r\nbody\r\n";
  EXPECT_EQ(complete(whole, defaults)->bytes, whole);
  EXPECT_EQ(complete("From: z\nDate: x\nMessage-ID: y\nno header\n", defaults)->bytes,
            "From: z\r\nDate: x\r\nMessage-ID: y\r\n\r\nno header\r\n");
  EXPECT_EQ(complete("From: z\nDate: x\nMessage-ID: y", defaults)->bytes,
            "From: z\r\nDate: x\r\nMessage-ID: y\r\n\r\n");
}

TEST(Complete, RefusesAMessageWithoutASender) {
  for (const auto* message : {"", "Subject: x\r\n\r\nFrom: a@x.org\r\n", "From a@x.org\nSubject: x\n\n"})
    EXPECT_EQ(complete(message, {}).error().message, "The message has no From header.") << message;
}

TEST(HeaderInjection, IsRefusedInWholeMessages) {
  EXPECT_EQ(complete("Subject: x\rBcc: y\r\n\r\n", {}).error().message,
            "The message's headers hold a CR that does not end a line.");
  EXPECT_EQ(complete(std::string_view("Subject: \0x\r\n\r\n", 15), {}).error().message,
            "The message's headers hold a NUL.");
}

TEST(Recipients, AreAllThatAMessageNames) {
  std::string all;
  for (const auto& address :
       recipients_of("To: a@x.org, B <b@x.org>\nCc: c@x.org\nTo: d@x.org\nBcc: e@x.org\n\nTo: f@x\n"))
    all += address.address + " ";
  EXPECT_EQ(all, "a@x.org b@x.org c@x.org d@x.org e@x.org ");
}

TEST(Recipients, AreCountedOnceAndOnlyUntilThereAreTooMany) {
  std::string headers;
  for (int i = 0; i < 1000; ++i) headers += "To: a@x.org, a@x.org\n";
  EXPECT_EQ(recipients_of(headers, 1).size(), 1u);
  EXPECT_EQ(recipients_of("To: a@x.org, b@x.org\nCc: c@x.org, d@x.org\n", 2).size(), 3u);
}

TEST(Fields, MayHaveLongNamesInLinesThatAreShortEnough) {
  const std::string name(126, 'X');
  EXPECT_FALSE(text_field(name + "X", "a"));
  for (const size_t size : {1, 850, 2000}) {
    const auto field = text_field(name, std::string(size, 'a'));
    ASSERT_TRUE(field);
    for (const auto line : split(*field, '\n')) EXPECT_LE(line.size(), 998u + 1) << size;
  }
}

}  // namespace
}  // namespace tabella::mime

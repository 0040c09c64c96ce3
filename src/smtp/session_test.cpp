#include "smtp/session.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/base64.h"
#include "base/checksum.h"
#include "smtp/client.h"
#include "smtp/data.h"

namespace tabella::smtp {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

// Gives the session what was said, in pieces, and keeps what it says.
class ScriptedChannel final : public Channel {
 public:
  explicit ScriptedChannel(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  awaitable<size_t> read_some(asio::mutable_buffer room) override {
    if (at_ == pieces_.size()) co_return 0;
    auto& piece = pieces_[at_];
    const auto n = std::min(piece.size(), room.size());
    std::memcpy(room.data(), piece.data(), n);
    piece.erase(0, n);
    if (piece.empty()) ++at_;
    co_return n;
  }
  awaitable<bool> write(std::string_view bytes) override {
    said.append(bytes);
    co_return true;
  }
  awaitable<bool> start_tls() override {
    secure = true;
    co_return true;
  }
  bool can_start_tls() const override { return tls; }
  bool is_secure() const override { return secure; }
  void expire_in(std::chrono::milliseconds) override {}

  bool tls = false;
  bool secure = false;
  std::string said;

 private:
  std::vector<std::string> pieces_;
  size_t at_ = 0;
};

class KeepingHost final : public Host {
 public:
  awaitable<Verdict> may_log_in(Credentials credentials) override {
    last = credentials;
    if (credentials.user == "hasty") co_return Verdict::busy;
    const bool right = credentials.challenge.empty()
                           ? credentials.password == "secret"
                           : to_hex(hmac_md5("secret", credentials.challenge)) == credentials.digest;
    co_return right ? Verdict::right : Verdict::wrong;
  }
  awaitable<Reply> take(Envelope envelope) override {
    taken.push_back(std::move(envelope));
    co_return Reply{.code = 250, .text = "2.0.0 Ok"};
  }
  std::vector<Envelope> taken;
  Credentials last;
};

struct Outcome {
  std::string said;
  std::vector<Envelope> taken;
  Credentials login;

  // The last reply's code.
  std::string last() const {
    const auto end = said.rfind("\r\n");
    const auto begin = said.rfind('\n', end - 1);
    return said.substr(begin == std::string::npos ? 0 : begin + 1, 3);
  }
};

Outcome talk(std::vector<std::string> pieces, SessionOptions options = {}, bool tls = false) {
  ScriptedChannel channel(std::move(pieces));
  channel.tls = tls;
  KeepingHost host;
  std::atomic<size_t> budget{0};
  Session session(channel, host, options, budget, "192.0.2.1");
  asio::io_context context;
  asio::co_spawn(context, session.run(), asio::detached);
  context.run();
  EXPECT_EQ(budget.load() > options.budget, false);
  return {.said = channel.said, .taken = std::move(host.taken), .login = host.last};
}

const std::string kBegin = "EHLO me\r\nMAIL FROM:<a@x.org>\r\nRCPT TO:<b@y.org>\r\n";

Outcome send(const std::string& data, SessionOptions options = {}) {
  return talk({kBegin + "DATA\r\n" + data}, options);
}

TEST(SmtpSession, TakesAMessage) {
  const auto outcome = send("Subject: hi\r\n\r\nbody\r\n.\r\nQUIT\r\n");
  ASSERT_EQ(outcome.taken.size(), 1u);
  const auto& message = outcome.taken.front();
  EXPECT_EQ(message.from, "a@x.org");
  EXPECT_EQ(message.to, std::vector<std::string>{"b@y.org"});
  EXPECT_EQ(message.helo, "me");
  EXPECT_EQ(message.peer, "192.0.2.1");
  EXPECT_EQ(message.data, "Subject: hi\r\n\r\nbody\r\n");
  EXPECT_EQ(outcome.last(), "221");
}

TEST(SmtpSession, MeansTheSameByteByByte) {
  const std::string all = kBegin + "DATA\r\n..dots\r\n...more\r\n.x\r\n\r\n.\r\nQUIT\r\n";
  const auto whole = talk({all});
  std::vector<std::string> bytes;
  for (const char c : all) bytes.emplace_back(1, c);
  const auto split = talk(bytes);
  ASSERT_EQ(whole.taken.size(), 1u);
  EXPECT_EQ(whole.taken[0].data, ".dots\r\n..more\r\nx\r\n\r\n");
  ASSERT_EQ(split.taken.size(), 1u);
  EXPECT_EQ(split.taken[0].data, whole.taken[0].data);
  EXPECT_EQ(split.said, whole.said);
}

TEST(SmtpSession, TakesTheEmptySenderAndAnEmptyMessage) {
  const auto outcome = talk({"HELO me\r\nMAIL FROM:<>\r\nRCPT TO:<b@y.org>\r\nDATA\r\n.\r\n"});
  ASSERT_EQ(outcome.taken.size(), 1u);
  EXPECT_EQ(outcome.taken[0].from, "");
  EXPECT_EQ(outcome.taken[0].data, "");
  EXPECT_FALSE(outcome.taken[0].extended);
}

TEST(SmtpSession, AnswersPipelinedCommandsInOneWrite) {
  const auto outcome =
      talk({"EHLO me\r\n", "MAIL FROM:<a@x.org>\r\nRCPT TO:<b@y.org>\r\nDATA\r\n", "x\r\n.\r\nQUIT\r\n"});
  EXPECT_NE(outcome.said.find("250-PIPELINING"), std::string::npos);
  EXPECT_EQ(outcome.taken.size(), 1u);
}

TEST(SmtpSession, TakesSeveralMessagesAndForgetsEachBeforeTheNext) {
  const auto one = "MAIL FROM:<a@x.org>\r\nRCPT TO:<b@y.org>\r\nDATA\r\none\r\n.\r\n";
  const auto two = "MAIL FROM:<c@x.org>\r\nRCPT TO:<d@y.org>\r\nDATA\r\ntwo\r\n.\r\n";
  const auto outcome = talk({std::string("EHLO me\r\n") + one + two});
  ASSERT_EQ(outcome.taken.size(), 2u);
  EXPECT_EQ(outcome.taken[1].to, std::vector<std::string>{"d@y.org"});
  EXPECT_EQ(outcome.taken[1].helo, "me");
}

TEST(SmtpSession, WantsTheCommandsInOrder) {
  EXPECT_EQ(talk({"MAIL FROM:<a@x.org>\r\n"}).last(), "503");
  EXPECT_EQ(talk({"EHLO me\r\nRCPT TO:<a@x.org>\r\n"}).last(), "503");
  EXPECT_EQ(talk({"EHLO me\r\nDATA\r\n"}).last(), "503");
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\nDATA\r\n"}).last(), "554");
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\nMAIL FROM:<a@x.org>\r\n"}).last(), "503");
  EXPECT_EQ(talk({"EHLO me\r\nFLY\r\n"}).last(), "500");
}

TEST(SmtpSession, RefusesAddressesThatCannotBeRead) {
  for (const auto* address : {"FROM:<a@x.org", "FROM:<a b@x.org>", "FROM:<a@>", "FROM:<@x.org>",
                              "FRM:<a@x.org>", "FROM:", R"(FROM:<"a"b"@x.org>)", R"(FROM:<"a\"@x.org>)"})
    EXPECT_EQ(talk({std::string("EHLO me\r\nMAIL ") + address + "\r\n"}).last(), "501") << address;
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org> FOO=1\r\n"}).last(), "555");
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\nRCPT TO:<>\r\n"}).last(), "501");
}

TEST(SmtpSession, TakesAddressesBeyondAsciiWithSmtputf8Only) {
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<müller@bücher.example>\r\n"}).last(), "553");
  const auto outcome =
      talk({"EHLO me\r\nMAIL FROM:<müller@bücher.example> SMTPUTF8\r\nRCPT "
            "TO:<用户@例子.example>\r\nDATA\r\n.\r\n"});
  ASSERT_EQ(outcome.taken.size(), 1u);
  EXPECT_EQ(outcome.taken[0].to[0], "用户@例子.example");
  EXPECT_TRUE(outcome.taken[0].utf8);
}

TEST(SmtpSession, KeepsItsLimits) {
  const SessionOptions small{.max_message = 100, .max_recipients = 2, .max_line = 50};
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org> SIZE=101\r\n"}, small).last(), "552");
  EXPECT_EQ(send(std::string(60, 'x').insert(30, "\r\n") + "\r\n" + std::string(48, 'y') + "\r\n.\r\n", small)
                .last(),
            "552");
  const auto after = send("ok\r\n.\r\n", small);
  EXPECT_EQ(after.taken.size(), 1u);
  EXPECT_EQ(send(std::string(51, 'x') + "\r\n.\r\n", small).last(), "521");
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\nRCPT TO:<a@y.org>\r\nRCPT TO:<b@y.org>\r\nRCPT "
                  "TO:<c@y.org>\r\n"},
                 small)
                .last(),
            "452");
  EXPECT_EQ(talk({"EHLO " + std::string(5000, 'x') + "\r\n"}).last(), "500");
  EXPECT_EQ(talk({"EHLO me\r\n" +
                  [] {
                    std::string noise;
                    for (int i = 0; i < 200; ++i) noise += "NONSENSE\r\n";
                    return noise;
                  }()})
                .last(),
            "421");
  SessionOptions tight;
  tight.budget = 100'000;
  EXPECT_EQ(send(std::string(300'000, 'x').insert(150'000, "\r\n") + "\r\n.\r\n", tight).last(), "452");
}

TEST(SmtpSession, ReadsChunksOfAnyBytes) {
  const std::string bytes("a\nb\r\n.\r\n\0c", 10);
  const auto outcome =
      talk({kBegin + "BDAT 6\r\n" + bytes.substr(0, 6) + "BDAT 4 LAST\r\n" + bytes.substr(6) + "QUIT\r\n"});
  ASSERT_EQ(outcome.taken.size(), 1u);
  EXPECT_EQ(outcome.taken[0].data, bytes);
  EXPECT_EQ(outcome.last(), "221");
  const auto early = talk({"EHLO me\r\nBDAT 5 LAST\r\nQUIT\nNOOP\r\n"});
  EXPECT_TRUE(early.taken.empty());
  EXPECT_EQ(early.last(), "250");  // the chunk was read, not obeyed
  EXPECT_EQ(talk({kBegin + "BDAT x\r\n"}).last(), "501");
  EXPECT_EQ(talk({kBegin + "BDAT 5\r\nhelloDATA\r\n"}).last(), "503");
}

TEST(SmtpSession, LogsIn) {
  const auto plain = to_base64(std::string("\0bob\0secret", 11));
  EXPECT_EQ(talk({"EHLO me\r\nAUTH PLAIN " + plain + "\r\n"}).last(), "235");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH PLAIN\r\n", plain + "\r\n"}).last(), "235");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH PLAIN " + to_base64(std::string("\0bob\0wrong", 10)) + "\r\n"}).last(),
            "535");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH PLAIN " + to_base64(std::string("\0hasty\0secret", 13)) + "\r\n"}).last(),
            "454")
      << "nobody has looked at the password: it is not wrong";
  const auto login = talk({"EHLO me\r\nAUTH LOGIN\r\n" + to_base64("bob") + "\r\n" + to_base64("secret") +
                           "\r\n" + "MAIL FROM:<a@x.org>\r\nRCPT TO:<b@y.org>\r\nDATA\r\n.\r\n"});
  ASSERT_EQ(login.taken.size(), 1u);
  EXPECT_EQ(login.taken[0].user, "bob");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH LOGIN\r\n*\r\n"}).last(), "501");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH PLAIN !!!\r\n"}).last(), "501");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH GSSAPI\r\n"}).last(), "504");
  EXPECT_EQ(talk({"HELO me\r\nAUTH PLAIN " + plain + "\r\n"}).last(), "503");
  EXPECT_EQ(talk({"EHLO me\r\nAUTH CRAM-MD5\r\n" + to_base64("bob 00") + "\r\n"}).last(), "535");
}

TEST(SmtpSession, AsksForTlsAndLoginWhereTheyAreRequired) {
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\n"}, {.require_tls = true}, true).last(), "530");
  EXPECT_EQ(talk({"EHLO me\r\nMAIL FROM:<a@x.org>\r\n"}, {.require_login = true}).last(), "530");
  EXPECT_EQ(talk({"EHLO me\r\nSTARTTLS\r\n"}).last(), "502");
}

TEST(SmtpSession, ForgetsWhatWasSaidInTheClearBehindStartTls) {
  const auto outcome = talk(
      {"EHLO me\r\nSTARTTLS\r\nEHLO evil\r\nMAIL FROM:<evil@x.org>\r\n", "RCPT TO:<b@y.org>\r\n"}, {}, true);
  EXPECT_EQ(outcome.last(), "503");
  EXPECT_EQ(outcome.said.find("evil"), std::string::npos);
}

// Each ends a message for some server, and must not for us: what follows would be a message of its own.
struct Smuggled {
  const char* name;
  std::string end;
};
void PrintTo(const Smuggled& smuggled, std::ostream* out) { *out << smuggled.name; }

class SmtpSmuggling : public testing::TestWithParam<Smuggled> {};

TEST_P(SmtpSmuggling, IsRefused) {
  const auto outcome =
      send("Subject: outer\r\n\r\nouter" + GetParam().end +
           "MAIL FROM:<admin@x.org>\r\nRCPT TO:<victim@y.org>\r\nDATA\r\ninner\r\n.\r\nQUIT\r\n");
  for (const auto& message : outcome.taken) EXPECT_NE(message.from, "admin@x.org");
  EXPECT_LE(outcome.taken.size(), 1u);
  if (!outcome.taken.empty())
    EXPECT_NE(outcome.taken[0].data.find("inner"), std::string::npos) << "all of it is one message";
}

INSTANTIATE_TEST_SUITE_P(
    EndOfData, SmtpSmuggling,
    testing::Values(Smuggled{"LfDotLf", "\n.\n"}, Smuggled{"LfDotCrLf", "\n.\r\n"},
                    Smuggled{"CrLfDotLf", "\r\n.\n"}, Smuggled{"CrDotCr", "\r.\r"},
                    Smuggled{"CrDotCrLf", "\r.\r\n"}, Smuggled{"CrLfDotCr", "\r\n.\r"},
                    Smuggled{"CrLfNulDotCrLf", std::string("\r\n\0.\r\n", 6)},
                    Smuggled{"CrLfDotNulCrLf", std::string("\r\n.\0\r\n", 6)},
                    Smuggled{"CrCrLfDotCrLf", "\r\r\n.\r\n"}, Smuggled{"CrLfDotCrCrLf", "\r\n.\r\r\n"},
                    Smuggled{"LfCrDotLfCr", "\n\r.\n\r"}, Smuggled{"CrLfDotDotCrLf", "\r\n..\r\n"},
                    Smuggled{"LfCrLfDotLf", "\n\r\n.\n"}, Smuggled{"CrLfSpaceDotCrLf", "\r\n .\r\n"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(SmtpSession, RefusesCommandsThatEndWithABareLineFeed) {
  const auto outcome = talk({"EHLO me\nMAIL FROM:<a@x.org>\n"});
  EXPECT_EQ(outcome.last(), "521");
}

TEST(StuffDots, MakesDataThatReadsBackAsItWas) {
  for (const std::string text :
       {"", "one\r\n", ".\r\n", "..\r\n.a\r\n", "a\r\n.\r\nb\r\n", "no end", "\n.\n", "a\r.\rb"}) {
    const auto stuffed = stuff_dots(text) + ".\r\n";
    DataReader reader(1000, 1000);
    std::string_view rest = stuffed;
    ASSERT_EQ(reader.feed(rest), DataReader::State::complete) << text;
    EXPECT_TRUE(rest.empty());
    std::string expected;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
      expected += text[i] == '\n' || text[i] == '\r' ? "\r\n" : std::string(1, text[i]);
    }
    if (!expected.empty() && !expected.ends_with("\r\n")) expected += "\r\n";
    EXPECT_EQ(reader.text(), expected);
  }
}

}  // namespace
}  // namespace tabella::smtp

// What needs no store; tests/contract/access_contract.cpp has the rest.
#include <sys/stat.h>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "access/recent.h"
#include "access/routes.h"
#include "access/secrets.h"
#include "access/sessions.h"
#include "access/tokens.h"
#include "base/random.h"
#include "base/seal.h"
#include "support/folder.h"

namespace tabella::access {
namespace {

TEST(Seal, OpensWithTheSameKeyAndContextOnly) {
  const auto key = random_bytes(kSealKeySize);
  for (const std::string text : {"", "x", "a secret with ümlauts"}) {
    const auto sealed = seal(key, text, "relay 1");
    EXPECT_EQ(unseal(key, sealed, "relay 1"), text);
    EXPECT_EQ(unseal(key, sealed, "relay 2"), std::nullopt);
    EXPECT_EQ(unseal(random_bytes(kSealKeySize), sealed, "relay 1"), std::nullopt);
    EXPECT_NE(seal(key, text, "relay 1"), sealed);
  }
  EXPECT_EQ(unseal(key, seal(key, "x", ""), ""), "x");
}

TEST(Seal, NoticesEveryChangedOrMissingByte) {
  const auto key = random_bytes(kSealKeySize);
  const auto sealed = seal(key, "a secret", "c");
  for (size_t i = 0; i < sealed.size(); ++i) {
    auto changed = sealed;
    changed[i] ^= 1;
    EXPECT_EQ(unseal(key, changed, "c"), std::nullopt) << i;
    EXPECT_EQ(unseal(key, sealed.substr(0, i), "c"), std::nullopt) << i;
  }
}

class SecretsTest : public testing::Test {
 protected:
  std::string complaint(const std::string& text) {
    std::ofstream(file_) << text;
    return complaint();
  }
  std::string complaint() {
    try {
      Secrets::from_file(file_, false);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  test::Folder folder_;
  std::filesystem::path file_ = folder_.path() / "secret-key";
};

TEST_F(SecretsTest, ComeBackAsTheyWere) {
  const auto secrets = Secrets::from_file(file_, true);
  const auto sealed = secrets.seal("hunter2", "relay 1");
  ASSERT_TRUE(sealed);
  EXPECT_TRUE(sealed->starts_with("sealed:v1:"));
  EXPECT_EQ(sealed->find("hunter2"), std::string::npos);
  EXPECT_EQ(secrets.open(*sealed, "relay 1"), "hunter2");
  EXPECT_FALSE(secrets.open(*sealed, "relay 2"));
  EXPECT_FALSE(secrets.open(*sealed + "A", "relay 1"));
  EXPECT_FALSE(secrets.open(sealed->substr(0, 20), "relay 1"));
}

TEST_F(SecretsTest, ThatWereNeverSealedComeBackToo) {
  EXPECT_EQ(Secrets::from_file(file_, true).open("plain", "relay 1"), "plain");
  EXPECT_EQ(Secrets().open("plain", "relay 1"), "plain");
}

TEST_F(SecretsTest, AreNotSealedWithoutAKey) {
  const auto sealed = Secrets().seal("hunter2", "relay 1");
  ASSERT_FALSE(sealed);
  EXPECT_NE(sealed.error().find("--secret-key-file"), std::string::npos);
  const auto other = Secrets::from_file(file_, true).seal("hunter2", "relay 1");
  EXPECT_FALSE(Secrets().open(*other, "relay 1"));
}

TEST_F(SecretsTest, HaveAKeyThatOnlyItsOwnerReads) {
  Secrets::from_file(file_, true);
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto entries = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "nothing else is left there";
}

TEST_F(SecretsTest, HaveOneKeyHoweverManyMakeIt) {
  std::vector<std::string> sealed(8);
  {
    std::vector<std::jthread> threads;
    for (auto& text : sealed)
      threads.emplace_back([&] { text = *Secrets::from_file(file_, true).seal("x", "c"); });
  }
  const auto secrets = Secrets::from_file(file_, false);
  for (const auto& text : sealed) EXPECT_EQ(secrets.open(text, "c"), "x");
}

TEST_F(SecretsTest, SayWhatIsWrongWithTheFile) {
  EXPECT_NE(complaint().find("cannot be read: No such file"), std::string::npos) << complaint();
  for (const auto* text : {"", "short", "AAAA\n", "not base64 at all, but long enough to be a key\n"})
    EXPECT_NE(complaint(text).find("openssl rand -base64 32"), std::string::npos) << text;
  EXPECT_EQ(complaint("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), "");
}

TEST(Scope, IsASystemAndWhatMayBeDoneThere) {
  for (const auto* good : {"*", "mail:*", "mail:read", "dead-letters:read_all", "s3:get"})
    EXPECT_TRUE(check_scope(good)) << good;
  for (const auto* bad : {"", "mail", "mail:", ":read", "*:read", "mail:read:all", "Mail:read", "mail: read"})
    EXPECT_FALSE(check_scope(bad)) << bad;
}

TEST(Recent, ForgetsAfterAMomentAndIsBounded) {
  ManualClock clock;
  Recent<int> recent(clock);
  recent.keep("a", 1, clock.elapsed());
  EXPECT_EQ(recent.find("a"), 1);
  recent.forget("a");
  EXPECT_EQ(recent.find("a"), std::nullopt);
  recent.keep("b", 2, clock.elapsed());
  clock.advance(std::chrono::milliseconds(1999));
  EXPECT_EQ(recent.find("b"), 2);
  recent.change("b", [](int& answer) { answer = 3; });
  EXPECT_EQ(recent.find("b"), 3);
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(recent.find("b"), std::nullopt) << "a change makes it no younger";
  for (int i = 0; i < 10'000; ++i) recent.keep(std::to_string(i), i, clock.elapsed());
  EXPECT_EQ(recent.find("0"), std::nullopt);
  EXPECT_EQ(recent.find("9999"), 9999);
}

TEST(SessionCookie, IsFoundAmongOthers) {
  const auto cookie = [](net::HttpHeaders headers) {
    return std::string(session_cookie({.method = "GET", .target = "/", .headers = std::move(headers)}));
  };
  EXPECT_EQ(cookie({{"Cookie", "a=b; tabella_session=abc; c=d"}}), "abc");
  EXPECT_EQ(cookie({{"Cookie", "a=b"}, {"cookie", "tabella_session=abc"}}), "abc");
  EXPECT_EQ(cookie({{"Cookie", "xtabella_session=abc; tabella_session2=abc"}}), "");
  EXPECT_EQ(cookie({}), "");
}

TEST(SessionCookie, IsForThisSiteOnly) {
  EXPECT_EQ(set_session_cookie("abc", "", false), "tabella_session=abc; Path=/; HttpOnly; SameSite=Strict");
  EXPECT_EQ(set_session_cookie("abc", "/mail", true),
            "tabella_session=abc; Path=/mail; HttpOnly; SameSite=Strict; Secure");
  EXPECT_EQ(set_session_cookie("", "", false),
            "tabella_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
}

TEST(PageAfterLogin, IsOneOfOurs) {
  EXPECT_EQ(page_after_login("/messages?q=a", ""), "/messages?q=a");
  EXPECT_EQ(page_after_login("/mail/messages", "/mail"), "/mail/messages");
  for (const auto* foreign : {"", "https://evil.example/", "//evil.example", "/\\evil.example", "messages",
                              "/a\r\nSet-Cookie: x=y", "javascript:alert(1)"})
    EXPECT_EQ(page_after_login(foreign, ""), "/") << foreign;
  EXPECT_EQ(page_after_login("/elsewhere", "/mail"), "/mail/");
}

}  // namespace
}  // namespace tabella::access

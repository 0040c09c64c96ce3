#include "mime/dkim.h"

#include <gtest/gtest.h>

namespace tabella::mime {
namespace {

// The key and the message of RFC 8463, appendix A.
constexpr std::string_view kRfcKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

TEST(Dkim, PublishesThePublicKeyOfRfc8463) {
  const auto key = DkimKey::from_pem("football.example.com", "brisbane", kRfcKey);
  ASSERT_TRUE(key) << key.error();
  EXPECT_EQ(key->dns_name(), "brisbane._domainkey.football.example.com");
  EXPECT_EQ(key->dns_record(), "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
}

TEST(Dkim, HashesTheBodyOfRfc8463) {
  const auto key = *DkimKey::from_pem("football.example.com", "brisbane", kRfcKey);
  const auto header = key.sign(
      "From: Joe SixPack <joe@football.example.com>\r\n"
      "To: Suzie Q <suzie@shopping.example.net>\r\n"
      "\r\n"
      "Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n",
      TimePoint(std::chrono::seconds(1528637909)));
  EXPECT_TRUE(
      header.starts_with("DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n"
                         " d=football.example.com; s=brisbane; t=1528637909; h=to:from:from; bh=2jUS\r\n"
                         " OH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;"))
      << header;
}

TEST(Dkim, RefusesKeysThatAreNone) {
  EXPECT_EQ(DkimKey::from_pem("x.org", "s", "no key").error(),
            "the DKIM key is no private key in PEM without a passphrase");
  EXPECT_EQ(DkimKey::from_pem("x.org; d=y", "s", kRfcKey).error(),
            "the domain of a DKIM key must be a name in ASCII");
  EXPECT_EQ(DkimKey::from_pem("x.org", "", kRfcKey).error(),
            "the selector of a DKIM key must be a name in ASCII");
}

}  // namespace
}  // namespace tabella::mime

// Relays, routes and rates, as they are written in options.
#include "outbox/route.h"

#include <gtest/gtest.h>

#include "outbox/options.h"

namespace tabella::outbox {
namespace {

TEST(Relays, AreReadFromTheirUrls) {
  const auto relay = parse_relay("smtp://me%40x.org:p%3Ass@[::1]:587?tls=off&verify=no");
  ASSERT_TRUE(relay) << relay.error();
  EXPECT_EQ(relay->user, "me@x.org");
  EXPECT_EQ(relay->password, "p:ss");
  EXPECT_EQ(relay->host, "::1");
  EXPECT_EQ(relay->port, 587);
  EXPECT_FALSE(relay->check_certificate);
  for (const auto* wrong :
       {"http://x", "smtp://", "smtp://x:0", "smtp://x:99999", "smtp://[::1", "smtp://[::1]25", "smtp://x/y",
        "smtp://x:25/y", "smtp://x?tls=maybe", "smtps://x?tls=off", "smtps://x?tls=required", "smtp://%:x@y"})
    EXPECT_FALSE(parse_relay(wrong)) << wrong;
}

TEST(Relays, TakeAPasswordOnlyThroughTlsUnlessTheySayOtherwise) {
  const auto security = [](std::string_view url) { return parse_relay(url)->security; };
  EXPECT_EQ(security("smtp://x"), smtp::Security::opportunistic);
  EXPECT_EQ(security("smtp://me:secret@x"), smtp::Security::required);
  EXPECT_EQ(security("smtp://me:secret@x?verify=no"), smtp::Security::required);
  EXPECT_EQ(security("smtp://me:secret@x?tls=opportunistic"), smtp::Security::opportunistic);
  EXPECT_EQ(security("smtp://me:secret@x?tls=off"), smtp::Security::none);
  EXPECT_EQ(security("smtps://me:secret@x"), smtp::Security::implicit);
}

TEST(Routes, AreForDomainsAndWhatIsUnderThem) {
  Routes routes;
  ASSERT_TRUE(routes.add("x.org=direct"));
  ASSERT_TRUE(routes.add("*.Y.org=smtp://z"));
  EXPECT_EQ(routes.find("x.org").mode, Mode::direct);
  EXPECT_EQ(routes.find("a.b.y.org").mode, Mode::relay);
  EXPECT_EQ(routes.find("y.org").mode, Mode::capture);
  EXPECT_EQ(routes.add("*=direct").error(), "a route is for a domain; --outbox-mode is for all others");
  for (const auto* wrong : {"x.org", "=direct", "x.org=nowhere", "x.org=smtp://a/b"})
    EXPECT_FALSE(routes.add(wrong)) << wrong;
}

TEST(Rates, AreNumbersForDestinations) {
  Options options{.rates = {"X.org=0.5", "*=10"}};
  EXPECT_EQ(rates_of(options), (std::map<std::string, double>{{"*", 10}, {"x.org", 0.5}}));
  for (const auto* wrong :
       {"=10", "x.org=inf", "x.org=nan", "x.org=0", "x.org=-1", "x.org=1x", "x.org", ""}) {
    options.rates = {wrong};
    EXPECT_ANY_THROW(rates_of(options)) << wrong;
  }
}

}  // namespace
}  // namespace tabella::outbox

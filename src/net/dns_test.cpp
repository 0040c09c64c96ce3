#include "net/dns.h"

#include <unistd.h>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/by_value.h"
#include "support/process.h"

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;
using std::chrono::milliseconds;

udp::endpoint local_udp() { return {asio::ip::make_address("127.0.0.1"), 0}; }

// A server of the zone example.test; of all else it knows nothing and can ask nobody.
class Dnsmasq {
 public:
  Dnsmasq() {
    // It needs one port for UDP and for TCP alike, of which only one can be looked for: another program may
    // have the other.
    for (int tries = 10; !process_; --tries) try {
        start();
      } catch (const std::runtime_error&) {
        if (tries == 1) throw;
      }
  }

  void end() { process_->end(SIGKILL); }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  static Dnsmasq& shared() {
    static Dnsmasq server;
    return server;
  }

 private:
  void start() {
    {
      asio::io_context context;
      port_ = udp::socket(context, local_udp()).local_endpoint().port();
    }
    const auto command = fmt::format(
        "exec /usr/sbin/dnsmasq --no-daemon --no-resolv --no-hosts --conf-file=/dev/null --port={} "
        "--listen-address=127.0.0.1 --bind-interfaces --pid-file= {} --local=/test/ --local-ttl=60 "
        "--mx-host=example.test,second.example.test,20 --mx-host=example.test,first.example.test,10 "
        "--mx-host=null.test,.,0 "
        "--host-record=first.example.test,192.0.2.1,2001:db8::1 --host-record=second.example.test,192.0.2.2 "
        "--cname=alias.example.test,second.example.test "
        "--txt-record=_mta-sts.example.test,'v=STSv1; id=1' --txt-record=long.example.test,{},{} 2>&1",
        port_, geteuid() == 0 ? "--user=root" : "", std::string(200, 'a'), std::string(200, 'b'));
    process_.emplace(std::vector<std::string>{"sh", "-c", command}, "started");
  }

  uint16_t port_ = 0;
  std::optional<test::Process> process_;
};

// A Dns on a context of its own.
class Resolver {
 public:
  explicit Resolver(const std::string& server)
      : dns_(std::in_place, context_.get_executor(),
             Dns::Options{.servers = {server}, .timeout = milliseconds(100), .tries = 2}) {}

  template <class T>
  DnsResult<T> get(asio::awaitable<DnsResult<T>> call) {
    std::optional<DnsResult<T>> result;
    asio::co_spawn(context_, std::move(call), [&](std::exception_ptr failure, DnsResult<T> value) {
      if (failure) std::rethrow_exception(failure);
      result = std::move(value);
    });
    context_.restart();
    context_.run();
    return std::move(*result);
  }
  Dns* operator->() { return &*dns_; }

  asio::io_context context_;
  std::optional<Dns> dns_;
};

template <class T>
DnsError::Kind kind_of(const DnsResult<T>& result) {
  if (result) throw std::runtime_error("it was found");
  return result.error().kind;
}

TEST(Dns, SortsMailServersByPreference) {
  Resolver dns(Dnsmasq::shared().address());
  const std::vector<Mx> expected = {{10, "first.example.test"}, {20, "second.example.test"}};
  EXPECT_EQ(dns.get(dns->mx("example.test")).value(), expected);
  EXPECT_EQ(dns.get(dns->mx("EXAMPLE.test.")).value(), expected);
}

TEST(Dns, KnowsADomainThatTakesNoMail) {
  Resolver dns(Dnsmasq::shared().address());
  const auto found = dns.get(dns->mx("null.test")).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_null());
}

TEST(Dns, FindsAddressesOfBothKinds) {
  Resolver dns(Dnsmasq::shared().address());
  auto both = dns.get(dns->addresses("first.example.test")).value();
  std::ranges::sort(both);
  EXPECT_EQ(both, (std::vector{asio::ip::make_address("192.0.2.1"), asio::ip::make_address("2001:db8::1")}));
  EXPECT_EQ(dns.get(dns->addresses("alias.example.test")).value(),
            std::vector{asio::ip::make_address("192.0.2.2")});
  EXPECT_EQ(dns.get(dns->addresses("192.0.2.9")).value(), std::vector{asio::ip::make_address("192.0.2.9")});
}

TEST(Dns, PutsTextsTogether) {
  Resolver dns(Dnsmasq::shared().address());
  EXPECT_EQ(dns.get(dns->txt("_mta-sts.example.test")).value(), std::vector<std::string>{"v=STSv1; id=1"});
  EXPECT_EQ(dns.get(dns->txt("long.example.test")).value(),
            std::vector<std::string>{std::string(200, 'a') + std::string(200, 'b')});
}

TEST(Dns, SaysWhatIsNotThere) {
  Resolver dns(Dnsmasq::shared().address());
  using enum DnsError::Kind;
  EXPECT_EQ(kind_of(dns.get(dns->mx("missing.test"))), not_found);
  EXPECT_EQ(kind_of(dns.get(dns->mx("first.example.test"))), not_found) << "it has addresses only";
  EXPECT_EQ(kind_of(dns.get(dns->addresses("missing.test"))), not_found);
  EXPECT_EQ(kind_of(dns.get(dns->txt("missing.test"))), not_found);
  EXPECT_EQ(kind_of(dns.get(dns->mx("no name at all"))), not_found);
  EXPECT_EQ(kind_of(dns.get(dns->mx(""))), not_found);
  EXPECT_EQ(kind_of(dns.get(dns->mx(std::string(70, 'x') + ".test"))), not_found);
}

TEST(Dns, CallsItTemporaryWhereNobodyKnows) {
  Resolver refused(Dnsmasq::shared().address());
  EXPECT_EQ(kind_of(refused.get(refused->mx("example.org"))), DnsError::Kind::temporary);

  asio::io_context context;
  const udp::socket silent(context, local_udp());
  Resolver dns(fmt::format("127.0.0.1:{}", silent.local_endpoint().port()));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of(dns.get(dns->mx("example.test"))), DnsError::Kind::temporary);
  EXPECT_EQ(kind_of(dns.get(dns->addresses("example.test"))), DnsError::Kind::temporary);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(200));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(10'000));
}

TEST(Dns, RemembersAnswersForTheirTtl) {
  Dnsmasq server;
  Resolver dns(server.address());
  EXPECT_TRUE(dns.get(dns->mx("example.test")));
  EXPECT_TRUE(dns.get(dns->addresses("first.example.test")));
  EXPECT_TRUE(dns.get(dns->txt("_mta-sts.example.test")));
  server.end();
  EXPECT_EQ(dns.get(dns->mx("example.test")).value().size(), 2u);
  EXPECT_EQ(dns.get(dns->addresses("FIRST.example.test")).value().size(), 2u);
  EXPECT_TRUE(dns.get(dns->txt("_mta-sts.example.test")));
  EXPECT_EQ(kind_of(dns.get(dns->mx("null.test"))), DnsError::Kind::temporary);
}

TEST(Dns, CanBeAbandoned) {
  asio::io_context silent_context;
  const udp::socket silent(silent_context, local_udp());
  Resolver dns(fmt::format("127.0.0.1:{}", silent.local_endpoint().port()));
  bool given_up = false;
  asio::co_spawn(
      dns.context_,
      [&]() -> asio::awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        asio::steady_timer timer(dns.context_, milliseconds(20));
        const auto first = co_await (dns->mx("example.test") || timer.async_wait(asio::use_awaitable));
        given_up = first.index() == 1;
      },
      asio::detached);
  dns.context_.run();
  EXPECT_TRUE(given_up);
}

TEST(Dns, EndsItsCallsWhenItGoes) {
  asio::io_context silent_context;
  const udp::socket silent(silent_context, local_udp());
  Resolver dns(fmt::format("127.0.0.1:{}", silent.local_endpoint().port()));
  asio::post(dns.context_, [&] { asio::post(dns.context_, [&] { dns.dns_.reset(); }); });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of(dns.get(dns->mx("example.test"))), DnsError::Kind::temporary);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(90));
}

TEST(Dns, AnswersManyAtOnceFromSeveralThreads) {
  asio::io_context context;
  Dns dns(context.get_executor(), {.servers = {Dnsmasq::shared().address()}});
  std::atomic<int> found = 0;
  for (int i = 0; i < 200; ++i)
    asio::co_spawn(
        context,
        [&, i]() -> asio::awaitable<void> {
          if (i % 2 == 0 && (co_await dns.mx("example.test"))) ++found;
          if (i % 2 == 1 && (co_await dns.addresses("second.example.test"))) ++found;
        },
        asio::detached);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { context.run(); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, 200);
}

TEST(Dns, RefusesServersThatAreNone) {
  asio::io_context context;
  EXPECT_THROW(Dns(context.get_executor(), {.servers = {"nobody here"}}), std::runtime_error);
}

}  // namespace
}  // namespace tabella::net

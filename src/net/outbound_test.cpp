#include "net/outbound.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/text.h"
#include "net/transport.h"
#include "support/answering_server.h"
#include "support/folder.h"

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using test::AnsweringServer;

std::string ok(std::string_view body = "ok") {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nX-One: 1\r\nx-two: 2\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}
std::string redirect(int status, std::string_view to) {
  return fmt::format("HTTP/1.1 {} Moved\r\nLocation: {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                     status, to);
}
std::string path_of(const std::string& request) {
  return std::string(split(request.substr(0, request.find('\r')), ' ').at(1));
}

using Reply = std::expected<OutboundReply, OutboundError>;

Reply send(Outbound& outbound, OutboundRequest request) {
  asio::io_context context;
  std::optional<Reply> result;
  asio::co_spawn(context, outbound.send(std::move(request)), [&](std::exception_ptr failure, Reply reply) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(reply);
  });
  context.run();
  return std::move(*result);
}

// "200 body", "refused: …" or "failed: …".
std::string describe(const Reply& reply) {
  if (reply) return fmt::format("{} {}", reply->status, reply->body);
  return fmt::format("{}: {}", reply.error().refused ? "refused" : "failed", reply.error().message);
}

std::string get_through(Outbound& outbound, std::string url, int redirects = 5) {
  return describe(send(outbound, {.url = std::move(url), .redirects = redirects}));
}

bool begins(const std::string& text, std::string_view with) { return text.starts_with(with); }
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

AddressRules rules(std::vector<std::string> allowed = {}, bool loopback = false) {
  return AddressRules::make({.allowed = std::move(allowed), .loopback = loopback}).value();
}

bool may(const AddressRules& rules, std::string_view host) {
  const auto address = literal_address(host);
  EXPECT_TRUE(address) << host;
  return address && rules.check(host, *address).has_value();
}

TEST(AddressRules, RefuseWhatIsNotOfThePublicInternet) {
  for (const auto* host : {
           "0.0.0.0",
           "0.1.2.3",
           "10.0.0.1",
           "10.255.255.255",
           "100.64.0.1",
           "100.127.255.255",
           "127.0.0.1",
           "127.255.0.1",
           "169.254.169.254",
           "169.254.0.1",
           "172.16.0.1",
           "172.31.255.255",
           "192.0.0.1",
           "192.0.0.192",
           "192.0.2.1",
           "192.88.99.1",
           "192.168.0.1",
           "198.18.0.1",
           "198.19.255.255",
           "198.51.100.1",
           "203.0.113.9",
           "224.0.0.1",
           "239.255.255.255",
           "240.0.0.1",
           "255.255.255.255",
           "::",
           "::1",
           "fc00::1",
           "fd00:ec2::254",
           "fe80::1",
           "fe80::1%1",
           "febf::1",
           "fec0::1",
           "ff02::1",
           "100::1",
           "2001::1",
           "2001:2::1",
           "2001:db8::1",
           "3fff::1",
           "5f00::1",
           "::ffff:10.0.0.1",
           "::ffff:169.254.169.254",
           "::ffff:a9fe:a9fe",
           "::ffff:127.0.0.1",
           "::10.0.0.1",
           "::ffff:0:10.0.0.1",
           "64:ff9b::10.0.0.1",
           "64:ff9b::a9fe:a9fe",
           "64:ff9b:1::1",
           "2002:a00:1::",
           "2002:7f00:1::1",
           "2002:a9fe:a9fe::1",
           "2001:0:a00:1::",
           "2130706433",
           "0x7f000001",
           "0x7f.1",
           "017700000001",
           "0177.0.0.1",
           "127.1",
           "10.1",
           "0xa9fea9fe",
           "127.0.0.1.",
           "0",
       })
    EXPECT_FALSE(may(rules(), host)) << host;
}

TEST(AddressRules, LetThePublicInternetBeReached) {
  for (const auto* host :
       {"1.1.1.1",          "8.8.8.8",         "9.255.255.255",     "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",      "126.255.255.255", "128.0.0.0",         "169.253.255.255", "172.15.255.255",
        "172.32.0.0",       "192.0.1.0",       "192.167.255.255",   "198.17.255.255",  "198.20.0.0",
        "223.255.255.255",  "2606:4700::1111", "2a00:1450:4001::1", "2001:4860::8888", "::ffff:8.8.8.8",
        "64:ff9b::808:808", "2002:808:808::1", "134744072"})
    EXPECT_TRUE(may(rules(), host)) << host;
}

TEST(AddressRules, AllowByNameAddressAndNetwork) {
  const auto some = rules({"10.1.0.0/16", "192.168.7.7", "fd12::/16", "Hooks.Example.com", ".corp.example."});
  EXPECT_TRUE(may(some, "10.1.2.3"));
  EXPECT_TRUE(may(some, "::ffff:10.1.2.3")) << "the same address";
  EXPECT_TRUE(may(some, "64:ff9b::10.1.2.3"));
  EXPECT_FALSE(may(some, "10.2.0.0"));
  EXPECT_TRUE(may(some, "192.168.7.7"));
  EXPECT_FALSE(may(some, "192.168.7.8"));
  EXPECT_TRUE(may(some, "fd12:1::1"));
  EXPECT_FALSE(may(some, "fd13::1"));
  const auto inside = asio::ip::make_address("10.9.9.9");
  EXPECT_TRUE(some.check("hooks.example.com", inside));
  EXPECT_TRUE(some.check("HOOKS.example.com.", inside));
  EXPECT_FALSE(some.check("evil.hooks.example.com", inside));
  EXPECT_FALSE(some.check("example.com", inside));
  EXPECT_TRUE(some.check("a.b.corp.example", inside));
  EXPECT_FALSE(some.check("corp.example", inside)) << "only what is under it";
  EXPECT_FALSE(some.check("evilcorp.example", inside));
  EXPECT_TRUE(may(rules({"0.0.0.0/0", "::/0"}), "169.254.169.254"));
  EXPECT_TRUE(may(rules({}, true), "127.0.0.1"));
  EXPECT_TRUE(may(rules({}, true), "::1"));
  EXPECT_FALSE(may(rules({}, true), "0.0.0.0")) << "which would be this machine, too";
}

TEST(AddressRules, SayWhatIsRefusedAndWhatAllowsIt) {
  EXPECT_EQ(rules().check("10.0.0.1", asio::ip::make_address("10.0.0.1")).error(),
            "10.0.0.1 is a private address, which may not be reached from here; --outbound-allow 10.0.0.1 "
            "allows it");
  EXPECT_EQ(
      rules().check("db.inside", asio::ip::make_address("10.0.0.1")).error(),
      "db.inside is at a private address, which may not be reached from here; --outbound-allow db.inside "
      "allows it");
  for (const auto* wrong : {"", ".", "a b", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.300", "::1/129",
                            "http://a", "a..b", "*.a", "a/8", "0x7f.1"})
    EXPECT_FALSE(AddressRules::make({.allowed = {wrong}})) << wrong;
}

TEST(Urls, AreFollowedAsTheStandardSays) {
  const auto base = parse_url("http://a/b/c/d;p?q").value();
  const std::pair<const char*, const char*> cases[] = {
      {"g", "/b/c/g"},      {"./g", "/b/c/g"},    {"g/", "/b/c/g/"},        {"/g", "/g"},
      {"?y", "/b/c/d;p?y"}, {"g?y", "/b/c/g?y"},  {"#s", "/b/c/d;p?q"},     {"g#s", "/b/c/g"},
      {";x", "/b/c/;x"},    {"", "/b/c/d;p?q"},   {".", "/b/c/"},           {"./", "/b/c/"},
      {"..", "/b/"},        {"../g", "/b/g"},     {"../..", "/"},           {"../../g", "/g"},
      {"../../../g", "/g"}, {"/./g", "/g"},       {"/../g", "/g"},          {"g.", "/b/c/g."},
      {"./g/.", "/b/c/g/"}, {"g/../h", "/b/c/h"}, {"g;x=1/../y", "/b/c/y"}, {"g?y/../x", "/b/c/g?y/../x"},
  };
  for (const auto& [reference, path] : cases) {
    const auto found = resolve_url(base, reference);
    ASSERT_TRUE(found) << reference;
    EXPECT_EQ(found->origin() + found->path, fmt::format("http://a{}", path)) << reference;
  }
  EXPECT_EQ(resolve_url(base, "//g:81/x")->origin(), "http://g:81");
  EXPECT_EQ(resolve_url(base, "HTTPS://G/x")->origin(), "https://g");
  for (const auto* wrong : {"ftp://g/x", "mailto:x", "javascript:x", "//u@g/", "a b", "//"})
    EXPECT_FALSE(resolve_url(base, wrong)) << wrong;
}

TEST(Urls, NameNobodyAndHideNothing) {
  for (const auto* wrong :
       {"http://a@b/", "http://a:b@c/", "http://[::1%25lo]/", "http://[::1", "http://[a]/", "http://a..b/",
        "http://./", "http://.a/", "http://::1/", "http://a%2e/", "http://a\\b/", "http://a/\r\nx",
        "http://a/\t", "http:/a", "http:a", "https//a", "http://a:0/"})
    EXPECT_FALSE(parse_url(wrong)) << wrong;
  using std::literals::operator""sv;
  EXPECT_FALSE(parse_url("http://[::1\0]/"sv)) << "which others would read to the zero";
  EXPECT_FALSE(literal_address("10.0.0.1\0.example.com"sv));
  EXPECT_EQ(parse_url("http://a#@b/")->host, "a");
  EXPECT_EQ(parse_url("http://a?x#y")->path, "/?x");
  EXPECT_FALSE(has(parse_url("ftp://a?token=secret").error(), "secret"));
  EXPECT_FALSE(has(parse_url("http://a:secret@b").error(), "secret"));
}

TEST(Outbound, SendsAndReadsWhole) {
  const AnsweringServer server([](const std::string&) { return ok(); });
  Outbound outbound({});
  const auto reply = send(outbound, {.method = "POST",
                                     .url = server.url("/hook?a=b"),
                                     .headers = {{"Content-Type", "application/json"}, {"X-Mine", "1"}},
                                     .body = "{}"});
  ASSERT_EQ(describe(reply), "200 ok");
  EXPECT_EQ(reply->header("X-TWO"), "2");
  EXPECT_EQ(reply->header("x-three"), "");
  EXPECT_EQ(
      server.last(),
      fmt::format("POST /hook?a=b HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: Tabella\r\nContent-Length: "
                  "2\r\nContent-Type: application/json\r\nX-Mine: 1\r\n\r\n{{}}",
                  server.port()));
}

TEST(Outbound, ReadsNoBodyBehindAHead) {
  const AnsweringServer server([](const std::string&) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n";
  });
  Outbound outbound({});
  EXPECT_EQ(describe(send(outbound, {.method = "HEAD", .url = server.url()})), "200 ");
}

TEST(Outbound, RefusesWhatAStrangerShouldNotReach) {
  const AnsweringServer server([](const std::string&) { return ok(); });
  Outbound outbound({.rules = {.allowed = {}, .loopback = false}});
  for (const auto* host : {"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "2130706433", "0x7f.1",
                           "0177.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "0", "[::]"}) {
    const auto answer = get_through(outbound, server.url("/?token=secret", host));
    EXPECT_TRUE(begins(answer, "refused: ") && has(answer, "--outbound-allow")) << host << ": " << answer;
    EXPECT_FALSE(has(answer, "secret")) << answer;
  }
  EXPECT_EQ(server.requests().size(), 0u);
  EXPECT_FALSE(outbound.check("http://169.254.169.254/latest/meta-data/"));
  EXPECT_TRUE(outbound.check("http://example.com/"));
}

TEST(Outbound, GivesNoConnectionOfTheTrustedToStrangers) {
  const AnsweringServer server(
      [](const std::string&) { return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"; });
  Outbound outbound({.rules = {.allowed = {}, .loopback = false}});
  EXPECT_EQ(describe(send(outbound, {.url = server.url(), .trusted = true})), "200 ok");
  EXPECT_TRUE(begins(get_through(outbound, server.url()), "refused: "));
}

TEST(Outbound, ChecksWhereRedirectsLead) {
  const AnsweringServer server([](const std::string& request) {
    const auto path = path_of(request);
    if (path == "/metadata") return redirect(302, "http://169.254.169.254/latest/meta-data/");
    if (path == "/number") return redirect(307, "http://2130706433:1/");
    if (path == "/scheme") return redirect(302, "file:///etc/passwd");
    return redirect(302, "http://127.0.0.1:1/");
  });
  Outbound outbound({.rules = {.allowed = {"localhost"}, .loopback = false}});
  for (const auto* path : {"/metadata", "/number", "/"})
    EXPECT_TRUE(begins(get_through(outbound, server.url(path, "localhost")), "refused: ")) << path;
  EXPECT_TRUE(begins(get_through(outbound, server.url("/scheme", "localhost")), "refused: "));
  const auto reply = send(outbound, {.url = server.url("/"), .redirects = 3, .trusted = true});
  EXPECT_TRUE(begins(describe(reply), "refused: ")) << "trust is for what was named, not for where it leads";
}

TEST(Outbound, FollowsRedirectsSoFar) {
  const AnsweringServer server([](const std::string& request) {
    const auto path = path_of(request);
    if (path == "/a/start") return redirect(301, "next?x=1");
    if (path == "/a/next?x=1") return redirect(302, "/end");
    if (path == "/loop") return redirect(302, "/loop");
    return ok(path);
  });
  Outbound outbound({});
  EXPECT_EQ(get_through(outbound, server.url("/a/start")), "200 /end");
  EXPECT_EQ(get_through(outbound, server.url("/a/start"), 2), "200 /end");
  EXPECT_EQ(get_through(outbound, server.url("/a/start"), 1),
            "failed: 127.0.0.1 redirects more than 1 times");
  EXPECT_EQ(get_through(outbound, server.url("/a/start"), 0), "301 ");
  const auto before = server.requests().size();
  EXPECT_TRUE(begins(get_through(outbound, server.url("/loop")), "failed: "));
  EXPECT_EQ(server.requests().size() - before, 6u);
}

TEST(Outbound, KeepsTheMethodOnlyWhereTheRedirectSaysSo) {
  const AnsweringServer server([](const std::string& request) {
    const auto path = path_of(request);
    if (path == "/end")
      return ok(request.substr(0, request.find(' ')) + request.substr(request.find("\r\n\r\n") + 4));
    return redirect(std::stoi(path.substr(1)), "/end");
  });
  Outbound outbound({});
  const auto post = [&](const char* path, const char* method = "POST") {
    return describe(send(outbound, {.method = method,
                                    .url = server.url(path),
                                    .headers = {{"content-type", "text/plain"}},
                                    .body = "body",
                                    .redirects = 1}));
  };
  for (const auto* becomes_get : {"/301", "/302", "/303"}) {
    EXPECT_EQ(post(becomes_get), "200 GET");
    EXPECT_FALSE(has(server.last(), "text/plain"));
    EXPECT_FALSE(has(server.last(), "Content-Length"));
  }
  for (const auto* keeps : {"/307", "/308"}) EXPECT_EQ(post(keeps), "200 POSTbody");
  EXPECT_EQ(post("/302", "PUT"), "200 PUTbody");
  EXPECT_EQ(post("/303", "PUT"), "200 GET");
}

TEST(Outbound, TakesNoCredentialsToAnotherOrigin) {
  const AnsweringServer other([](const std::string&) { return ok("other"); });
  const AnsweringServer server([&](const std::string& request) {
    return path_of(request) == "/away" ? redirect(307, other.url()) : redirect(307, "/away");
  });
  Outbound outbound({});
  const OutboundRequest request{.method = "POST",
                                .url = server.url("/here"),
                                .headers = {{"Authorization", "Bearer secret"},
                                            {"cookie", "secret"},
                                            {"Webhook-Signature", "v1,secret"},
                                            {"webhook-id", "7"}},
                                .body = "x",
                                .redirects = 2};
  EXPECT_EQ(describe(send(outbound, request)), "200 other");
  EXPECT_TRUE(has(server.last(), "Bearer secret")) << "the same origin";
  EXPECT_FALSE(has(other.last(), "secret")) << other.last();
  EXPECT_TRUE(has(other.last(), "webhook-id: 7"));
}

TEST(Outbound, LetsNothingIntoTheHeadOfARequest) {
  Outbound outbound({});
  const auto refused = [&](OutboundRequest request) {
    const auto reply = send(outbound, std::move(request));
    return !reply && reply.error().refused;
  };
  EXPECT_TRUE(refused({.url = "http://127.0.0.1:1/a\r\nX: y"}));
  EXPECT_TRUE(refused({.url = "http://user:secret@127.0.0.1:1/"}));
  EXPECT_TRUE(refused({.method = "GET / HTTP/1.1\r\nX:", .url = "http://127.0.0.1:1/"}));
  EXPECT_TRUE(refused({.method = "CONNECT", .url = "http://127.0.0.1:1/"}));
  for (const auto& header :
       std::initializer_list<std::pair<const char*, const char*>>{{"X", "a\r\nY: b"},
                                                                  {"X", "a\nb"},
                                                                  {"X: y\r\nZ", "a"},
                                                                  {"", "a"},
                                                                  {"Host", "b"},
                                                                  {"content-length", "1"},
                                                                  {"Transfer-Encoding", "chunked"},
                                                                  {"Proxy-Authorization", "x"}})
    EXPECT_TRUE(refused({.url = "http://127.0.0.1:1/", .headers = {header}})) << header.first;
}

TEST(Outbound, ReadsNoMoreThanItIsTold) {
  const AnsweringServer server([](const std::string& request) {
    const std::string large(10'000, 'x');
    const auto path = path_of(request);
    if (path == "/length") return ok(large);
    if (path == "/chunks")
      return fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n{}\r\n0\r\n\r\n",
                         large);
    return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + large;
  });
  Outbound outbound({});
  for (const auto* path : {"/length", "/chunks", "/close"}) {
    EXPECT_EQ(describe(send(outbound, {.url = server.url(path), .max_body = 9'999})).substr(0, 40),
              "failed: the answer is too large");
    EXPECT_EQ(send(outbound, {.url = server.url(path), .max_body = 10'000})->body.size(), 10'000u);
  }
}

TEST(Outbound, HasOneDeadlineForAllRedirects) {
  const AnsweringServer server([](const std::string&) {
    std::this_thread::sleep_for(milliseconds{60});
    return redirect(302, "/again");
  });
  Outbound outbound({});
  const auto begin = std::chrono::steady_clock::now();
  const auto reply = send(outbound, {.url = server.url(), .timeout = milliseconds{150}, .redirects = 100});
  EXPECT_TRUE(begins(describe(reply), "failed: no answer within")) << describe(reply);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{2});
}

TEST(Outbound, AsksAProxyForWhatIsElsewhere) {
  const AnsweringServer proxy([](const std::string&) { return ok("by proxy"); });
  const AnsweringServer here([](const std::string&) { return ok("here"); });
  Outbound outbound({.rules = {}, .proxy = fmt::format("http://me:se%63ret@localhost:{}", proxy.port())});
  EXPECT_EQ(get_through(outbound, "http://example.com/a?b"), "200 by proxy");
  EXPECT_EQ(proxy.last(),
            "GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nProxy-Authorization: Basic "
            "bWU6c2VjcmV0\r\nUser-Agent: Tabella\r\n\r\n");
  EXPECT_TRUE(begins(get_through(outbound, "http://169.254.169.254/"), "refused: "));
  EXPECT_TRUE(begins(get_through(outbound, "http://0xa9fea9fe/"), "refused: "));
  EXPECT_EQ(proxy.requests().size(), 1u);
  for (const auto* name : {"127.0.0.1", "localhost", "localhost.", "127.1", "[::ffff:127.0.0.1]"})
    EXPECT_EQ(get_through(outbound, here.url("/", name)), "200 here") << name;
  EXPECT_EQ(proxy.requests().size(), 1u);
}

TEST(Outbound, TunnelsThroughAProxyToWhatIsSecure) {
  const AnsweringServer proxy([](const std::string& request) {
    return has(request, "forbidden") ? "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
                                     : "HTTP/1.1 200 Connected\r\n\r\n";
  });
  Outbound outbound({.rules = {}, .proxy = fmt::format("http://me:secret@127.0.0.1:{}", proxy.port())});
  const auto denied = get_through(outbound, "https://forbidden.example/?token=hidden");
  EXPECT_TRUE(has(denied, "it answered 403")) << denied;
  EXPECT_FALSE(has(denied, "secret") || has(denied, "hidden")) << denied;
  EXPECT_EQ(
      proxy.last(),
      "CONNECT forbidden.example:443 HTTP/1.1\r\nHost: forbidden.example:443\r\nProxy-Authorization: Basic "
      "bWU6c2VjcmV0\r\n\r\n");
  EXPECT_TRUE(has(get_through(outbound, "https://[2606:4700::1111]:8443/"), "no secure connection to"))
      << "nobody is at the end of this tunnel";
  EXPECT_TRUE(begins(proxy.last(), "CONNECT [2606:4700::1111]:8443 HTTP/1.1\r\n"));
  EXPECT_TRUE(begins(get_through(outbound, "https://10.0.0.1/"), "refused: "));
}

// A server with a certificate of its own making, for the name secure.test, and a proxy in front of it that
// takes every tunnel there. One connection at a time.
class SecureSite {
 public:
  explicit SecureSite(std::string answer)
      : answer_(std::move(answer)),
        site_(context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
        proxy_(context_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
    const auto command = fmt::format(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=secure.test -addext "
        "subjectAltName=DNS:secure.test -keyout {} -out {} 2>/dev/null",
        key().string(), certificate().string());
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl made no certificate");
    identity_.emplace(TlsFiles{.certificate = certificate(), .key = key()});
    asio::co_spawn(context_, serve(), [](std::exception_ptr) {});
    asio::co_spawn(context_, relay(), [](std::exception_ptr) {});
    thread_ = std::thread([this] { context_.run(); });
  }
  ~SecureSite() {
    context_.stop();
    thread_.join();
  }

  std::filesystem::path certificate() const { return folder_.path() / "certificate.pem"; }
  std::string proxy() const { return fmt::format("http://127.0.0.1:{}", proxy_.local_endpoint().port()); }
  int served() const { return served_; }

 private:
  std::filesystem::path key() const { return folder_.path() / "key.pem"; }

  asio::awaitable<void> serve() {
    while (true) {
      Transport transport(co_await site_.async_accept(asio::use_awaitable));
      if (co_await transport.secure(*identity_)) continue;
      std::string request;
      std::array<char, 4096> room{};
      while (!has(request, "\r\n\r\n")) {
        const auto [error, count] = co_await transport.read_some(asio::buffer(room));
        if (error) break;
        request.append(room.data(), count);
      }
      ++served_;
      co_await transport.write({asio::buffer(answer_), asio::const_buffer()});
    }
  }

  asio::awaitable<void> relay() {
    while (true) {
      auto near = co_await proxy_.async_accept(asio::use_awaitable);
      std::string request;
      co_await asio::async_read_until(near, asio::dynamic_buffer(request), "\r\n\r\n", asio::use_awaitable);
      tcp::socket far(context_);
      co_await far.async_connect(site_.local_endpoint(), asio::use_awaitable);
      co_await asio::async_write(near, asio::buffer(std::string_view("HTTP/1.1 200 Connected\r\n\r\n")),
                                 asio::use_awaitable);
      using asio::experimental::awaitable_operators::operator||;
      co_await (pass(near, far) || pass(far, near));
    }
  }
  static asio::awaitable<void> pass(tcp::socket& from, tcp::socket& to) {
    std::array<char, 4096> room{};
    while (true) {
      const auto [error, count] =
          co_await from.async_read_some(asio::buffer(room), asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
      co_await asio::async_write(to, asio::buffer(room.data(), count), asio::as_tuple(asio::use_awaitable));
    }
  }

  const std::string answer_;
  const test::Folder folder_;
  asio::io_context context_;
  tcp::acceptor site_;
  tcp::acceptor proxy_;
  std::optional<TlsIdentity> identity_;
  std::atomic<int> served_ = 0;
  std::thread thread_;
};

TEST(Outbound, SpeaksTlsInsideATunnel) {
  const SecureSite site(ok("secret"));
  Outbound trusting({.rules = {}, .proxy = site.proxy(), .ca_file = site.certificate()});
  EXPECT_EQ(get_through(trusting, "https://secure.test/"), "200 secret");
  EXPECT_TRUE(has(get_through(trusting, "https://other.test/"), "no secure connection to other.test"))
      << "the certificate is not for that name";
  Outbound other({.rules = {}, .proxy = site.proxy()});
  EXPECT_TRUE(has(get_through(other, "https://secure.test/"), "no secure connection to secure.test"));
  EXPECT_EQ(site.served(), 1);
}

TEST(Outbound, DoesNotLeaveHttpsForHttp) {
  const SecureSite site(redirect(302, "http://127.0.0.1:1/"));
  Outbound outbound({.rules = {}, .proxy = site.proxy(), .ca_file = site.certificate()});
  EXPECT_EQ(get_through(outbound, "https://secure.test/"),
            "refused: secure.test redirects from https to http, which is not followed");
}

TEST(Outbound, SaysWhatIsWrongWithItsOptions) {
  EXPECT_THROW(Outbound({.rules = {.allowed = {"10.0.0.0/64"}}}), std::runtime_error);
  for (const auto* proxy :
       {"localhost", "https://a:1", "http://a:1/path", "http://", "socks5://a:1", "http://u:p@"})
    EXPECT_THROW(Outbound({.rules = {}, .proxy = proxy}), std::runtime_error) << proxy;
  try {
    const Outbound outbound({.rules = {}, .proxy = "http://me:secret@a b"});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_FALSE(has(error.what(), "secret"));
  }
}

TEST(Outbound, ForgetsServersThatWereNotAskedForLong) {
  const AnsweringServer server([](const std::string&) { return ok(); });
  Outbound outbound({});
  for (int i = 1; i < 255; ++i) {
    EXPECT_EQ(get_through(outbound, server.url("/", fmt::format("127.0.0.{}", 1))), "200 ok");
    EXPECT_TRUE(begins(get_through(outbound, fmt::format("http://127.0.1.{}:1/", i)), "failed: "));
    EXPECT_TRUE(begins(get_through(outbound, fmt::format("http://127.0.2.{}:1/", i)), "failed: "));
  }
  EXPECT_EQ(get_through(outbound, server.url()), "200 ok");
}

}  // namespace
}  // namespace tabella::net

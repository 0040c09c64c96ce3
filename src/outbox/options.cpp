#include "outbox/options.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "net/url.h"
#include "outbox/mysql_url.h"

namespace tabella::outbox {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

template <class T>
OptionCheck only_check(const std::expected<T, std::string>& parsed) {
  if (!parsed) return std::unexpected(parsed.error());
  return {};
}

OptionCheck check_callback(std::string_view text) {
  if (const auto url = net::parse_url(text); !url) return std::unexpected(url.error());
  return {};
}
OptionCheck check_route(std::string_view text) { return Routes().add(text); }
OptionCheck check_relay(std::string_view text) { return only_check(parse_relay(text)); }
OptionCheck check_database(std::string_view text) { return only_check(parse_mysql_url(text)); }

std::expected<std::pair<std::string, double>, std::string> read_rate(std::string_view text) {
  const auto equals = text.find('=');
  double rate = 0;
  if (equals != std::string_view::npos && equals > 0) {
    const auto number = text.substr(equals + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rate);
    if (error != std::errc{} || end != number.data() + number.size()) rate = 0;
  }
  if (!(rate > 0) || std::isinf(rate))
    return std::unexpected(fmt::format("'{}' is no rate; one is example.com=10, in emails a second", text));
  return std::pair(lower(text.substr(0, equals)), rate);
}

OptionCheck check_dkim(std::string_view text) {
  if (split(text, ':').size() < 3) return std::unexpected("a key is DOMAIN:SELECTOR:FILE, the file in PEM");
  return {};
}

OptionCheck check_together(const Options& options, const OptionSources& given) {
  if (const auto both = go_together(given, "--submission-tls-cert", "--submission-tls-key"); !both)
    return both;
  if (options.mode == Mode::relay && options.relay.empty())
    return std::unexpected("--outbox-mode relay needs --outbox-relay smtp://host:port");
  if (!options.callback_secret.empty() && options.callback_secret.size() < 8)
    return std::unexpected("--outbox-callback-secret: it has at least 8 characters");
  if (options.bounces && options.bounce_domain.empty())
    return std::unexpected(
        "--outbox-bounces needs --outbox-bounce-domain: the domain whose mail comes there");
  if (options.retry_longest < options.retry_first)
    return std::unexpected("--outbox-retry-longest is shorter than --outbox-retry-first");
  return {};
}

void add_storage(std::vector<Option>& rows, Options& options) {
  rows.insert(
      rows.end(),
      {{"--outbox-table",
        text_option(options.table, "NAME"),
        "Table with the emails and their states",
        {"EMAIL_OUTBOX_TABLE"}},
       {.flags = "--outbox-database",
        .value = text_option(options.database, "URL", check_database),
        .help =
            "Keep emails and their states in MySQL or MariaDB instead: mysql://user:password@host/database",
        .secret = true},
       {"--outbox-folder", text_option(options.folder, "FOLDER"),
        "Folder with payload files and messages that other programs share"},
       {"--outbox-ttl", lifetime_option(options.time_to_live),
        "How long emails are kept once they are done, as in 30d; off: for ever"}});
}

void add_delivery(std::vector<Option>& rows, Options& options) {
  rows.insert(
      rows.end(),
      {{"--outbox-mode",
        choice_option(options.mode,
                      {{"capture", Mode::capture}, {"relay", Mode::relay}, {"direct", Mode::direct}}),
        "Where emails go: into our own mail, to --outbox-relay, or to the servers of each domain"},
       {.flags = "--outbox-relay",
        .value = text_option(options.relay, "URL", check_relay),
        .help = "smtp://user:password@host:port or smtps://…; ?tls=required, ?verify=no",
        .secret = true},
       {.flags = "--outbox-route",
        .value = texts_option(options.routes, "DOMAIN=WAY", check_route),
        .help = "Another way for a domain: example.com=capture, example.com=direct, "
                "*.example.com=smtp://host; may be "
                "repeated",
        .secret = true},
       {"--outbox-tls",
        choice_option(options.tls, {{"opportunistic", smtp::Security::opportunistic},
                                    {"required", smtp::Security::required},
                                    {"off", smtp::Security::none}}),
        "TLS to the servers of domains; required: with a certificate that is right"},
       {"--outbox-ca", text_option(options.ca_file, "FILE"),
        "Certificates (PEM) to check servers against; without it the system's"},
       {"--outbox-dns", texts_option(options.dns_servers, "HOST:PORT"),
        "Name servers to ask; without it the system's; may be repeated"},
       {"--outbox-direct-port", number_option(options.direct_port, 1, 65535),
        "Port of the servers of domains"},
       {"--outbox-dkim", texts_option(options.dkim, "DOMAIN:SELECTOR:FILE", check_dkim),
        "Sign mail from a domain by DKIM with the private key (PEM) in a file; may be repeated"},
       {"--outbox-concurrency", number_option(options.concurrency, 1, 1000),
        "Most deliveries at once to one destination"},
       {"--outbox-rate",
        texts_option(options.rates, "DESTINATION=N",
                     [](std::string_view text) { return only_check(read_rate(text)); }),
        "Most emails a second to a domain or relay, by this process; *: to any other; may be repeated"},
       {"--outbox-retry-first", time_option(options.retry_first, milliseconds{10}, hours{24}),
        "Pause before the second attempt; it doubles with each"},
       {"--outbox-retry-longest", time_option(options.retry_longest, milliseconds{10}, hours{24 * 7}),
        "Longest pause between two attempts"},
       {"--outbox-give-up", time_option(options.give_up, milliseconds{100}, hours{24 * 30}),
        "For how long delivery is tried"},
       {"--outbox-timeout", time_option(options.timeout, milliseconds{100}, hours{1}),
        "How long a server may take to answer once it has the message; a fifth of it for other steps"},
       {"--outbox-unknown",
        choice_option(options.if_unknown, {{"repeat", IfUnknown::repeat}, {"fail", IfUnknown::fail}}),
        "What to do if nobody knows whether a message arrived: send it again, or call it failed"},
       {"--outbox-lease", time_option(options.lease, milliseconds{500}, hours{1}),
        "After what time without a sign of life others take over a process's emails"},
       {"--outbox-stale", time_option(options.stale, milliseconds{500}, hours{24 * 7}),
        "After what time an email that another program took, and did not move on, is taken over"}});
}

void add_answers(std::vector<Option>& rows, Options& options) {
  rows.insert(rows.end(), {{"--outbox-callback", text_option(options.callback, "URL", check_callback),
                            "URL to tell what became of each email that names none itself"},
                           {.flags = "--outbox-callback-secret",
                            .value = text_option(options.callback_secret, "SECRET"),
                            .help = "What callbacks are signed with; better in the environment",
                            .secret = true},
                           {"--outbox-bounce-domain", text_option(options.bounce_domain, "DOMAIN"),
                            "Send from addresses of this domain that tell whose bounce it is (VERP)"},
                           {"--outbox-bounces", address_option(options.bounces),
                            "Where to take bounces by SMTP; off: nowhere"}});
}

void add_submission(std::vector<Option>& rows, Options& options) {
  rows.insert(
      rows.end(),
      {{"--submission", address_option(options.submission), "Where to take emails by SMTP; off: nowhere"},
       {"--submission-tls-cert", part_option(options.tls_files, &net::TlsFiles::certificate, "FILE"),
        "Certificate chain (PEM) for STARTTLS"},
       {"--submission-tls-key", part_option(options.tls_files, &net::TlsFiles::key, "FILE"),
        "Its private key (PEM)"},
       {"--submission-auth-file", text_option(options.auth_file, "FILE"),
        "Users who may send, as lines of name:bcrypt or name:password; without it everybody may"},
       {"--outbox-max-size", size_option(options.max_size, 1, 1u << 30), "Largest email"}});
}

}  // namespace

OptionGroup option_table(Options& options) {
  OptionGroup group{.title = "Outbox", .check = [&options](const OptionSources& given) {
                      return check_together(options, given);
                    }};
  add_storage(group.options, options);
  add_delivery(group.options, options);
  add_answers(group.options, options);
  add_submission(group.options, options);
  return group;
}

Routes routes_of(const Options& options) {
  Routes routes;
  routes.otherwise.mode = options.mode;
  if (!options.relay.empty()) routes.otherwise.relay = parse_relay(options.relay).value();
  for (const auto& text : options.routes) routes.add(text).value();
  return routes;
}

std::map<std::string, double> rates_of(const Options& options) {
  std::map<std::string, double> rates;
  for (const auto& text : options.rates) rates.insert(read_rate(text).value());
  return rates;
}

}  // namespace tabella::outbox

#include "mail/options.h"

#include <limits>

#include "net/url.h"

namespace tabella::mail {
namespace {

OptionCheck check_url(std::string_view text) {
  if (const auto url = net::parse_url(text); !url) return std::unexpected(url.error());
  return {};
}

OptionCheck check(const Options& options, const OptionSources& given) {
  if (const auto both = go_together(given, "--smtp-tls-cert", "--smtp-tls-key"); !both) return both;
  if (!options.tls && (options.smtps || options.require_tls))
    return std::unexpected("--smtps and --smtp-require-tls need --smtp-tls-cert and --smtp-tls-key");
  if (!options.webhook_secret.empty() && options.webhooks.empty())
    return std::unexpected("--mail-webhook-secret: goes with --mail-webhook");
  if (options.chances.link_speed_max < options.chances.link_speed_min)
    return std::unexpected(
        "--jim-linkspeed-min and --jim-linkspeed-max: bytes a second, at least 1, the smaller first");
  return {};
}

void add_smtp(std::vector<Option>& rows, Options& options) {
  rows.insert(
      rows.end(),
      {{"--smtp,--smtp-bind-addr",
        address_option(options.smtp),
        "Where to catch mail; off: nowhere",
        {"MH_SMTP_BIND_ADDR"}},
       {"--smtps", address_option(options.smtps), "Where to catch mail under TLS from the start"},
       {"--smtp-tls-cert", part_option(options.tls, &net::TlsFiles::certificate, "FILE"),
        "Certificate chain (PEM) for STARTTLS and --smtps"},
       {"--smtp-tls-key", part_option(options.tls, &net::TlsFiles::key, "FILE"), "Its private key (PEM)"},
       {"--smtp-require-tls", switch_option(options.require_tls), "Take mail and logins only under TLS"},
       {"--smtp-auth-file", text_option(options.auth_file, "FILE"),
        "Users who may send, as lines of name:bcrypt or name:password; without it everybody may, with any "
        "login"},
       {"--smtp-max-size", size_option(options.max_message, 1, 1u << 30), "Largest message"},
       {"--smtp-max-recipients", number_option(options.max_recipients, 1, 1000),
        "Most recipients of a message"},
       {"--smtp-max-connections", number_option(options.max_connections, 1), "Most sessions at once"}});
}

void add_messages(std::vector<Option>& rows, Options& options) {
  rows.insert(
      rows.end(),
      {{"--mail-ttl", lifetime_option(options.time_to_live),
        "How long messages are kept, as in 7d, 12h, 30m; off: for ever"},
       {"--mail-partition",
        choice_option(
            options.granularity,
            {{"day", Granularity::day}, {"half-day", Granularity::half_day}, {"hour", Granularity::hour}}),
        "How much time one partition of the table spans"},
       {"--mail-max-messages", number_option(options.most_messages),
        "Most messages that are kept: the oldest go; 0: no limit"},
       {"--mail-settle", time_option(options.settle, std::chrono::milliseconds{100}, std::chrono::hours{1}),
        "How far the search index stays behind, and how far the clocks of processes on one store may "
        "disagree; without it 2s on the embedded store, 20s on another"},
       {"--outgoing-smtp",
        text_option(options.outgoing_file, "FILE"),
        "JSON file with servers that messages can be released through",
        {"MH_OUTGOING_SMTP"}},
       {"--mail-webhook", texts_option(options.webhooks, "URL", check_url),
        "URL to tell of each message; may be repeated"},
       {.flags = "--mail-webhook-secret",
        .value = text_option(options.webhook_secret, "SECRET"),
        .help = "What its calls are signed with; better in the environment",
        .secret = true}});
}

void add_jim(std::vector<Option>& rows, Options& options) {
  auto& chances = options.chances;
  const auto chance = [](double& into) { return real_option(into, 0, 1, "CHANCE"); };
  const auto speed = [](double& into) {
    return real_option(into, 1, std::numeric_limits<double>::max(), "N");
  };
  rows.insert(rows.end(),
              {{"--invite-jim",
                switch_option(options.invite_jim),
                "Let Jim, the chaos monkey, in",
                {"MH_INVITE_JIM"}},
               {"--jim-disconnect", chance(chances.disconnect), "That a session is cut off"},
               {"--jim-accept", chance(chances.accept), "That a connection is taken"},
               {"--jim-linkspeed-affect", chance(chances.link_speed_affect), "That a session is slow"},
               {"--jim-linkspeed-min", speed(chances.link_speed_min), "Slowest, in bytes a second"},
               {"--jim-linkspeed-max", speed(chances.link_speed_max), "Fastest of the slow"},
               {"--jim-reject-sender", chance(chances.reject_sender), "That a sender is refused"},
               {"--jim-reject-recipient", chance(chances.reject_recipient), "That a recipient is refused"},
               {"--jim-reject-auth", chance(chances.reject_auth), "That a login is refused"}});
}

}  // namespace

OptionGroup option_table(Options& options) {
  OptionGroup group{.title = "Mail",
                    .check = [&options](const OptionSources& given) { return check(options, given); }};
  add_smtp(group.options, options);
  add_messages(group.options, options);
  add_jim(group.options, options);
  return group;
}

}  // namespace tabella::mail

#include "app/server_options.h"

#include <algorithm>
#include <cctype>
#include <thread>

#include <fmt/format.h>

#include "app/mailhog_options.h"
#include "base/text.h"
#include "net/url.h"

namespace tabella::app {
namespace {

constexpr size_t kMostBytes = size_t{1} << 50;

// One core is the writer's.
size_t default_threads() { return std::max(2u, std::thread::hardware_concurrency()) - 1; }

bool is_made_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || others.find(c) != std::string_view::npos;
  });
}

// ID:SECRET. The texts hold secrets: they are not repeated.
OptionValue access_keys_option(std::map<std::string, std::string, std::less<>>& into) {
  return {.placeholder = "ID:SECRET",
          .repeatable = true,
          .separator = ',',
          .set = [&into](const std::vector<std::string>& texts) -> OptionCheck {
            for (const auto& text : texts) {
              const auto colon = text.find(':');
              if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
                return std::unexpected("expected ID:SECRET, as in --access-key AKIDEXAMPLE:secret");
              into[text.substr(0, colon)] = text.substr(colon + 1);
            }
            return {};
          },
          .show =
              [&into] {
                std::vector<std::string> ids;
                for (const auto& [id, secret] : into) ids.push_back(id);
                return ids;
              }};
}

std::expected<std::string, std::string> read_web_path(std::string_view text) {
  std::string path(text);
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && !path.starts_with('/')) path.insert(0, "/");
  if (!is_made_of(path, "/-_.~")) return std::unexpected("letters, digits, '/', '-', '_', '.' and '~'");
  return path;
}

OptionCheck check_origin(std::string_view text) {
  if (!is_plain(text)) return std::unexpected("an origin, as in https://app.example.com, or *");
  return {};
}

OptionCheck check_hostname(std::string_view text) {
  if (text.empty() || text.size() > 200 || !is_made_of(text, ".-_"))
    return std::unexpected(fmt::format("'{}' is no host name", text));
  return {};
}

OptionCheck check_reachable(std::string_view text) {
  if (text.empty() || !is_made_of(text, ".-_:/"))
    return std::unexpected(fmt::format("'{}' is no host name, address or network, as in 10.0.0.0/8", text));
  return {};
}

// It may have a user and a password, which are not repeated.
OptionCheck check_proxy(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  const auto at = text.rfind('@');
  const bool with_user = text.starts_with(kScheme) && at != std::string_view::npos;
  const auto url =
      net::parse_url(with_user ? std::string(kScheme).append(text.substr(at + 1)) : std::string(text));
  if (!url) return std::unexpected(url.error());
  if (url->tls || url->path != "/") return std::unexpected(std::string("it is not http://HOST:PORT"));
  return {};
}

TextCheck check_system(std::vector<std::string> systems) {
  return [systems = std::move(systems)](std::string_view text) -> OptionCheck {
    if (std::ranges::find(systems, text) != systems.end()) return {};
    return std::unexpected(fmt::format("'{}' is no system; there are: {}", text, join(systems, ", ")));
  };
}

OptionGroup dynamodb_table(ServeOptions& options) {
  return {
      .title = "DynamoDB API",
      .options =
          {{"--dynamodb", address_option(options.dynamodb), "Where to serve the DynamoDB API"},
           {"--tls-cert", part_option(options.tls, &net::TlsFiles::certificate, "FILE"),
            "Certificate chain (PEM) for the DynamoDB API to be served under TLS"},
           {"--tls-key", part_option(options.tls, &net::TlsFiles::key, "FILE"), "Its private key (PEM)"},
           {.flags = "--access-key",
            .value = access_keys_option(options.access_keys),
            .help =
                "Credentials to require, with full signature checks; may be repeated. Without any, all are "
                "accepted",
            .secret = true},
           {"--durability",
            choice_option(options.durability,
                          {{"sync", engine::Durability::sync}, {"relaxed", engine::Durability::relaxed}}),
            "sync: a write is on disk before it is acknowledged; relaxed: the operating system writes it "
            "soon after, and a crash of the machine may lose the last moments"},
           {"--min-free", size_option(options.min_free, 0, kMostBytes),
            "Refuse writes while less is free on the disk of --data, as in 2GB; 0: never. By default a tenth "
            "of the disk, 256MB at most"},
           {"--show-system-tables", switch_option(options.show_system_tables),
            "List the tables of the systems too; they can be used by name in any case"}},
      .check = [&options](const OptionSources& given) -> OptionCheck {
        if (!options.store.remote) return go_together(given, "--tls-cert", "--tls-key");
        return refuse_given(
            given, {"--durability", "--min-free", "--dynamodb", "--access-key", "--tls-cert", "--tls-key"},
            "is for the embedded store; another one has its own DynamoDB door");
      }};
}

OptionGroup http_table(ServeOptions& options) {
  return {
      .title = "HTTP",
      .options =
          {{"--http", address_option(options.http),
            "Where to serve pages and APIs of the systems, /metrics and /healthz; off: nowhere"},
           {"--http-tls-cert", part_option(options.http_tls, &net::TlsFiles::certificate, "FILE"),
            "Certificate chain (PEM) for it to be served under TLS"},
           {"--http-tls-key", part_option(options.http_tls, &net::TlsFiles::key, "FILE"),
            "Its private key (PEM)"},
           {"--auth-file",
            text_option(options.auth_file, "FILE"),
            "Users for what is served over HTTP, as lines of name:bcrypt (htpasswd -B, or tabella bcrypt)",
            {"MH_AUTH_FILE"}},
           {"--web-path,--ui-web-path",
            read_option<std::string>(options.web_path, "PATH", read_web_path,
                                     [](const std::string& path) { return path; }),
            "What all paths over HTTP begin with",
            {"MH_UI_WEB_PATH"}},
           {"--cors-origin",
            text_option(options.cors_origin, "ORIGIN", check_origin),
            "Origin whose pages may use the API; *: any",
            {"MH_CORS_ORIGIN"}},
           {"--allow-host", texts_option(options.allowed_hosts, "NAME"),
            "Name that the page may be asked for by, besides addresses, localhost and names without dots; "
            "may be repeated. Asked of whoever comes by another name when --http is on a loopback address: "
            "pages of strangers could"}},
      .check = [](const OptionSources& given) {
        return go_together(given, "--http-tls-cert", "--http-tls-key");
      }};
}

OptionGroup outbound_table(ServeOptions& options) {
  return {
      .title = "Outbound requests",
      .options = {
          {"--outbound-allow", texts_option(options.outbound_allowed, "HOST|NETWORK", check_reachable, ','),
           "Host, address or network (10.0.0.0/8) that webhooks and the like may reach although it is "
           "private or link-local; may be repeated"},
          {"--outbound-proxy",
           text_option(options.outbound_proxy, "URL", check_proxy),
           "Proxy that they go through, as in http://HOST:PORT or http://USER:PASSWORD@HOST:PORT",
           {},
           true}}};
}

OptionGroup process_table(ServeOptions& options, const std::vector<std::string>& systems) {
  using std::chrono::seconds;
  options.systems = systems;
  return {.title = "Process",
          .options = {{"--systems", texts_option(options.systems, "NAME", check_system(systems), ','),
                       "Which systems to run, with commas between them; all, if nothing is said"},
                      {"--create-tables", switch_option(options.create_tables),
                       "Create what is missing of our own tables in the --store, and wait until it is there"},
                      {"--hostname",
                       text_option(options.hostname, "NAME", check_hostname),
                       "What we call ourselves in SMTP, ids and Received headers",
                       {"MH_HOSTNAME"}},
                      {"--secret-key-file", path_option(options.secret_key_file, "FILE"),
                       "Key that secrets in the store are encrypted by; without it one in --data"},
                      {"--threads", number_option(options.threads, 0, 256),
                       "Threads for network and reads; 0: one per core, less one for the writer"},
                      {"--memory", size_option(options.memory, 64u << 20, kMostBytes),
                       "What requests and answers may take together before new ones are put off"},
                      {"--stop-timeout", time_option(options.stop_timeout, seconds{1}, seconds{3600}),
                       "Time in which a stop is over, whatever is still under way"},
                      {"--log-level",
                       word_option(options.log_level, {"debug", "info", "warning", "error", "off"}),
                       "How much to log"},
                      {"--log-format",
                       choice_option(options.log_format,
                                     {{"text", log::Format::text}, {"json", log::Format::json}}),
                       "How to log: lines of text, or of JSON"}},
          .check = [&options](const OptionSources&) -> OptionCheck {
            if (options.threads == 0) options.threads = default_threads();
            return {};
          }};
}

}  // namespace

std::vector<OptionGroup> server_tables(ServeOptions& options, const std::vector<std::string>& systems) {
  return {store_table(options.store), dynamodb_table(options),         http_table(options),
          outbound_table(options),    process_table(options, systems), mailhog_table(options)};
}

}  // namespace tabella::app

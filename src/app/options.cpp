#include "app/options.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <CLI/CLI.hpp>

#include "base/duration.h"
#include "base/environment.h"
#include "base/passwords.h"
#include "base/text.h"
#include "mail/query.h"

namespace tabella::app {
namespace {

class Mistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The options as they were given, before they mean anything.
struct GivenMail {
  std::string smtp = "127.0.0.1:1025";
  std::string smtps = "off";
  std::string tls_cert;
  std::string tls_key;
  bool require_tls = false;
  std::string auth_file;
  std::string max_size = "50M";
  size_t max_recipients = 100;
  size_t max_connections = 1000;
  std::string hostname = "tabella.local";
  std::string ttl = "7d";
  std::string partition = "day";
  size_t max_messages = 0;
  std::string settle;
  std::string outgoing_file;
  std::vector<std::string> webhooks;
  std::string webhook_secret;
  bool invite_jim = false;
  mail::Chances chances;
};

// What MailHog has and we have otherwise, or not.
struct GivenToMailHog {
  std::string api;
  std::string ui;
  std::string storage;
  std::string elsewhere;  // what says where its storage is
};

struct Given {
  std::string store = "embedded";
  std::string table_prefix;
  bool create_tables = false;
  std::string region;
  std::string profile;
  std::string key_id;
  std::string secret_key;
  std::string session_token;
  std::string store_ca;
  std::string data = "./data";
  std::string dynamodb = "127.0.0.1:8000";
  std::string http = "127.0.0.1:8025";
  std::string durability = "sync";
  std::string min_free;
  std::string memory = "512MB";
  size_t stop_timeout = 10;
  std::vector<std::string> access_keys;
  std::string tls_cert;
  std::string tls_key;
  size_t threads = 0;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string web_path;
  std::string cors_origin;
  std::vector<std::string> allowed_hosts;
  std::string auth_file;
  GivenMail mail;
  GivenToMailHog mailhog;
};

Address parse_address(const std::string& text, std::string_view option) {
  const auto colon = text.rfind(':');
  Address address;
  bool fits = colon != std::string::npos;
  if (fits) {
    // ":1025", as Go has it: all addresses.
    address.host = colon == 0 ? "0.0.0.0" : text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    const char* from = text.data() + colon + 1;
    const char* to = text.data() + text.size();
    const auto [end, error] = std::from_chars(from, to, address.port);
    fits = error == std::errc{} && end == to;
  }
  if (!fits) throw Mistake(fmt::format("{}: '{}' is not HOST:PORT, as in 127.0.0.1:8000", option, text));
  return address;
}

void add_access_key(ServeOptions& options, const std::string& text) {
  const auto colon = text.find(':');
  // The text holds a secret: it is not repeated.
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw Mistake("--access-key: expected ID:SECRET, as in --access-key AKIDEXAMPLE:secret");
  options.access_keys[text.substr(0, colon)] = text.substr(colon + 1);
}

// Options that say nothing with the store that was chosen are mistakes, not noise.
void refuse_given(const CLI::App& serve, std::initializer_list<const char*> flags, std::string_view why) {
  for (const auto* flag : flags)
    if (serve.get_option(flag)->count() > 0) throw Mistake(fmt::format("{}: {}", flag, why));
}

RemoteStoreOptions understand_remote(const Given& given) {
  RemoteStoreOptions options;
  const auto region = given.region.empty() ? remote::default_region(given.profile) : given.region;
  auto endpoint = remote::parse_endpoint(given.store, region);
  if (!endpoint) throw Mistake(fmt::format("--store: {}", endpoint.error()));
  options.endpoint = std::move(*endpoint);
  if (given.key_id.empty() != given.secret_key.empty())
    throw Mistake("--aws-access-key-id and --aws-secret-access-key go together: give both or neither");
  if (given.key_id.empty() && !given.session_token.empty())
    throw Mistake("--aws-session-token: goes with --aws-access-key-id and --aws-secret-access-key");
  if (!given.key_id.empty())
    options.credentials.given = remote::Credentials{.access_key = given.key_id,
                                                    .secret_key = given.secret_key,
                                                    .session_token = given.session_token,
                                                    .expires = {}};
  options.credentials.profile = given.profile;
  options.credentials.any_will_do = !options.endpoint.aws;
  if (!given.store_ca.empty() && !options.endpoint.items.tls)
    throw Mistake("--store-ca: the store is not reached by https");
  options.ca_file = given.store_ca;
  return options;
}

// What the tables are called begins with it: it must fit into their names.
void check_prefix(std::string_view prefix) {
  const bool fits = prefix.size() <= 100 && std::ranges::all_of(prefix, [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (!fits) throw Mistake("--table-prefix: at most 100 letters, digits, '_', '-' and '.'");
}

// One core is the writer's.
size_t default_threads() { return std::max(2u, std::thread::hardware_concurrency()) - 1; }

// "64MB", "1G", or just bytes.
uint64_t parse_size(std::string_view text, std::string_view option, uint64_t least, uint64_t most) {
  constexpr std::string_view kUnits = "KMGT";
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto unit = upper(std::string_view(end, text.data() + text.size()));
  if (unit.size() > 1 && unit.ends_with('B')) unit.pop_back();
  if (unit == "B") unit.clear();
  const auto at = unit.empty() ? 0 : kUnits.find(unit);
  const auto power = unit.empty() ? 0 : at + 1;
  const bool fits = error == std::errc{} && unit.size() <= 1 && at != std::string_view::npos &&
                    value <= most >> (10 * power) && value << (10 * power) >= least;
  if (!fits)
    throw Mistake(fmt::format("{}: '{}' is not a size of {} to {} bytes, as in 512MB or 2GB", option, text,
                              least, most));
  return value << (10 * power);
}

mail::Granularity parse_partition(const std::string& text) {
  if (text == "day") return mail::Granularity::day;
  if (text == "half-day") return mail::Granularity::half_day;
  if (text == "hour") return mail::Granularity::hour;
  throw Mistake(fmt::format("--mail-partition: '{}' is none of day, half-day, hour", text));
}

std::chrono::seconds parse_time_to_live(const std::string& text) {
  constexpr std::chrono::hours kForever{100 * 365 * 24};
  if (text == "off") return kForever;
  const auto length = parse_duration(text);
  if (!length || *length < std::chrono::seconds{1} || *length > kForever)
    throw Mistake(fmt::format("--mail-ttl: '{}' is no time, as in 7d, 12h or 30m; off: for ever", text));
  return std::chrono::duration_cast<std::chrono::seconds>(*length);
}

void check_chances(const mail::Chances& chances) {
  for (const double chance : {chances.disconnect, chances.accept, chances.link_speed_affect,
                              chances.reject_sender, chances.reject_recipient, chances.reject_auth})
    if (!(chance >= 0 && chance <= 1)) throw Mistake("--jim-…: chances are between 0 and 1");
  if (!(chances.link_speed_min >= 1 && chances.link_speed_max >= chances.link_speed_min))
    throw Mistake(
        "--jim-linkspeed-min and --jim-linkspeed-max: bytes a second, at least 1, the smaller first");
}

MailOptions understand_mail(const GivenMail& given) {
  MailOptions options;
  options.smtp.reset();
  if (given.smtp != "off") options.smtp = parse_address(given.smtp, "--smtp");
  if (given.smtps != "off") options.smtps = parse_address(given.smtps, "--smtps");
  if (given.tls_cert.empty() != given.tls_key.empty())
    throw Mistake("--smtp-tls-cert and --smtp-tls-key go together: give both or neither");
  if (!given.tls_cert.empty()) options.tls = net::TlsFiles{given.tls_cert, given.tls_key};
  if (!options.tls && (options.smtps || given.require_tls))
    throw Mistake("--smtps and --smtp-require-tls need --smtp-tls-cert and --smtp-tls-key");
  options.require_tls = given.require_tls;
  options.auth_file = given.auth_file;
  options.max_message = parse_size(given.max_size, "--smtp-max-size", 1, 1u << 30);
  if (given.max_recipients == 0 || given.max_recipients > 1000)
    throw Mistake("--smtp-max-recipients: between 1 and 1000");
  options.max_recipients = given.max_recipients;
  if (given.max_connections == 0) throw Mistake("--smtp-max-connections: at least 1");
  options.max_connections = given.max_connections;
  const bool sensible = !given.hostname.empty() && given.hostname.size() <= 200 &&
                        std::ranges::all_of(given.hostname, [](unsigned char c) {
                          return std::isalnum(c) || c == '.' || c == '-' || c == '_';
                        });
  if (!sensible) throw Mistake(fmt::format("--hostname: '{}' is no host name", given.hostname));
  options.hostname = given.hostname;
  options.time_to_live = parse_time_to_live(given.ttl);
  options.granularity = parse_partition(given.partition);
  options.most_messages = given.max_messages;
  if (!given.settle.empty()) {
    options.settle = parse_duration(given.settle);
    if (!options.settle || *options.settle < std::chrono::milliseconds{100} ||
        *options.settle > std::chrono::hours{1})
      throw Mistake(fmt::format("--mail-settle: '{}' is no time from 100ms to 1h, as in 20s", given.settle));
  }
  options.outgoing_file = given.outgoing_file;
  for (const auto& url : given.webhooks)
    if (const auto parsed = net::parse_url(url); !parsed)
      throw Mistake(fmt::format("--mail-webhook: {}", parsed.error()));
  options.webhooks = given.webhooks;
  options.webhook_secret = given.webhook_secret;
  if (!given.webhook_secret.empty() && given.webhooks.empty())
    throw Mistake("--mail-webhook-secret: goes with --mail-webhook");
  check_chances(given.chances);
  options.chances = given.chances;
  options.invite_jim = given.invite_jim;
  return options;
}

std::string understand_web_path(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && !path.starts_with('/')) path.insert(0, "/");
  const bool plain = std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
  });
  if (!plain) throw Mistake("--web-path: letters, digits, '/', '-', '_', '.' and '~'");
  return path;
}

// MailHog's names for what we have otherwise.
void heed_mailhog(const GivenToMailHog& given, const CLI::App& serve, Given& all) {
  if (!given.api.empty() && !given.ui.empty() && given.api != given.ui)
    throw Mistake("--api-bind-addr and --ui-bind-addr: here both are on one port; give one, or --http");
  if (serve.get_option("--http")->count() == 0) {
    if (!given.api.empty()) all.http = given.api;
    if (!given.ui.empty()) all.http = given.ui;
  }
  if (!given.storage.empty() && given.storage != "memory")
    throw Mistake(fmt::format(
        "--storage: '{}' is not known here; messages are kept in --data, or in a DynamoDB with --store",
        given.storage));
  if (!given.elsewhere.empty())
    throw Mistake(
        "--maildir-path, --mongo-… and --api-host mean nothing here: messages are kept in --data, or in a "
        "DynamoDB with --store");
}

ServeOptions understand(Given given, const CLI::App& serve) {
  heed_mailhog(given.mailhog, serve, given);
  ServeOptions options;
  options.mail = understand_mail(given.mail);
  options.web_path = understand_web_path(given.web_path);
  if (!is_plain(given.cors_origin))
    throw Mistake("--cors-origin: an origin, as in https://app.example.com, or *");
  options.cors_origin = given.cors_origin;
  options.allowed_hosts = given.allowed_hosts;
  options.auth_file = given.auth_file;
  if (given.store == "embedded") {
    refuse_given(serve,
                 {"--aws-region", "--aws-profile", "--aws-access-key-id", "--aws-secret-access-key",
                  "--aws-session-token", "--store-ca"},
                 "is for a --store that is somewhere else");
  } else {
    refuse_given(
        serve,
        {"--data", "--durability", "--min-free", "--dynamodb", "--access-key", "--tls-cert", "--tls-key"},
        "is for the embedded store; another one has its own DynamoDB door");
    options.remote = understand_remote(given);
  }
  check_prefix(given.table_prefix);
  options.table_prefix = given.table_prefix;
  options.create_tables = given.create_tables;
  options.data = given.data;
  options.dynamodb = parse_address(given.dynamodb, "--dynamodb");
  options.http.reset();
  if (given.http != "off") options.http = parse_address(given.http, "--http");
  if (given.durability == "relaxed")
    options.durability = engine::Durability::relaxed;
  else if (given.durability != "sync")
    throw Mistake(fmt::format("--durability: '{}' is neither sync nor relaxed", given.durability));
  constexpr uint64_t kMost = uint64_t{1} << 50;
  if (!given.min_free.empty()) options.min_free = parse_size(given.min_free, "--min-free", 0, kMost);
  options.memory = parse_size(given.memory, "--memory", 64u << 20, kMost);
  if (given.stop_timeout == 0 || given.stop_timeout > 3600)
    throw Mistake("--stop-timeout: between 1 and 3600 seconds");
  options.stop_timeout = std::chrono::seconds(given.stop_timeout);
  for (const auto& key : given.access_keys) add_access_key(options, key);
  if (given.tls_cert.empty() != given.tls_key.empty())
    throw Mistake("--tls-cert and --tls-key go together: give both or neither");
  if (!given.tls_cert.empty()) options.tls = net::TlsFiles{given.tls_cert, given.tls_key};
  constexpr size_t kMaxThreads = 256;
  if (given.threads > kMaxThreads)
    throw Mistake(fmt::format("--threads: {} is more than {}", given.threads, kMaxThreads));
  options.threads = given.threads > 0 ? given.threads : default_threads();
  static constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warning", "error", "off"};
  if (std::ranges::find(kLevels, given.log_level) == kLevels.end())
    throw Mistake(
        fmt::format("--log-level: '{}' is none of debug, info, warning, error, off", given.log_level));
  options.log_level = given.log_level;
  if (given.log_format == "json")
    options.log_format = log::Format::json;
  else if (given.log_format != "text")
    throw Mistake(fmt::format("--log-format: '{}' is neither text nor json", given.log_format));
  return options;
}

ReindexOptions understand_reindex(const Given& given, const CLI::App& command) {
  ReindexOptions options;
  if (given.store != "embedded") {
    refuse_given(command, {"--data"}, "is for the embedded store");
    options.remote = understand_remote(given);
  }
  check_prefix(given.table_prefix);
  options.table_prefix = given.table_prefix;
  options.data = given.data;
  return options;
}

std::vector<std::string> values_of(const toml::node& node, std::string_view key) {
  if (const auto* array = node.as_array()) {
    std::vector<std::string> values;
    for (const auto& element : *array)
      for (auto& value : values_of(element, key)) values.push_back(std::move(value));
    return values;
  }
  if (const auto text = node.value_exact<std::string>()) return {*text};
  if (const auto number = node.value_exact<int64_t>()) return {std::to_string(*number)};
  if (const auto real = node.value_exact<double>()) return {fmt::format("{}", *real)};
  if (const auto truth = node.value_exact<bool>()) return {*truth ? "true" : "false"};
  throw Mistake(fmt::format(
      "the configuration file: '{}' must be a string, a number, true, false or a list of them", key));
}

// Gives the options that neither a flag nor a variable has set their values from the file.
void read_config(CLI::App& serve, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw Mistake(fmt::format("the configuration file {} cannot be read as TOML: {} (line {})", path,
                              error.description(), error.source().begin.line));
  }
  for (const auto& [key, node] : table) {
    auto* option = serve.get_option_no_throw("--" + std::string(key.str()));
    if (!option || key.str() == "config" || key.str() == "help")
      throw Mistake(fmt::format("the configuration file {} has an unknown option: {}", path, key.str()));
    if (option->count() > 0) continue;
    for (auto& value : values_of(node, key.str())) option->add_result(std::move(value));
    option->run_callback();
  }
}

// --smtp-tls-cert as TABELLA_SMTP_TLS_CERT: by the first of a flag's names.
std::string variable_of(const std::string& flags) {
  const auto flag = flags.substr(2, flags.find(',') - 2);
  std::string variable = "TABELLA_" + flag;
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return variable;
}

template <class Target>
CLI::Option* add_option(CLI::App& serve, const std::string& flags, Target& target, const std::string& help) {
  return serve.add_option(flags, target, help)->envname(variable_of(flags));
}

// MailHog's variables, by the flag they stand for.
constexpr std::pair<const char*, const char*> kMailHogVariables[] = {
    {"MH_SMTP_BIND_ADDR", "--smtp"},       {"MH_API_BIND_ADDR", "--api-bind-addr"},
    {"MH_UI_BIND_ADDR", "--ui-bind-addr"}, {"MH_UI_WEB_PATH", "--web-path"},
    {"MH_HOSTNAME", "--hostname"},         {"MH_CORS_ORIGIN", "--cors-origin"},
    {"MH_AUTH_FILE", "--auth-file"},       {"MH_OUTGOING_SMTP", "--outgoing-smtp"},
    {"MH_INVITE_JIM", "--invite-jim"},     {"MH_STORAGE", "--storage"},
    {"MH_MAILDIR_PATH", "--maildir-path"}, {"MH_MONGO_URI", "--mongo-uri"},
    {"MH_MONGO_DB", "--mongo-db"},         {"MH_MONGO_COLLECTION", "--mongo-coll"}};

// For options that neither a flag nor a variable of ours has set.
void read_mailhog_variables(CLI::App& serve) {
  for (const auto& [variable, flag] : kMailHogVariables) {
    auto* option = serve.get_option(flag);
    const auto value = environment_variable(variable);
    if (value.empty() || option->count() > 0) continue;
    option->add_result(value);
    option->run_callback();
  }
}

void add_mail_options(CLI::App& serve, GivenMail& given) {
  const auto add = [&](const std::string& flags, auto& target, const std::string& help) {
    return add_option(serve, flags, target, help)->group("Mail");
  };
  const auto add_flag = [&](const std::string& flag, bool& target, const std::string& help) {
    return serve.add_flag(flag, target, help)->envname(variable_of(flag))->group("Mail");
  };
  add("--smtp,--smtp-bind-addr", given.smtp, "Where to catch mail; off: nowhere")
      ->type_name("HOST:PORT|off")
      ->capture_default_str();
  add("--smtps", given.smtps, "Where to catch mail under TLS from the start")
      ->type_name("HOST:PORT|off")
      ->capture_default_str();
  add("--smtp-tls-cert", given.tls_cert, "Certificate chain (PEM) for STARTTLS and --smtps")
      ->type_name("FILE");
  add("--smtp-tls-key", given.tls_key, "Its private key (PEM)")->type_name("FILE");
  add_flag("--smtp-require-tls", given.require_tls, "Take mail and logins only under TLS");
  add("--smtp-auth-file", given.auth_file,
      "Users who may send, as lines of name:bcrypt or name:password; without it everybody may, with any "
      "login")
      ->type_name("FILE");
  add("--smtp-max-size", given.max_size, "Largest message")->type_name("SIZE")->capture_default_str();
  add("--smtp-max-recipients", given.max_recipients, "Most recipients of a message")
      ->type_name("N")
      ->capture_default_str();
  add("--smtp-max-connections", given.max_connections, "Most sessions at once")
      ->type_name("N")
      ->capture_default_str();
  add("--hostname", given.hostname, "What we call ourselves in SMTP, ids and Received headers")
      ->type_name("NAME")
      ->capture_default_str();
  add("--mail-ttl", given.ttl, "How long messages are kept, as in 7d, 12h, 30m; off: for ever")
      ->type_name("TIME")
      ->capture_default_str();
  add("--mail-partition", given.partition, "How much time one partition of the table spans")
      ->type_name("day|half-day|hour")
      ->capture_default_str();
  add("--mail-max-messages", given.max_messages, "Most messages that are kept: the oldest go; 0: no limit")
      ->type_name("N")
      ->capture_default_str();
  add("--mail-settle", given.settle,
      "How far the search index stays behind, and how far the clocks of processes on one store may disagree; "
      "without "
      "it 2s on the embedded store, 20s on another")
      ->type_name("TIME");
  add("--outgoing-smtp", given.outgoing_file, "JSON file with servers that messages can be released through")
      ->type_name("FILE");
  add("--mail-webhook", given.webhooks, "URL to tell of each message; may be repeated")->type_name("URL");
  add("--mail-webhook-secret", given.webhook_secret,
      "What its calls are signed with; better in the environment")
      ->type_name("SECRET");
  add_flag("--invite-jim", given.invite_jim, "Let Jim, the chaos monkey, in");
  const auto chance = [&](const std::string& flag, double& target, const std::string& help) {
    add(flag, target, help)->type_name("CHANCE")->capture_default_str();
  };
  chance("--jim-disconnect", given.chances.disconnect, "That a session is cut off");
  chance("--jim-accept", given.chances.accept, "That a connection is taken");
  chance("--jim-linkspeed-affect", given.chances.link_speed_affect, "That a session is slow");
  add("--jim-linkspeed-min", given.chances.link_speed_min, "Slowest, in bytes a second")
      ->type_name("N")
      ->capture_default_str();
  add("--jim-linkspeed-max", given.chances.link_speed_max, "Fastest of the slow")
      ->type_name("N")
      ->capture_default_str();
  chance("--jim-reject-sender", given.chances.reject_sender, "That a sender is refused");
  chance("--jim-reject-recipient", given.chances.reject_recipient, "That a recipient is refused");
  chance("--jim-reject-auth", given.chances.reject_auth, "That a login is refused");
}

// Not shown in the help: for those who bring their command line along.
void add_mailhog_options(CLI::App& serve, GivenToMailHog& given) {
  serve.add_option("--api-bind-addr", given.api)->group("");
  serve.add_option("--ui-bind-addr", given.ui)->group("");
  serve.add_option("--storage", given.storage)->group("");
  for (const auto* flag : {"--maildir-path", "--mongo-uri", "--mongo-db", "--mongo-coll", "--api-host"})
    serve.add_option(flag, given.elsewhere)->group("");
}

// Where the tables are: of every command that uses them.
void add_store_options(CLI::App& command, Given& given) {
  const auto add = [&](const std::string& flags, auto& target, const std::string& help) {
    return add_option(command, flags, target, help);
  };
  add("--store", given.store,
      "Where the tables are: embedded, in --data; dynamodb://REGION, on AWS; or http(s)://HOST:PORT, any "
      "other "
      "DynamoDB, such as ScyllaDB's Alternator or another Tabella. With a store that is not embedded no "
      "DynamoDB API is served")
      ->type_name("STORE")
      ->capture_default_str();
  add("--table-prefix", given.table_prefix, "What the names of our own tables begin with")->type_name("TEXT");
  add("--aws-region", given.region, "Region to sign for, where --store does not name it")
      ->type_name("REGION");
  add("--aws-profile", given.profile, "Profile of the shared AWS files")->type_name("NAME");
  add("--aws-access-key-id", given.key_id,
      "Credentials for the store. Without them they are looked for in AWS_* variables, ~/.aws, and the "
      "endpoints of the container and the instance")
      ->type_name("ID");
  add("--aws-secret-access-key", given.secret_key, "The secret of that key; better in the environment")
      ->type_name("SECRET");
  add("--aws-session-token", given.session_token, "Its session token, if it has one")->type_name("TOKEN");
  add("--store-ca", given.store_ca, "Certificates (PEM) to trust for the store, instead of the system's")
      ->type_name("FILE");
  add("--data", given.data, "Folder for the data; made if it is not there")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_serve_options(CLI::App& serve, Given& given) {
  const auto add = [&](const std::string& flags, auto& target, const std::string& help) {
    return add_option(serve, flags, target, help);
  };
  const auto add_flag = [&](const std::string& flag, bool& target, const std::string& help) {
    return serve.add_flag(flag, target, help)->envname(variable_of(flag));
  };
  add_store_options(serve, given);
  add_flag("--create-tables", given.create_tables,
           "Create what is missing of our own tables in the --store, and wait until it is there");
  add("--dynamodb", given.dynamodb, "Where to serve the DynamoDB API")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  add("--http", given.http, "Where to serve mail's page and API, /metrics and /healthz; off: nowhere")
      ->type_name("HOST:PORT|off")
      ->capture_default_str();
  add("--durability", given.durability,
      "sync: a write is on disk before it is acknowledged; relaxed: the operating system writes it soon "
      "after, and a "
      "crash of the machine may lose the last moments")
      ->type_name("sync|relaxed")
      ->capture_default_str();
  add("--min-free", given.min_free,
      "Refuse writes while less is free on the disk of --data, as in 2GB; 0: never. By default a tenth of "
      "the "
      "disk, 256MB at most")
      ->type_name("SIZE");
  add("--memory", given.memory, "What requests and answers may take together before new ones are put off")
      ->type_name("SIZE")
      ->capture_default_str();
  add("--stop-timeout", given.stop_timeout, "Seconds in which a stop is over, whatever is still under way")
      ->type_name("SECONDS")
      ->capture_default_str();
  add("--access-key", given.access_keys,
      "Credentials to require, with full signature checks; may be repeated. Without any, all are accepted")
      ->type_name("ID:SECRET")
      ->delimiter(',');
  add("--tls-cert", given.tls_cert, "Certificate chain (PEM) for the DynamoDB API to be served under TLS")
      ->type_name("FILE");
  add("--tls-key", given.tls_key, "Its private key (PEM)")->type_name("FILE");
  add("--threads", given.threads, "Threads for network and reads; 0: one per core, less one for the writer")
      ->type_name("N")
      ->capture_default_str();
  add("--web-path,--ui-web-path", given.web_path, "What all paths over HTTP begin with")->type_name("PATH");
  add("--cors-origin", given.cors_origin, "Origin whose pages may use the API; *: any")->type_name("ORIGIN");
  add("--allow-host", given.allowed_hosts,
      "Name that the page may be asked for by, besides addresses, localhost and names without dots; may be "
      "repeated. "
      "Asked of whoever comes by another name when --http is on a loopback address: pages of strangers could")
      ->type_name("NAME");
  add("--auth-file", given.auth_file,
      "Users for what is served over HTTP, as lines of name:bcrypt (htpasswd -B, or tabella bcrypt)")
      ->type_name("FILE");
  add_mail_options(serve, given.mail);
  add_mailhog_options(serve, given.mailhog);
  add("--log-level", given.log_level, "How much to log")
      ->type_name("debug|info|warning|error|off")
      ->capture_default_str();
  add("--log-format", given.log_format, "How to log: lines of text, or of JSON")
      ->type_name("text|json")
      ->capture_default_str();
}

}  // namespace

namespace {

// MailHog's flags have one dash: -smtp-bind-addr
std::vector<std::string> with_two_dashes(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument.size() > 2 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1])))
      argument.insert(0, "-");
    arguments.push_back(std::move(argument));  // the last first: as CLI11 wants them
  }
  return arguments;
}

// Those commands that are not CLI11's to read: their arguments are sendmail's, or a password.
std::optional<Command> other_command(int argc, const char* const* argv) {
  const std::string_view self = argc > 0 ? argv[0] : "";
  const bool by_name = self.substr(self.rfind('/') + 1) == "sendmail";
  const std::string_view first = argc > 1 ? argv[1] : "";
  Command command;
  if (by_name || first == "sendmail") {
    command.sendmail.emplace(argv + (by_name ? 1 : 2), argv + argc);
    return command;
  }
  if (first != "bcrypt") return std::nullopt;
  if (argc != 3) {
    command.output = "tabella: say which password: tabella bcrypt PASSWORD\n";
    command.exit_code = 2;
  } else {
    command.output = bcrypt(argv[2]) + "\n";
  }
  return command;
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  if (auto command = other_command(argc, argv)) return std::move(*command);
  Given given;
  CLI::App app("Tabella: a DynamoDB-compatible table store, and mail caught in it, in one binary.",
               "tabella");
  app.footer(
      "Also: tabella sendmail (see tabella sendmail --help), and tabella bcrypt PASSWORD for --auth-file.");
  app.set_version_flag("--version", "tabella " TABELLA_VERSION);
  app.require_subcommand(1);
  auto* serve = app.add_subcommand("serve", "Serve from a data folder, or from a DynamoDB somewhere else");
  serve->footer(
      "Each option can also be given as a variable (--data as TABELLA_DATA) or in a TOML file (data = "
      "\"…\").");
  add_serve_options(*serve, given);
  std::string config_file;
  serve->add_option("--config", config_file, "TOML file with options named as the flags are")
      ->type_name("FILE")
      ->envname("TABELLA_CONFIG");
  Given given_to_reindex;
  auto* mail = app.add_subcommand("mail", "Look after the mail that was caught");
  mail->require_subcommand(1);
  auto* reindex = mail->add_subcommand(
      "reindex",
      "Build mail's search index anew from the messages themselves, and count them; from a data folder that "
      "nobody serves, or from a DynamoDB somewhere else");
  add_store_options(*reindex, given_to_reindex);
  VerifyOptions verify_options;
  auto* verify = app.add_subcommand(
      "verify", "Check every item, index entry, stream record and expiry entry of a store");
  verify->add_option("folder", verify_options.data, "The data folder of a store that nobody serves")
      ->type_name("DIR")
      ->required();
  SalvageOptions salvage_options;
  auto* salvage = app.add_subcommand("salvage", "Copy what can be read of a damaged store into a new folder");
  salvage->add_option("from", salvage_options.from, "The data folder of a store that nobody serves")
      ->type_name("DIR")
      ->required();
  salvage->add_option("to", salvage_options.to, "A new folder")->type_name("DIR")->required();
  Command command;
  try {
    app.parse(with_two_dashes(argc, argv));
    if (serve->parsed()) read_mailhog_variables(*serve);
    if (!config_file.empty()) read_config(*serve, config_file);
    if (verify->parsed())
      command.verify = std::move(verify_options);
    else if (salvage->parsed())
      command.salvage = std::move(salvage_options);
    else if (reindex->parsed())
      command.reindex = understand_reindex(given_to_reindex, *reindex);
    else
      command.serve = understand(std::move(given), *serve);
  } catch (const CLI::CallForHelp&) {
    command.output = serve->parsed()     ? serve->help("tabella")
                     : verify->parsed()  ? verify->help("tabella")
                     : salvage->parsed() ? salvage->help("tabella")
                     : reindex->parsed() ? reindex->help("tabella mail")
                     : mail->parsed()    ? mail->help("tabella")
                                         : app.help();
  } catch (const CLI::CallForVersion& version) {
    command.output = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    command.output = fmt::format("tabella: {}. Try: tabella serve --help\n", error.what());
    command.exit_code = 2;
  } catch (const Mistake& mistake) {
    command.output = fmt::format("tabella: {}\n", mistake.what());
    command.exit_code = 2;
  }
  return command;
}

}  // namespace tabella::app

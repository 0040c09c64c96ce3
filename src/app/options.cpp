#include "app/options.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <CLI/CLI.hpp>

namespace tabella::app {
namespace {

class Mistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The options as they were given, before they mean anything.
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
  std::vector<std::string> access_keys;
  std::string tls_cert;
  std::string tls_key;
  size_t threads = 0;
  std::string log_level = "info";
  std::string log_format = "text";
};

Address parse_address(const std::string& text, std::string_view option) {
  const auto colon = text.rfind(':');
  Address address;
  bool fits = colon != std::string::npos && colon > 0;
  if (fits) {
    address.host = text.substr(0, colon);
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

ServeOptions understand(const Given& given, const CLI::App& serve) {
  ServeOptions options;
  if (given.store == "embedded") {
    refuse_given(serve,
                 {"--aws-region", "--aws-profile", "--aws-access-key-id", "--aws-secret-access-key",
                  "--aws-session-token", "--store-ca"},
                 "is for a --store that is somewhere else");
  } else {
    refuse_given(serve, {"--data", "--durability", "--dynamodb", "--access-key", "--tls-cert", "--tls-key"},
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

std::vector<std::string> values_of(const toml::node& node, std::string_view key) {
  if (const auto* array = node.as_array()) {
    std::vector<std::string> values;
    for (const auto& element : *array)
      for (auto& value : values_of(element, key)) values.push_back(std::move(value));
    return values;
  }
  if (const auto text = node.value_exact<std::string>()) return {*text};
  if (const auto number = node.value_exact<int64_t>()) return {std::to_string(*number)};
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

void add_serve_options(CLI::App& serve, Given& given) {
  const auto variable_of = [](const std::string& flag) {
    std::string variable = "TABELLA_" + flag.substr(2);
    std::ranges::transform(variable, variable.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    return variable;
  };
  const auto add = [&](const std::string& flag, auto& target, const std::string& help) {
    return serve.add_option(flag, target, help)->envname(variable_of(flag));
  };
  const auto add_flag = [&](const std::string& flag, bool& target, const std::string& help) {
    return serve.add_flag(flag, target, help)->envname(variable_of(flag));
  };
  add("--store", given.store,
      "Where the tables are: embedded, in --data; dynamodb://REGION, on AWS; or http(s)://HOST:PORT, any "
      "other "
      "DynamoDB, such as ScyllaDB's Alternator or another Tabella. With a store that is not embedded no "
      "DynamoDB API is served")
      ->type_name("STORE")
      ->capture_default_str();
  add("--table-prefix", given.table_prefix, "What the names of our own tables begin with")->type_name("TEXT");
  add_flag("--create-tables", given.create_tables,
           "Create what is missing of our own tables in the --store, and wait until it is there");
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
  add("--dynamodb", given.dynamodb, "Where to serve the DynamoDB API")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  add("--http", given.http, "Where to serve /metrics and /healthz; off: nowhere")
      ->type_name("HOST:PORT|off")
      ->capture_default_str();
  add("--durability", given.durability,
      "sync: a write is on disk before it is acknowledged; relaxed: the operating system writes it soon "
      "after, and a "
      "crash of the machine may lose the last moments")
      ->type_name("sync|relaxed")
      ->capture_default_str();
  add("--access-key", given.access_keys,
      "Credentials to require, with full signature checks; may be repeated. Without any, all are accepted")
      ->type_name("ID:SECRET")
      ->delimiter(',');
  add("--tls-cert", given.tls_cert, "Certificate chain (PEM) for TLS")->type_name("FILE");
  add("--tls-key", given.tls_key, "Private key (PEM) for TLS")->type_name("FILE");
  add("--threads", given.threads, "Threads for network and reads; 0: one per core, less one for the writer")
      ->type_name("N")
      ->capture_default_str();
  add("--log-level", given.log_level, "How much to log")
      ->type_name("debug|info|warning|error|off")
      ->capture_default_str();
  add("--log-format", given.log_format, "How to log: lines of text, or of JSON")
      ->type_name("text|json")
      ->capture_default_str();
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  Given given;
  CLI::App app("Tabella: a DynamoDB-compatible table store in one binary.", "tabella");
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
  VerifyOptions verify_options;
  auto* verify = app.add_subcommand(
      "verify", "Check every item, index entry, stream record and expiry entry of a store");
  verify->add_option("folder", verify_options.data, "The data folder of a store that nobody serves")
      ->type_name("DIR")
      ->required();
  Command command;
  try {
    app.parse(argc, argv);
    if (!config_file.empty()) read_config(*serve, config_file);
    if (verify->parsed())
      command.verify = std::move(verify_options);
    else
      command.serve = understand(given, *serve);
  } catch (const CLI::CallForHelp&) {
    command.output = serve->parsed()    ? serve->help("tabella")
                     : verify->parsed() ? verify->help("tabella")
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

// What `tabella serve` can be told, by flag, by TABELLA_* variable or in a TOML file, in that order of
// weight.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/database.h"
#include "mail/id.h"
#include "mail/jim.h"
#include "net/server.h"
#include "remote/caller.h"

namespace tabella::app {

struct Address {
  std::string host;
  uint16_t port = 0;
};

// A DynamoDB somewhere else, instead of the embedded engine.
struct RemoteStoreOptions {
  remote::Endpoint endpoint;
  remote::CredentialOptions credentials;
  std::string ca_file;
};

struct MailOptions {
  std::optional<Address> smtp = Address{"127.0.0.1", 1025};
  std::optional<Address> smtps;
  std::optional<net::TlsFiles> tls;
  bool require_tls = false;
  std::string auth_file;
  size_t max_message = 50u << 20;
  size_t max_recipients = 100;
  size_t max_connections = 1000;
  std::string hostname = "tabella.local";
  std::chrono::seconds time_to_live{7 * 24 * 3600};
  mail::Granularity granularity = mail::Granularity::day;
  size_t most_messages = 0;
  std::optional<std::chrono::milliseconds> settle;  // nothing: as the store needs it
  std::string outgoing_file;
  bool invite_jim = false;
  mail::Chances chances;
  std::vector<std::string> webhooks;
  std::string webhook_secret;
};

struct ServeOptions {
  MailOptions mail;
  std::string web_path;
  std::string cors_origin;
  std::vector<std::string> allowed_hosts;
  std::string auth_file;  // for what is served over HTTP
  std::optional<RemoteStoreOptions> remote;
  std::string table_prefix;
  bool create_tables = false;  // on the embedded engine they are made in any case
  std::filesystem::path data = "./data";
  Address dynamodb{"127.0.0.1", 8000};
  std::optional<Address> http = Address{"127.0.0.1", 8025};
  engine::Durability durability = engine::Durability::sync;
  std::optional<uint64_t> min_free;  // bytes
  std::chrono::seconds stop_timeout{10};
  size_t memory = 512u << 20;  // for requests and answers
  std::map<std::string, std::string, std::less<>> access_keys;
  std::optional<net::TlsFiles> tls;
  size_t threads = 0;
  std::string log_level = "info";
  log::Format log_format = log::Format::text;
};

struct VerifyOptions {
  std::filesystem::path data;
};

// `tabella mail reindex`.
struct ReindexOptions {
  std::optional<RemoteStoreOptions> remote;
  std::string table_prefix;
  std::filesystem::path data;
};

struct SalvageOptions {
  std::filesystem::path from;
  std::filesystem::path to;
};

// What the command line asks for: to serve, to reindex, to verify, to salvage, or to print something and
// exit.
struct Command {
  std::optional<ServeOptions> serve;
  std::optional<ReindexOptions> reindex;
  std::optional<VerifyOptions> verify;
  std::optional<SalvageOptions> salvage;
  std::optional<std::vector<std::string>> sendmail;  // its arguments
  std::string output;                                // help, version or what is wrong
  int exit_code = 0;
};

Command parse_command_line(int argc, const char* const* argv);

}  // namespace tabella::app

// What `tabella serve` can be told, by flag, by TABELLA_* variable or in a TOML file, in that order of
// weight.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/log.h"
#include "engine/database.h"
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

struct ServeOptions {
  std::optional<RemoteStoreOptions> remote;
  std::string table_prefix;
  bool create_tables = false;  // on the embedded engine they are made in any case
  std::filesystem::path data = "./data";
  Address dynamodb{"127.0.0.1", 8000};
  std::optional<Address> http = Address{"127.0.0.1", 8025};
  engine::Durability durability = engine::Durability::sync;
  std::map<std::string, std::string, std::less<>> access_keys;
  std::optional<net::TlsFiles> tls;
  size_t threads = 0;
  std::string log_level = "info";
  log::Format log_format = log::Format::text;
};

struct VerifyOptions {
  std::filesystem::path data;
};

// What the command line asks for: to serve, to verify, or to print something and exit.
struct Command {
  std::optional<ServeOptions> serve;
  std::optional<VerifyOptions> verify;
  std::string output;  // help, version or what is wrong
  int exit_code = 0;
};

Command parse_command_line(int argc, const char* const* argv);

}  // namespace tabella::app

// Where the tables are: asked of every command that uses them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/options.h"
#include "remote/credentials.h"
#include "remote/endpoint.h"

namespace tabella::app {

// A DynamoDB somewhere else, instead of the embedded engine.
struct RemoteStoreOptions {
  remote::Endpoint endpoint;
  remote::CredentialOptions credentials;
  std::string ca_file;
};

struct StoreOptions {
  std::string place = "embedded";  // as --store has it
  std::string table_prefix;
  std::string region;
  std::string profile;
  std::optional<remote::Credentials> credentials;
  std::string ca_file;
  std::filesystem::path data = "./data";

  // What follows from the above once they are checked; nothing: the embedded engine, in `data`.
  std::optional<RemoteStoreOptions> remote;
};

OptionGroup store_table(StoreOptions& options);

// --table-prefix, for a command that needs nothing else of the store.
Option table_prefix_option(std::string& into);

}  // namespace tabella::app

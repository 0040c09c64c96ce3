// The commands of the program, and what each can be told.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/server_options.h"
#include "app/store_options.h"
#include "base/options.h"

namespace tabella::app {

struct VerifyOptions {
  std::filesystem::path data;
};

struct SalvageOptions {
  std::filesystem::path from;
  std::filesystem::path to;
};

// `tabella mail reindex`.
struct ReindexOptions {
  StoreOptions store;
};

// `tabella systems`.
struct SystemsOptions {
  std::string table_prefix;
  bool json = false;
};

// `tabella token create|list|revoke`.
struct TokenOptions {
  enum class Action { create, list, revoke };
  StoreOptions store;
  Action action = Action::list;
  std::string name;                             // create
  std::vector<std::string> scopes;              // create
  std::optional<std::chrono::seconds> expires;  // create; nothing: never
  std::string id;                               // revoke
};

// `tabella outbox …`.
struct OutboxOptions {
  StoreOptions store;
  std::string action;  // "list", "show", …
  std::string table = "tabella-outbox";
  std::string database;     // mysql://…; empty: in the store
  std::string id;           // show, requeue, cancel
  std::string destination;  // pause, resume
  std::string reason;       // pause
  std::string status;       // list; empty: all
  size_t limit = 50;        // list
};

// `tabella manhunt watch`.
struct ManhuntWatchOptions {
  std::string url = "http://127.0.0.1:8025";
  std::string token;   // empty: none
  std::string domain;  // empty: all
  bool once = false;
};

// What the command line asks for: one of these, or to print something and exit.
struct Command {
  std::optional<ServeOptions> serve;
  std::optional<ReindexOptions> reindex;
  std::optional<SystemsOptions> systems;
  std::optional<TokenOptions> token;
  std::optional<OutboxOptions> outbox;
  std::optional<ManhuntWatchOptions> manhunt_watch;
  std::optional<VerifyOptions> verify;
  std::optional<SalvageOptions> salvage;
  std::optional<std::vector<std::string>> sendmail;  // its arguments
  std::string output;                                // help, version or what is wrong
  int exit_code = 0;
};

// What the command line needs to know of a system.
struct SystemTable {
  std::string name;  // as in --systems
  OptionGroup options;
};

// Fills in the options of the systems too, for the commands that serve them.
Command parse_command_line(int argc, const char* const* argv, const std::vector<SystemTable>& systems);

}  // namespace tabella::app

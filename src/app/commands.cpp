#include "app/commands.h"

#include "app/command_line.h"
#include "app/config.h"
#include "base/passwords.h"

namespace tabella::app {
namespace {

// Those commands that are not read by tables: their arguments are sendmail's, or a password.
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

// The tables of the process and of its systems.
std::vector<OptionGroup> serve_tables(ServeOptions& options, const std::vector<SystemTable>& systems) {
  std::vector<std::string> names;
  for (const auto& system : systems) names.push_back(system.name);
  auto tables = server_tables(options, names);
  for (const auto& system : systems) tables.push_back(system.options);
  return tables;
}

Option json_option(bool& into) { return {"--json", switch_option(into), "Print it as JSON"}; }

OptionGroup new_token_table(TokenOptions& options) {
  return {.title = "Token",
          .options = {{"--name", text_option(options.name, "TEXT"), "What the token is for"},
                      {"--scope", texts_option(options.scopes, "SCOPE", {}, ','),
                       "What it may be used for, as in mail:read, mail:* or *; may be repeated"},
                      {"--expires", time_option(options.expires, std::chrono::minutes{1}, kForever),
                       "After which time it is not taken any more, as in 90d; without it: never"}},
          .check = [&options](const OptionSources&) -> OptionCheck {
            if (options.name.empty()) return std::unexpected("--name: say what the token is for");
            if (options.scopes.empty())
              return std::unexpected("--scope: say what the token may be used for, as in mail:read");
            return {};
          }};
}

std::vector<CommandTable> token_commands(TokenOptions& options) {
  const auto store = store_table(options.store);
  return {{.name = "token create",
           .help = "Make a token, and print it: it is shown only this once",
           .groups = {new_token_table(options), store}},
          {.name = "token list",
           .help = "Print all tokens: what they are for, what they may do, when they were used last",
           .groups = {store}},
          {.name = "token revoke",
           .help = "Take a token no more",
           .groups = {{.title = "Token",
                       .options = {{"id", text_option(options.id, "ID"), "As tabella token list has it"}}},
                      store}}};
}

std::vector<CommandTable> outbox_commands(OutboxOptions& options) {
  const auto store = store_table(options.store);
  const OptionGroup where = {.title = "Outbox",
                             .options = {{"--outbox-table",
                                          text_option(options.table, "NAME"),
                                          "Table with the emails",
                                          {"EMAIL_OUTBOX_TABLE"}},
                                         {.flags = "--outbox-database",
                                          .value = text_option(options.database, "URL"),
                                          .help = "mysql://…, if the emails are there",
                                          .secret = true}}};
  const auto command = [&](std::string name, std::string help, std::vector<Option> own) -> CommandTable {
    return {.name = "outbox " + name,
            .help = std::move(help),
            .groups = {{.title = "Email", .options = std::move(own)}, where, store}};
  };
  const Option id = {"id", text_option(options.id, "ID"), "The email's"};
  const Option destination = {"destination", text_option(options.destination, "DOMAIN"),
                              "A domain; '*' for all"};
  return {
      command("list", "Print emails by their state",
              {{"--status", text_option(options.status, "STATE"), "READY, SENT, FAILED, …; without it all"},
               {"--limit", number_option(options.limit, 1, 10'000), "At most so many"}}),
      command("show", "Print the life of an email: recipients, states, attempts", {id}),
      command("requeue", "Try an email once more that failed or was invalid", {id}),
      command("cancel", "Stop an email that is not being sent yet", {id}),
      command("counts", "Print how many emails are in which state", {}),
      command("pauses", "Print which destinations are paused", {}),
      command("pause", "Send nothing to a destination until it is resumed",
              {destination, {"--reason", text_option(options.reason, "TEXT"), "Why"}}),
      command("resume", "Send to a destination again", {destination})};
}

CommandTable manhunt_command(ManhuntWatchOptions& options) {
  return {
      .name = "manhunt watch",
      .help = "Show the searches under way at a server, and the simulator's phones, which can be answered",
      .groups = {
          {.title = "Watch",
           .options = {{"--url", text_option(options.url, "URL"), "Where the server is"},
                       {"--domain", text_option(options.domain, "NAME"),
                        "Only this domain, and its searches for which no phone rings as well"},
                       {.flags = "--token",
                        .value = text_option(options.token, "TOKEN"),
                        .help = "A token with the scopes manhunt:read and manhunt:write",
                        .secret = true},
                       {"--once", switch_option(options.once), "Print what there is now, and exit"}}}}};
}

std::vector<CommandTable> store_commands(ReindexOptions& reindex, VerifyOptions& verify,
                                         SalvageOptions& salvage) {
  constexpr auto kAtRest = "The data folder of a store that nobody serves";
  return {
      {.name = "mail reindex",
       .help = "Build mail's search index anew from the messages themselves, and count them; from a data "
               "folder that nobody serves, or from a DynamoDB somewhere else",
       .groups = {store_table(reindex.store)}},
      {.name = "verify",
       .help = "Check every item, index entry, stream record and expiry entry of a store",
       .groups = {{.title = "Folders", .options = {{"folder", path_option(verify.data, "DIR"), kAtRest}}}}},
      {.name = "salvage",
       .help = "Copy what can be read of a damaged store into a new folder",
       .groups = {{.title = "Folders",
                   .options = {{"from", path_option(salvage.from, "DIR"), kAtRest},
                               {"to", path_option(salvage.to, "DIR"), "A new folder"}}}}}};
}

// All that can be asked for, side by side; the tables fill in one of them.
class CommandLine {
 public:
  explicit CommandLine(const std::vector<SystemTable>& systems)
      : serve_tables_(serve_tables(serve_, systems)) {
    auto with_json = serve_tables_;
    with_json.insert(with_json.begin(), {.title = "Options", .options = {json_option(config_json_)}});
    program_.commands = {
        {.name = "serve",
         .help = "Serve from a data folder, or from a DynamoDB somewhere else",
         .groups = serve_tables_,
         .config_file = true},
        {.name = "config",
         .help = "Print which options serve would run with, and where each comes from",
         .groups = std::move(with_json),
         .config_file = true},
        {.name = "systems",
         .help = "Print which systems there are, with their tables and routes",
         .groups = {{.title = "Options",
                     .options = {table_prefix_option(systems_.table_prefix), json_option(systems_.json)}}}}};
    for (auto& command : token_commands(token_)) program_.commands.push_back(std::move(command));
    program_.commands.push_back(manhunt_command(manhunt_watch_));
    for (auto& command : outbox_commands(outbox_)) program_.commands.push_back(std::move(command));
    for (auto& command : store_commands(reindex_, verify_, salvage_))
      program_.commands.push_back(std::move(command));
  }
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command parse(int argc, const char* const* argv) {
    auto reading = read_command_line(program_, argc, argv);
    Command command{.output = std::move(reading.output), .exit_code = reading.exit_code};
    const auto& name = reading.command;
    if (name == "serve")
      command.serve = std::move(serve_);
    else if (name == "config")
      command.output = config_json_ ? config_json(serve_tables_, reading.given)
                                    : config_text(serve_tables_, reading.given);
    else if (name == "systems")
      command.systems = std::move(systems_);
    else if (name.starts_with("token "))
      command.token = token(name.substr(6));
    else if (name.starts_with("outbox "))
      command.outbox = outbox(name.substr(7));
    else if (name == "manhunt watch")
      command.manhunt_watch = std::move(manhunt_watch_);
    else if (name == "mail reindex")
      command.reindex = std::move(reindex_);
    else if (name == "verify")
      command.verify = std::move(verify_);
    else if (name == "salvage")
      command.salvage = std::move(salvage_);
    return command;
  }

 private:
  TokenOptions token(std::string_view action) {
    using enum TokenOptions::Action;
    token_.action = action == "create" ? create : action == "revoke" ? revoke : list;
    return std::move(token_);
  }

  OutboxOptions outbox(std::string_view action) {
    outbox_.action = action;
    return std::move(outbox_);
  }

  ServeOptions serve_;
  bool config_json_ = false;
  SystemsOptions systems_;
  TokenOptions token_;
  OutboxOptions outbox_;
  ManhuntWatchOptions manhunt_watch_;
  ReindexOptions reindex_;
  VerifyOptions verify_;
  SalvageOptions salvage_;
  const std::vector<OptionGroup> serve_tables_;  // borrows serve_
  Program program_{
      .name = "tabella",
      .version = "tabella " TABELLA_VERSION,
      .help =
          "Tabella: a DynamoDB-compatible table store, and five messaging systems on it (mail, outbox, "
          "inbox, "
          "manhunt, journal), in one binary.",
      .footer =
          "Also: tabella sendmail (see tabella sendmail --help), and tabella bcrypt PASSWORD for "
          "--auth-file.",
      .families = {{"mail", "Look after the mail that was caught"},
                   {"manhunt", "Look at the searches for people"},
                   {"outbox", "Look after the emails that are sent"},
                   {"token", "Make, list and revoke tokens that programs come in with"}}};
};

}  // namespace

Command parse_command_line(int argc, const char* const* argv, const std::vector<SystemTable>& systems) {
  if (auto command = other_command(argc, argv)) return std::move(*command);
  return CommandLine(systems).parse(argc, argv);
}

}  // namespace tabella::app

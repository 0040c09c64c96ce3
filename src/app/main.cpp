#include <cstdio>

#include "app/commands.h"
#include "app/list_systems.h"
#include "app/manhunt_watch.h"
#include "app/outbox.h"
#include "app/reindex.h"
#include "app/salvage.h"
#include "app/sendmail.h"
#include "app/serve.h"
#include "app/systems.h"
#include "app/token.h"
#include "app/verify.h"

int main(int argc, char** argv) {
  namespace app = tabella::app;
  auto systems = app::make_systems();
  std::vector<app::SystemTable> tables;
  for (const auto& system : systems) tables.push_back({std::string(system->name()), system->options()});
  const auto command = app::parse_command_line(argc, argv, tables);
  if (command.serve) return app::serve(*command.serve, std::move(systems));
  if (command.systems) return app::list_systems(*command.systems, systems);
  if (command.token) return app::token(*command.token);
  if (command.outbox) return app::outbox(*command.outbox);
  if (command.manhunt_watch) return app::manhunt_watch(*command.manhunt_watch);
  if (command.sendmail) return app::sendmail(*command.sendmail);
  if (command.reindex) return app::reindex(*command.reindex);
  if (command.salvage) return app::salvage(*command.salvage);
  if (command.verify) return app::verify(*command.verify);
  std::fputs(command.output.c_str(), command.exit_code == 0 ? stdout : stderr);
  return command.exit_code;
}

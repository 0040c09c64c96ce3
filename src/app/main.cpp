#include <cstdio>

#include "app/commands.h"
#include "app/reindex.h"
#include "app/salvage.h"
#include "app/sendmail.h"
#include "app/serve.h"
#include "app/verify.h"
#include "mail/options.h"

int main(int argc, char** argv) {
  tabella::mail::Options mail;
  const auto command =
      tabella::app::parse_command_line(argc, argv, {{"mail", tabella::mail::option_table(mail)}});
  if (command.serve) return tabella::app::serve(*command.serve, mail);
  if (command.sendmail) return tabella::app::sendmail(*command.sendmail);
  if (command.reindex) return tabella::app::reindex(*command.reindex);
  if (command.salvage) return tabella::app::salvage(*command.salvage);
  if (command.verify) return tabella::app::verify(*command.verify);
  std::fputs(command.output.c_str(), command.exit_code == 0 ? stdout : stderr);
  return command.exit_code;
}

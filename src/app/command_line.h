// Reads a command line by tables: which commands there are, and the options of each. An option's value comes
// from its flag, from a TABELLA_* variable, or from a TOML file, in that order of weight.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/options.h"

namespace tabella::app {

struct CommandTable {
  std::string name;  // "serve"; "mail reindex": of a family
  std::string help;
  std::vector<OptionGroup> groups;
  bool config_file = false;  // takes --config FILE
};

struct Program {
  std::string name;
  std::string version;
  std::string help;
  std::string footer;
  std::vector<std::pair<std::string, std::string>> families;  // "mail", and its help
  std::vector<CommandTable> commands;
};

struct Reading {
  std::string command;  // whose options are set and checked; empty: there is something to print instead
  OptionSources given;
  std::string output;  // help, version or what is wrong
  int exit_code = 0;
};

Reading read_command_line(const Program& program, int argc, const char* const* argv);

}  // namespace tabella::app

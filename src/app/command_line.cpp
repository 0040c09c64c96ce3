#include "app/command_line.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/option_file.h"
#include "base/environment.h"
#include "base/text.h"

namespace tabella::app {
namespace {

class Mistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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

// Lines that fit beside the flags on a usual screen.
std::string wrap(std::string_view text) {
  constexpr size_t kWidth = 70;
  std::string wrapped;
  size_t column = 0;
  for (const auto word : split(text, ' ')) {
    const bool fits = column + 1 + word.size() <= kWidth;
    if (!wrapped.empty()) wrapped.push_back(fits ? ' ' : '\n');
    column = fits ? column + 1 + word.size() : word.size();
    wrapped.append(word);
  }
  return wrapped;
}

// What stands behind an option's names in the help: "HOST:PORT [127.0.0.1:8000]"
std::string describe(const Option& option) {
  const auto& value = option.value;
  const auto initial = option.secret || value.placeholder.empty() ? "" : join(value.show(), ",");
  return fmt::format("{}{}{}", value.placeholder, initial.empty() ? "" : " [" + initial + "]",
                     value.repeatable ? " ..." : "");
}

struct Given {
  std::vector<std::string> texts;
  OptionSource source;
};

// One option, as CLI11 reads it.
class Row {
 public:
  Row(CLI::App& app, const Option& option, const std::string& group) : option_(option) {
    const auto& value = option.value;
    const auto help = wrap(option.help);
    flag_ = value.placeholder.empty() ? app.add_flag(option.flags, text_, help)
            : value.repeatable        ? app.add_option(option.flags, texts_, help)
                                      : app.add_option(option.flags, text_, help);
    if (!value.placeholder.empty()) flag_->type_name(value.placeholder);
    flag_->group(option.hidden ? "" : group);
    if (by_place()) flag_->required();
    if (value.separator) flag_->delimiter(value.separator);
    if (const auto text = describe(option); !text.empty()) flag_->option_text(text);
  }

  const Option& option() const { return option_; }
  bool by_place() const { return !option_.flags.starts_with('-'); }

  // By its flag, or else by a variable.
  std::optional<Given> given() const {
    if (flag_->count() > 0) return Given{flag_->results(), {OptionSource::Kind::flag, option_.name()}};
    if (by_place()) return std::nullopt;
    auto variables = option_.variables;
    variables.insert(variables.begin(), option_.variable());
    for (const auto& variable : variables)
      if (auto text = environment_variable(variable.c_str()); !text.empty())
        return Given{parts(text), {OptionSource::Kind::variable, variable}};
    return std::nullopt;
  }

  void set(const Given& given) const {
    if (!option_.value.repeatable && given.texts.size() != 1) refuse(given.source, "takes one value");
    if (const auto done = option_.value.set(given.texts); !done) refuse(given.source, done.error());
  }

 private:
  std::vector<std::string> parts(const std::string& text) const {
    if (!option_.value.separator) return {text};
    std::vector<std::string> parts;
    for (const auto part : split(text, option_.value.separator)) parts.emplace_back(part);
    return parts;
  }

  [[noreturn]] void refuse(const OptionSource& source, std::string_view why) const {
    const auto from = source.kind == OptionSource::Kind::flag ? "" : fmt::format(" (from {})", source.name);
    throw Mistake(fmt::format("{}{}: {}", option_.name(), from, why));
  }

  const Option& option_;
  CLI::Option* flag_ = nullptr;
  std::string text_;                // where CLI11 puts what it reads; what was given is asked of flag_
  std::vector<std::string> texts_;  // the same
};

// One command, as CLI11 reads it.
class CommandReader {
 public:
  CommandReader(CLI::App& parent, const std::string& name, const CommandTable& table)
      : table_(table), app_(*parent.add_subcommand(name, table.help)) {
    for (const auto& group : table.groups)
      for (const auto& option : group.options) rows_.emplace_back(app_, option, group.title);
    if (table.config_file) config_.emplace(app_, config_option_, "Options");
    app_.footer(footer());
  }

  bool parsed() const { return app_.parsed(); }
  const CommandTable& table() const { return table_; }
  std::string help(const std::string& program) const {
    const auto family = table_.name.substr(0, table_.name.size() - app_.get_name().size());
    return app_.help(std::string(trim(program + " " + family)));
  }

  // Sets and checks all options; says who gave them.
  OptionSources read() {
    OptionSources sources;
    const auto file = read_file();
    for (const auto& row : rows_) {
      auto given = row.given();
      if (const auto found = file.find(&row); !given && found != file.end()) given = found->second;
      if (!given) continue;
      row.set(*given);
      sources.emplace(row.option().name(), given->source);
    }
    for (const auto& group : table_.groups)
      if (group.check)
        if (const auto checked = group.check(sources); !checked) throw Mistake(checked.error());
    return sources;
  }

 private:
  std::string footer() const {
    if (std::ranges::all_of(rows_, &Row::by_place)) return "";
    return fmt::format("Each option can also be given as a variable (--data as TABELLA_DATA){}.",
                       config_ ? " or in a TOML file (data = \"…\")" : "");
  }

  std::map<const Row*, Given> read_file() {
    std::map<const Row*, Given> found;
    const auto named = config_ ? config_->given() : std::nullopt;
    if (!named) return found;
    const auto& path = named->texts.front();
    const auto file = read_option_file(path);
    if (!file) throw Mistake(file.error());
    for (const auto& option : *file) {
      const auto* row = find("--" + option.key);
      if (!row)
        throw Mistake(fmt::format("the configuration file {} has an unknown option: {}", path, option.key));
      found.insert_or_assign(row, Given{option.values, {OptionSource::Kind::file, path}});
    }
    return found;
  }

  const Row* find(const std::string& name) const {
    for (const auto& row : rows_)
      for (const auto& its_name : row.option().names())
        if (its_name == name) return &row;
    return nullptr;
  }

  const CommandTable& table_;
  CLI::App& app_;
  std::deque<Row> rows_;  // CLI11 keeps references into them
  std::string config_path_;
  const Option config_option_{"--config", text_option(config_path_, "FILE"),
                              "TOML file with options named as the flags are"};
  std::optional<Row> config_;
};

// All commands, as CLI11 reads them.
class Parser {
 public:
  explicit Parser(const Program& program) : app_(program.help, program.name) {
    app_.footer(program.footer);
    app_.set_version_flag("--version", program.version);
    app_.require_subcommand(1);
    for (const auto& command : program.commands) {
      const auto space = command.name.find(' ');
      auto& parent = space == std::string::npos ? app_ : family(program, command.name.substr(0, space));
      commands_.emplace_back(parent, command.name.substr(space + 1), command);
    }
  }

  Reading parse(int argc, const char* const* argv) {
    Reading reading;
    try {
      app_.parse(with_two_dashes(argc, argv));
      auto* const command = parsed();
      reading.given = command->read();
      reading.command = command->table().name;
    } catch (const CLI::CallForHelp&) {
      reading.output = help();
    } catch (const CLI::CallForVersion& version) {
      reading.output = fmt::format("{}\n", version.what());
    } catch (const CLI::ParseError& error) {
      const auto* const command = parsed();
      reading.output = fmt::format("{0}: {1}. Try: {0} {2}--help\n", app_.get_name(), error.what(),
                                   command ? command->table().name + " " : "");
      reading.exit_code = 2;
    } catch (const Mistake& mistake) {
      reading.output = fmt::format("{}: {}\n", app_.get_name(), mistake.what());
      reading.exit_code = 2;
    }
    return reading;
  }

 private:
  CLI::App& family(const Program& program, const std::string& name) {
    auto& known = families_[name];
    if (known) return *known;
    std::string help;
    for (const auto& [its_name, its_help] : program.families)
      if (its_name == name) help = its_help;
    known = app_.add_subcommand(name, help);
    known->require_subcommand(1);
    return *known;
  }

  CommandReader* parsed() {
    for (auto& command : commands_)
      if (command.parsed()) return &command;
    return nullptr;
  }

  std::string help() {
    if (const auto* const command = parsed()) return command->help(app_.get_name());
    for (const auto& [name, family] : families_)
      if (family->parsed()) return family->help(app_.get_name());
    return app_.help();
  }

  CLI::App app_;
  std::map<std::string, CLI::App*> families_;
  std::deque<CommandReader> commands_;
};

}  // namespace

Reading read_command_line(const Program& program, int argc, const char* const* argv) {
  return Parser(program).parse(argc, argv);
}

}  // namespace tabella::app

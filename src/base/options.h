// Options, each said once: its flag, what it must look like, where it goes, and its help. From the flag
// follow its variable (--mail-ttl: TABELLA_MAIL_TTL) and its key in a TOML file (mail-ttl).
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tabella {

// Where something is served.
struct Address {
  std::string host;
  uint16_t port = 0;
};

// A sentence for the user if something is not right; it follows the flag: "--mail-ttl: 'x' is no time, …".
using OptionCheck = std::expected<void, std::string>;

// What the text of an option must look like, and where its meaning goes.
struct OptionValue {
  std::string placeholder;  // "HOST:PORT"; empty: a switch
  std::string initial;      // what is in force if nobody says anything; empty: nothing
  bool repeatable = false;
  std::function<OptionCheck(std::string_view)> set;
};

// The kinds there are. Each borrows `into`, whose value is the default.
OptionValue text_option(std::string& into, std::string placeholder);
OptionValue texts_option(std::vector<std::string>& into, std::string placeholder);
OptionValue switch_option(bool& into);
OptionValue number_option(size_t& into, size_t least, size_t most);
OptionValue real_option(double& into, double least, double most, std::string placeholder);
OptionValue size_option(size_t& into, size_t least, size_t most);  // 512MB, 2G, bytes
OptionValue time_option(std::chrono::milliseconds& into, std::chrono::milliseconds least,
                        std::chrono::milliseconds most);   // 7d, 12h, 150ms
OptionValue address_option(std::optional<Address>& into);  // HOST:PORT, :PORT, or off

template <class T>
OptionValue choice_option(T& into, std::initializer_list<std::pair<std::string_view, T>> choices);

struct Option {
  std::string flags;  // "--web-path,--ui-web-path": the first is its name
  OptionValue value;
  std::string help;
  bool secret = false;  // never shown
  bool hidden = false;  // not in the help
};

// The options of one system, or of one part of the process.
struct OptionGroup {
  std::string title;  // "Mail"
  std::vector<Option> options;
  // What no option can say alone: those that go together. Asked when all are set.
  std::function<OptionCheck()> check;
};

}  // namespace tabella

// Options, each said once: its flag, what it must look like, where it goes, and its help. From the flag
// follow its variable (--mail-ttl: TABELLA_MAIL_TTL) and its key in a TOML file (mail-ttl).
//
// A table borrows the struct that it fills, whose values are the defaults; app/command_line.h reads it. All
// of it happens on one thread, before anything runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
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

  bool operator==(const Address&) const = default;
};
// HOST:PORT, as a URL has it: an IPv6 address is in brackets.
std::string to_text(const Address& address);

// A sentence for the user if something is not right. Of a value it follows the flag: "--mail-ttl: 'x' is no
// time, …".
using OptionCheck = std::expected<void, std::string>;
using TextCheck = std::function<OptionCheck(std::string_view)>;

// What the texts of an option must look like, and where their meaning goes.
struct OptionValue {
  std::string placeholder;  // "HOST:PORT"; empty: a switch
  bool repeatable = false;
  char separator = '\0';  // between several in one text; '\0': each has a text of its own
  // Takes all that was given: one text, unless it is repeatable.
  std::function<OptionCheck(const std::vector<std::string>&)> set;
  // What is in force, as it could be given; empty: nothing.
  std::function<std::vector<std::string>()> show;
};

// The kinds there are. Each borrows `into`, whose value is the default. A check sees what is given before it
// is taken.
OptionValue text_option(std::string& into, std::string placeholder, TextCheck check = {});
OptionValue texts_option(std::vector<std::string>& into, std::string placeholder, TextCheck check = {},
                         char separator = '\0');
OptionValue path_option(std::filesystem::path& into, std::string placeholder);
OptionValue switch_option(bool& into);
OptionValue number_option(size_t& into, size_t least = 0, size_t most = std::numeric_limits<size_t>::max());
OptionValue real_option(double& into, double least, double most, std::string placeholder);
OptionValue size_option(size_t& into, size_t least, size_t most);  // 512MB, 2G, bytes
OptionValue size_option(std::optional<size_t>& into, size_t least, size_t most);
OptionValue address_option(Address& into);                 // HOST:PORT, or :PORT for all addresses
OptionValue address_option(std::optional<Address>& into);  // the same, or off
OptionValue word_option(std::string& into, std::vector<std::string> choices);

// How long something is kept: 7d, 12h, or off, which is for ever.
inline constexpr std::chrono::hours kForever{100 * 365 * 24};
OptionValue lifetime_option(std::chrono::seconds& into);

// What kinds are made of: `read` says what a text means, or what is wrong with it.
template <class T>
OptionValue read_option(T& into, std::string placeholder,
                        std::function<std::expected<T, std::string>(std::string_view)> read,
                        std::function<std::string(const T&)> show) {
  return {.placeholder = std::move(placeholder),
          .set = [&into, read = std::move(read)](const std::vector<std::string>& texts) -> OptionCheck {
            auto value = read(texts.front());
            if (!value) return std::unexpected(std::move(value.error()));
            into = std::move(*value);
            return {};
          },
          .show = [&into, show = std::move(show)]() -> std::vector<std::string> {
            auto text = show(into);
            if (text.empty()) return {};
            return {std::move(text)};
          }};
}

// A length of time: 7d, 12h, 150ms, or seconds without a unit.
using TimeText = std::expected<std::chrono::milliseconds, std::string>;
TimeText read_time(std::string_view text, std::chrono::milliseconds least, std::chrono::milliseconds most);
std::string show_time(std::optional<std::chrono::milliseconds> time);

// `Time` is a duration, or one that may be missing.
template <class Time>
OptionValue time_option(Time& into, std::chrono::milliseconds least, std::chrono::milliseconds most) {
  const auto read = [least, most](std::string_view text) -> std::expected<Time, std::string> {
    const auto time = read_time(text, least, most);
    if (!time) return std::unexpected(time.error());
    if constexpr (requires { typename Time::value_type; })
      return std::chrono::duration_cast<typename Time::value_type>(*time);
    else
      return std::chrono::duration_cast<Time>(*time);
  };
  return read_option<Time>(into, "TIME", read, [](const Time& time) { return show_time(time); });
}

// "'x' is neither sync nor relaxed", "'x' is none of day, half-day, hour"
std::string none_of(std::string_view text, const std::vector<std::string>& choices);
std::string join(const std::vector<std::string>& texts, std::string_view separator);

template <class T>
OptionValue choice_option(T& into, std::initializer_list<std::pair<std::string_view, T>> choices) {
  const std::vector<std::pair<std::string_view, T>> all(choices);  // the names are literals
  std::vector<std::string> names;
  for (const auto& choice : all) names.emplace_back(choice.first);
  auto placeholder = join(names, "|");
  return read_option<T>(
      into, std::move(placeholder),
      [all, names](std::string_view text) -> std::expected<T, std::string> {
        for (const auto& [name, value] : all)
          if (name == text) return value;
        return std::unexpected(none_of(text, names));
      },
      [all](const T& value) {
        for (const auto& [name, its_value] : all)
          if (its_value == value) return std::string(name);
        return std::string();
      });
}

// A part of something that is there once one of its parts is. An empty text is none.
template <class T>
OptionValue part_option(std::optional<T>& into, std::string T::* part, std::string placeholder) {
  return {.placeholder = std::move(placeholder),
          .set = [&into, part](const std::vector<std::string>& texts) -> OptionCheck {
            if (texts.front().empty()) return {};
            if (!into) into.emplace();
            (*into).*part = texts.front();
            return {};
          },
          .show = [&into, part]() -> std::vector<std::string> {
            if (!into || ((*into).*part).empty()) return {};
            return {(*into).*part};
          }};
}

struct Option {
  std::string flags;  // "--web-path,--ui-web-path": the first is its name. "folder": goes by its place
  OptionValue value;
  std::string help;
  std::vector<std::string> variables = {};  // besides the one that follows from its name
  bool secret = false;                      // never shown
  bool hidden = false;                      // not in the help

  std::vector<std::string> names() const;
  std::string name() const { return names().front(); }
  std::string variable() const;  // TABELLA_WEB_PATH
};

// Who has given an option its value.
struct OptionSource {
  enum class Kind { flag, variable, file };
  Kind kind = Kind::flag;
  std::string name;  // "--data", "TABELLA_DATA", "/etc/tabella.toml"
};
// Of the options that somebody has given, by their names; all others have their defaults.
using OptionSources = std::map<std::string, OptionSource, std::less<>>;

// The options of one system, or of one part of the process.
struct OptionGroup {
  std::string title;  // "Mail"
  std::vector<Option> options;
  // What no option can say alone: which go together, and what follows from several. Asked when all of all
  // groups are set. Its sentence stands alone. If it gives an option its value for another one, it says so
  // in `given`.
  std::function<OptionCheck(OptionSources& given)> check = {};
};

// Checks that groups are made of.
OptionCheck go_together(const OptionSources& given, std::string_view one, std::string_view other);
OptionCheck refuse_given(const OptionSources& given, std::initializer_list<std::string_view> names,
                         std::string_view why);

}  // namespace tabella

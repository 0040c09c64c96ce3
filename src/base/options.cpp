#include "base/options.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration.h"
#include "base/text.h"

namespace tabella {
namespace {

template <class T>
using Read = std::expected<T, std::string>;

std::string as_it_is(const std::string& text) { return text; }

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

template <class Number>
Read<Number> read_between(std::string_view text, Number least, Number most) {
  const auto value = read_number<Number>(text);
  if (!value) return std::unexpected(fmt::format("'{}' is not a number", text));
  if (*value >= least && *value <= most) return *value;
  if (most == std::numeric_limits<Number>::max()) return std::unexpected(fmt::format("at least {}", least));
  if constexpr (std::is_unsigned_v<Number>)
    if (least == 0) return std::unexpected(fmt::format("{} is more than {}", *value, most));
  return std::unexpected(fmt::format("between {} and {}", least, most));
}

Read<bool> read_switch(std::string_view text) {
  static constexpr std::pair<std::string_view, bool> kWords[] = {
      {"true", true},   {"on", true},   {"yes", true}, {"enable", true},   {"1", true},
      {"false", false}, {"off", false}, {"no", false}, {"disable", false}, {"0", false}};
  const auto given = lower(text);
  for (const auto& [word, on] : kWords)
    if (word == given) return on;
  return std::unexpected(fmt::format("'{}' is neither true nor false", text));
}

constexpr std::string_view kSizeUnits = "KMGT";

// "64MB", "1G", or just bytes.
Read<size_t> read_size(std::string_view text, size_t least, size_t most) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto unit = upper(std::string_view(end, text.data() + text.size()));
  if (unit.size() > 1 && unit.ends_with('B')) unit.pop_back();
  if (unit == "B") unit.clear();
  const auto at = unit.empty() ? 0 : kSizeUnits.find(unit);
  const auto power = unit.empty() ? 0 : at + 1;
  const bool fits = error == std::errc{} && unit.size() <= 1 && at != std::string_view::npos &&
                    value <= most >> (10 * power) && value << (10 * power) >= least;
  if (!fits)
    return std::unexpected(
        fmt::format("'{}' is not a size of {} to {} bytes, as in 512MB or 2GB", text, least, most));
  return value << (10 * power);
}

std::string show_size(size_t size) {
  std::string unit;
  for (size_t i = 0; i < kSizeUnits.size() && size > 0 && size % 1024 == 0; ++i) {
    size /= 1024;
    unit = {kSizeUnits[i], 'B'};
  }
  return fmt::format("{}{}", size, unit);
}

Read<Address> read_address(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : read_number<uint16_t>(text.substr(colon + 1));
  if (!port) return std::unexpected(fmt::format("'{}' is not HOST:PORT, as in 127.0.0.1:8000", text));
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  // ":1025", as Go has it: all addresses.
  return Address{colon == 0 ? "0.0.0.0" : std::string(host), *port};
}

Read<std::optional<Address>> read_address_or_off(std::string_view text) {
  if (text == "off") return std::nullopt;
  return read_address(text);
}

Read<std::chrono::seconds> read_lifetime(std::string_view text) {
  if (text == "off") return kForever;
  const auto length = parse_duration(text);
  if (!length || *length < std::chrono::seconds{1} || *length > kForever)
    return std::unexpected(fmt::format("'{}' is no time, as in 7d, 12h or 30m; off: for ever", text));
  return std::chrono::duration_cast<std::chrono::seconds>(*length);
}

}  // namespace

std::string to_text(const Address& address) {
  const bool brackets = address.host.contains(':');
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", address.host, brackets ? "]" : "", address.port);
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
  return fmt::format("{}", fmt::join(texts, separator));
}

std::string none_of(std::string_view text, const std::vector<std::string>& choices) {
  if (choices.size() == 2) return fmt::format("'{}' is neither {} nor {}", text, choices[0], choices[1]);
  return fmt::format("'{}' is none of {}", text, join(choices, ", "));
}

OptionValue text_option(std::string& into, std::string placeholder, TextCheck check) {
  const auto read = [check = std::move(check)](std::string_view text) -> Read<std::string> {
    if (check)
      if (auto checked = check(text); !checked) return std::unexpected(std::move(checked.error()));
    return std::string(text);
  };
  return read_option<std::string>(into, std::move(placeholder), read, as_it_is);
}

OptionValue texts_option(std::vector<std::string>& into, std::string placeholder, TextCheck check,
                         char separator) {
  return {.placeholder = std::move(placeholder),
          .repeatable = true,
          .separator = separator,
          .set = [&into, check = std::move(check)](const std::vector<std::string>& texts) -> OptionCheck {
            if (check)
              for (const auto& text : texts)
                if (auto checked = check(text); !checked) return checked;
            into = texts;
            return {};
          },
          .show = [&into] { return into; }};
}

OptionValue path_option(std::filesystem::path& into, std::string placeholder) {
  using Path = std::filesystem::path;
  return read_option<Path>(
      into, std::move(placeholder), [](std::string_view text) -> Read<Path> { return Path(text); },
      [](const Path& path) { return path.string(); });
}

OptionValue switch_option(bool& into) {
  return read_option<bool>(into, "", read_switch,
                           [](bool on) -> std::string { return on ? "true" : "false"; });
}

OptionValue number_option(size_t& into, size_t least, size_t most) {
  return read_option<size_t>(
      into, "N", [=](std::string_view text) { return read_between(text, least, most); },
      [](size_t number) { return std::to_string(number); });
}

OptionValue real_option(double& into, double least, double most, std::string placeholder) {
  return read_option<double>(
      into, std::move(placeholder), [=](std::string_view text) { return read_between(text, least, most); },
      [](double number) { return fmt::format("{}", number); });
}

OptionValue size_option(size_t& into, size_t least, size_t most) {
  return read_option<size_t>(
      into, "SIZE", [=](std::string_view text) { return read_size(text, least, most); }, show_size);
}

OptionValue size_option(std::optional<size_t>& into, size_t least, size_t most) {
  return read_option<std::optional<size_t>>(
      into, "SIZE", [=](std::string_view text) { return read_size(text, least, most); },
      [](std::optional<size_t> size) { return size ? show_size(*size) : ""; });
}

OptionValue address_option(Address& into) {
  return read_option<Address>(into, "HOST:PORT", read_address,
                              [](const Address& address) { return to_text(address); });
}

OptionValue address_option(std::optional<Address>& into) {
  return read_option<std::optional<Address>>(
      into, "HOST:PORT|off", read_address_or_off,
      [](const std::optional<Address>& address) { return address ? to_text(*address) : "off"; });
}

OptionValue word_option(std::string& into, std::vector<std::string> choices) {
  auto placeholder = join(choices, "|");
  const auto check = [choices = std::move(choices)](std::string_view text) -> OptionCheck {
    if (std::ranges::find(choices, text) != choices.end()) return {};
    return std::unexpected(none_of(text, choices));
  };
  return text_option(into, std::move(placeholder), check);
}

OptionValue lifetime_option(std::chrono::seconds& into) {
  return read_option<std::chrono::seconds>(into, "TIME", read_lifetime, [](std::chrono::seconds time) {
    return time == kForever ? "off" : duration_text(time);
  });
}

TimeText read_time(std::string_view text, std::chrono::milliseconds least, std::chrono::milliseconds most) {
  const auto time = parse_duration(text);
  if (time && *time >= least && *time <= most) return *time;
  return std::unexpected(fmt::format("'{}' is no time from {} to {}, as in 20s", text, duration_text(least),
                                     duration_text(most)));
}

std::string show_time(std::optional<std::chrono::milliseconds> time) {
  return time ? duration_text(*time) : "";
}

std::vector<std::string> Option::names() const {
  std::vector<std::string> names;
  for (const auto name : split(flags, ',')) names.emplace_back(name);
  return names;
}

std::string Option::variable() const {
  auto variable = "TABELLA_" + upper(name().substr(2));
  std::ranges::replace(variable, '-', '_');
  return variable;
}

OptionCheck go_together(const OptionSources& given, std::string_view one, std::string_view other) {
  if (given.contains(one) == given.contains(other)) return {};
  return std::unexpected(fmt::format("{} and {} go together: give both or neither", one, other));
}

OptionCheck refuse_given(const OptionSources& given, std::initializer_list<std::string_view> names,
                         std::string_view why) {
  for (const auto name : names)
    if (given.contains(name)) return std::unexpected(fmt::format("{}: {}", name, why));
  return {};
}

}  // namespace tabella

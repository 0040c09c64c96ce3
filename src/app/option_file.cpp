#include "app/option_file.h"

#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace tabella::app {
namespace {

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<int64_t>()) return std::to_string(*number);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  return std::nullopt;
}

// Nothing if it is neither such a value nor a list of them.
std::optional<std::vector<std::string>> values_of(const toml::node& node) {
  std::vector<std::string> values;
  const auto add = [&](const toml::node& value) {
    auto text = text_of(value);
    if (text) values.push_back(std::move(*text));
    return text.has_value();
  };
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array)
      if (!add(element)) return std::nullopt;
  } else if (!add(node)) {
    return std::nullopt;
  }
  return values;
}

}  // namespace

std::expected<std::vector<FileOption>, std::string> read_option_file(const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return std::unexpected(fmt::format("the configuration file {} cannot be read as TOML: {} (line {})", path,
                                       error.description(), error.source().begin.line));
  }
  std::vector<FileOption> options;
  for (const auto& [key, node] : table) {
    auto values = values_of(node);
    if (!values)
      return std::unexpected(fmt::format(
          "the configuration file {}: '{}' must be a string, a number, true, false or a list of them", path,
          key.str()));
    options.push_back({std::string(key.str()), std::move(*values)});
  }
  return options;
}

}  // namespace tabella::app

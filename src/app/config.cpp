#include "app/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"

namespace tabella::app {
namespace {

constexpr std::string_view kSecret = "(set)";

std::string_view kind_name(OptionSource::Kind kind) {
  switch (kind) {
    case OptionSource::Kind::flag: return "flag";
    case OptionSource::Kind::variable: return "variable";
    case OptionSource::Kind::file: return "file";
  }
  return "";
}

const OptionSource* source_of(const Option& option, const OptionSources& given) {
  const auto found = given.find(option.name());
  return found == given.end() ? nullptr : &found->second;
}

std::vector<Option> shown_options(const OptionGroup& group, const OptionSources& given) {
  std::vector<Option> shown;
  std::ranges::copy_if(group.options, std::back_inserter(shown),
                       [&](const Option& option) { return !option.hidden || source_of(option, given); });
  return shown;
}

struct Line {
  std::string name;
  std::string value;
  std::string source;
};

Line make_line(const Option& option, const OptionSources& given) {
  const auto values = option.value.show();
  const auto* const source = source_of(option, given);
  return {.name = option.name(),
          .value = values.empty()  ? "(not set)"
                   : option.secret ? std::string(kSecret)
                                   : join(values, ","),
          .source = source ? fmt::format("{} {}", kind_name(source->kind), source->name) : "default"};
}

void append_value(std::string& out, const Option& option) {
  const auto values = option.value.show();
  if (option.secret && !values.empty()) return append_json_string(out, kSecret);
  if (option.value.repeatable) {
    JsonArrayWriter list(out);
    for (const auto& value : values) append_json_string(list.element(), value);
  } else if (values.empty()) {
    out += "null";
  } else {
    append_json_string(out, values.front());
  }
}

void append_option(std::string& out, const Option& option, const OptionSources& given) {
  const auto* const source = source_of(option, given);
  JsonObjectWriter object(out);
  object.string("name", option.name());
  append_value(object.key("value"), option);
  object.string("source", source ? kind_name(source->kind) : "default");
  if (source) object.string("from", source->name);
}

void append_group(std::string& out, const OptionGroup& group, const OptionSources& given) {
  JsonObjectWriter object(out);
  object.string("title", group.title);
  JsonArrayWriter list(object.key("options"));
  for (const auto& option : shown_options(group, given)) append_option(list.element(), option, given);
}

}  // namespace

std::string config_text(const std::vector<OptionGroup>& groups, const OptionSources& given) {
  constexpr size_t kWidest = 40;  // a longer value moves only its own line
  size_t name_width = 0;
  size_t value_width = 0;
  std::vector<std::pair<std::string, std::vector<Line>>> parts;
  for (const auto& group : groups) {
    auto& lines = parts.emplace_back(group.title, std::vector<Line>()).second;
    for (const auto& option : shown_options(group, given)) {
      const auto& line = lines.emplace_back(make_line(option, given));
      name_width = std::max(name_width, line.name.size());
      if (line.value.size() <= kWidest) value_width = std::max(value_width, line.value.size());
    }
  }
  std::string text;
  for (const auto& [title, lines] : parts) {
    if (lines.empty()) continue;
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", title);
    for (const auto& line : lines)
      text +=
          fmt::format("  {:{}}  {:{}}  {}\n", line.name, name_width, line.value, value_width, line.source);
  }
  return text;
}

std::string config_json(const std::vector<OptionGroup>& groups, const OptionSources& given) {
  std::string json;
  {
    JsonObjectWriter object(json);
    JsonArrayWriter list(object.key("groups"));
    for (const auto& group : groups)
      if (!shown_options(group, given).empty()) append_group(list.element(), group, given);
  }
  json += '\n';
  return json;
}

}  // namespace tabella::app

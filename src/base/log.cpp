#include "base/log.h"

#include <atomic>
#include <chrono>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <fmt/chrono.h>

#include "base/json_text.h"

namespace tabella::log {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v";

std::atomic<bool> as_json = false;

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_color_mt("tabella");
    made->set_pattern(kTextPattern);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: break;
  }
  return "error";
}

std::string text_line(std::string_view message, Fields fields) {
  std::string line(message);
  for (const auto& [name, value] : fields) {
    line.append(" ").append(name).append("=");
    if (value.empty() || value.find_first_of(" \"\n\r") != std::string::npos)
      append_json_string(line, value);
    else
      line.append(value);
  }
  return line;
}

std::string json_line(Level level, std::string_view message, Fields fields) {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::string line =
      fmt::format(R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z","level":"{}","message":)",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)), milliseconds, level_name(level));
  append_json_string(line, message);
  for (const auto& [name, value] : fields) {
    line.push_back(',');
    append_json_string(line, name);
    line.push_back(':');
    append_json_string(line, value);
  }
  return line + "}";
}

}  // namespace

bool set_level(std::string_view name) {
  const auto level = spdlog::level::from_str(std::string(name));
  if (level == spdlog::level::off && name != "off") return false;
  logger().set_level(level);
  return true;
}

bool enabled(Level level) { return logger().should_log(to_spdlog(level)); }

void set_format(Format format) {
  as_json = format == Format::json;
  logger().set_pattern(format == Format::json ? "%v" : kTextPattern);
}

void write(Level level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  const auto line = as_json ? json_line(level, message, fields) : text_line(message, fields);
  logger().log(to_spdlog(level), std::string_view(line));
}

}  // namespace tabella::log

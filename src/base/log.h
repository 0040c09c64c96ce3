// The process's log: one line per event on standard error, as text or as JSON. Thread-safe.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tabella::log {

enum class Level { debug, info, warning, error };

// Takes "debug", "info", "warning", "error" or "off"; false for anything else.
bool set_level(std::string_view name);

enum class Format { text, json };
void set_format(Format format);

// What an event is about, besides its message: {"request_id", "…"}.
using Fields = std::initializer_list<std::pair<std::string_view, std::string>>;

bool enabled(Level level);
void write(Level level, std::string_view message, Fields fields = {});

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warning)) write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tabella::log

#include "smtp/data.h"

#include <algorithm>

namespace tabella::smtp {

void DataReader::keep(std::string_view piece) {
  size_ += piece.size();
  if (too_large())
    text_ = {};
  else
    text_.append(piece);
}

DataReader::State DataReader::feed(std::string_view& bytes) {
  while (!bytes.empty()) {
    if (line_begins_ && bytes.front() == '.') {
      // A dot at the front: the end if a line end follows, stuffing otherwise.
      if (bytes.size() < 3 && (bytes.size() < 2 || bytes[1] == '\r')) return State::incomplete;
      if (bytes[1] == '\r' && bytes[2] == '\n') {
        bytes.remove_prefix(3);
        return State::complete;
      }
      bytes.remove_prefix(1);
      line_begins_ = false;
      continue;
    }
    const auto end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      line_ += bytes.size();
      line_begins_ = false;
      keep(bytes);
      bytes = {};
      return line_ > max_line_ ? State::line_too_long : State::incomplete;
    }
    if (bytes[end] == '\n') return State::bare_line_feed;
    if (end + 1 == bytes.size()) {
      // What the carriage return is depends on what follows it.
      line_ += end;
      line_begins_ = line_begins_ && end == 0;
      keep(bytes.substr(0, end));
      bytes.remove_prefix(end);
      return line_ > max_line_ ? State::line_too_long : State::incomplete;
    }
    if (bytes[end + 1] != '\n') return State::bare_carriage_return;
    if (line_ + end > max_line_) return State::line_too_long;
    keep(bytes.substr(0, end + 2));
    bytes.remove_prefix(end + 2);
    line_ = 0;
    line_begins_ = true;
  }
  return State::incomplete;
}

std::string stuff_dots(std::string_view data) {
  std::string out;
  out.reserve(data.size() + data.size() / 64 + 16);
  while (!data.empty()) {
    const auto end = data.find('\n');
    const bool ended = end != std::string_view::npos;
    auto line = data.substr(0, end);
    data.remove_prefix(ended ? end + 1 : data.size());
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    while (true) {
      const auto carriage_return = line.find('\r');
      if (line.starts_with('.')) out.push_back('.');
      out.append(line.substr(0, carriage_return)).append("\r\n");
      if (carriage_return == std::string_view::npos) break;
      line.remove_prefix(carriage_return + 1);
      if (line.empty() && !ended) break;
    }
  }
  return out;
}

bool is_stuffed(std::string_view data) {
  if (data.empty()) return true;
  if (data.front() == '.' || !data.ends_with("\r\n")) return false;
  std::ptrdiff_t lines = 0;
  for (auto end = data.find('\n'); end != std::string_view::npos; end = data.find('\n', end + 1)) {
    if (end == 0 || data[end - 1] != '\r' || data.substr(end + 1).starts_with('.')) return false;
    ++lines;
  }
  // Each line end has its carriage return: one more of them is by itself.
  return lines == std::ranges::count(data, '\r');
}

}  // namespace tabella::smtp

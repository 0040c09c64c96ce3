// The text between DATA and the lone dot. As it comes in: dots taken off again, line ends checked. As it goes
// out: dots and line ends put in.
//
// Only CR LF "." CR LF ends a message, and only CR LF ends a line. A bare CR or LF is refused, whatever it
// stands beside: servers that disagree about them let messages be smuggled inside messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tabella::smtp {

class DataReader {
 public:
  enum class State { incomplete, complete, bare_line_feed, bare_carriage_return, line_too_long };

  // Lines of more than `max_line` bytes are refused. What goes beyond `max_size` is read but not kept.
  DataReader(size_t max_size, size_t max_line) : max_size_(max_size), max_line_(max_line) {}

  // Takes what it can use off the front of `bytes`; the rest is to come again, with more behind it.
  State feed(std::string_view& bytes);

  bool too_large() const { return size_ > max_size_; }
  std::string& text() { return text_; }

 private:
  void keep(std::string_view piece);

  const size_t max_size_;
  const size_t max_line_;
  size_t size_ = 0;
  size_t line_ = 0;          // bytes of the line so far
  bool line_begins_ = true;  // the next byte is the first of its line
  std::string text_;
};

// With a dot more where a line begins with one, and every line ending with CR LF; without the last dot. Any
// of CR LF, LF and CR ends a line of `data`.
std::string stuff_dots(std::string_view data);

// Whether that would change nothing.
bool is_stuffed(std::string_view data);

}  // namespace tabella::smtp

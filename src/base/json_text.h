#pragma once

#include <string>
#include <string_view>

namespace tabella {

// Appends `text` as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

// The same without the quotes: for a string that is written piece by piece.
void append_json_text(std::string& out, std::string_view text);

// Walks an array or an object of JSON that is known to be valid, and gives each value as it was written: what
// a parser makes of a number may be another text, or another number. In the order of JsonElements
// (base/json.h).
class JsonTexts {
 public:
  explicit JsonTexts(std::string_view container);
  bool next();
  std::string_view text() const { return text_; }

 private:
  std::string_view rest_;
  bool object_ = false;
  std::string_view text_;
};

// The same value without blanks and line breaks between its parts.
void append_compact_json(std::string& out, std::string_view valid);

}  // namespace tabella

// HTML in pieces, as forgiving as browsers are: every byte belongs to some token.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tabella::mime {

struct HtmlToken {
  enum class Kind { text, start, end, other };  // other: comments, doctypes, instructions
  Kind kind = Kind::text;
  std::string_view text;  // of a text: as it stands, character references and all
  std::string name;       // of a tag, in lower case
  std::vector<std::pair<std::string, std::string>> attributes;  // names in lower case, values decoded
};

class HtmlTokens {
 public:
  explicit HtmlTokens(std::string_view html) : rest_(html) {}
  bool next(HtmlToken& token);
  // All up to the end tag of an element whose content is not markup (script, style).
  std::string_view raw_text(std::string_view element);

 private:
  bool read_tag(HtmlToken& token);
  void read_attributes(HtmlToken& token);

  std::string_view rest_;
};

// With &amp; and its like replaced by what they stand for.
std::string decode_references(std::string_view text);

}  // namespace tabella::mime

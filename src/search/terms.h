// Text in threes: the terms that make any substring of a text findable.
//
// A term is a field and three characters in a row. Behind each piece of text stand two characters that no
// text has (U+0000), so that every one or two characters are the beginning of some term, too. Terms are kept
// as bytes — the field, then UTF-8 — whose order is that of the characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::search {

using Trigram = uint64_t;  // three code points of 21 bits each

// All of `text`, which is folded UTF-8 without U+0000; the same one may come more than once.
void append_trigrams(std::vector<Trigram>& out, std::string_view text);

std::string term_of(char field, Trigram trigram);

// How to find a text by its terms: all of `terms`, or any that begins with `prefix`.
struct TermQuery {
  std::vector<std::string> terms;
  std::string prefix;  // for texts of one or two characters
  bool exact = false;  // who has the terms has the text
};
TermQuery terms_for(char field, std::string_view text);

}  // namespace tabella::search

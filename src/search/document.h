// What is searched for: a document with pieces of text in fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::search {

// The field that stands for all of them. Fields are letters, their owner's to choose.
inline constexpr char kAnyField = '*';
// The field of words that are found whole or not at all.
inline constexpr char kKeyField = '=';

struct Piece {
  char field = kAnyField;  // also found in kAnyField
  std::string text;        // folded
};

struct Document {
  std::string id;       // in the order of time
  int64_t expires = 0;  // seconds since 1970: when it is not found any more
  uint64_t size = 0;    // the owner's
  uint32_t flags = 0;   // the owner's
  std::vector<Piece> pieces;
  std::vector<std::string> keys;
};

// All pieces one after the other, as the index keeps them.
std::string encode_pieces(const Document& document);

// Whether a piece of one of the fields has the text in it.
bool has_text(const Document& document, std::string_view fields, std::string_view text);
bool has_text(std::string_view encoded_pieces, std::string_view fields, std::string_view text);

}  // namespace tabella::search

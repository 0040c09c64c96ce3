#include "search/document.h"

#include <cstring>

#include "base/bytes.h"

namespace tabella::search {
namespace {

bool is_wanted(char field, std::string_view fields) {
  return fields.find(kAnyField) != std::string_view::npos || fields.find(field) != std::string_view::npos;
}

// Much faster than std::string_view::find in long texts.
bool contains(std::string_view text, std::string_view part) {
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

}  // namespace

std::string encode_pieces(const Document& document) {
  std::string out;
  for (const auto& piece : document.pieces) {
    out.push_back(piece.field);
    put_sized(out, piece.text);
  }
  return out;
}

bool has_text(const Document& document, std::string_view fields, std::string_view text) {
  for (const auto& piece : document.pieces)
    if (is_wanted(piece.field, fields) && contains(piece.text, text)) return true;
  return false;
}

bool has_text(std::string_view pieces, std::string_view fields, std::string_view text) {
  while (!pieces.empty()) {
    const char field = pieces.front();
    pieces.remove_prefix(1);
    const auto piece = take_sized(pieces);
    if (is_wanted(field, fields) && contains(piece, text)) return true;
  }
  return false;
}

}  // namespace tabella::search

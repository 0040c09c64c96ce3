// DynamoDB's number: up to 38 significant decimal digits, magnitude 1E-130 to 9.99…E+125, exact.
//
// Its one representation, in memory and on disk, is a self-delimiting byte string whose memcmp order is
// numeric order (docs/storage_format.md, "Numbers"; do not change):
//   zero      01
//   positive  02 · exponent+130 · (digit pair + 1)* · 00
//   negative  00 · the complement (255 - b) of each byte that the positive number would have after its 02
// where the exponent is that of the first digit (1.5E3 has 3), pairs are base 100 from the first digit on,
// and trailing zero pairs are dropped. Equal numbers have equal bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tabella::item {

// Takes "5", "+5", ".5", "5.", "1e3", "-0"; refuses blanks, other text, too many digits, over- and underflow
// (that of "0e126" too).
Checked<std::string> parse_number(std::string_view text);

std::string encode_int(int64_t value);

// The canonical text: no exponent, no trailing zeros, "0" for zero.
std::string number_text(std::string_view encoded);
void append_number_text(std::string& out, std::string_view encoded);

// How many bytes of `in` the number at its front takes.
size_t number_length(std::string_view in);

Checked<std::string> add_numbers(std::string_view a, std::string_view b);
Checked<std::string> subtract_numbers(std::string_view a, std::string_view b);

// The bytes that the number counts for in an item's size.
size_t number_size(std::string_view encoded);

// The value if it is a whole number that fits.
std::optional<int64_t> number_to_int(std::string_view encoded);

}  // namespace tabella::item

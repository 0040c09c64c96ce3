#include "item/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace tabella::item {
namespace {

constexpr int kMaxDigits = 38;
constexpr int kMinExponent = -130;
constexpr int kMaxExponent = 125;

constexpr char kNegative = 0;
constexpr char kZero = 1;
constexpr char kPositive = 2;

constexpr const char* kOverflow =
    "Number overflow. Attempting to store a number with magnitude larger than supported range";
constexpr const char* kUnderflow =
    "Number underflow. Attempting to store a number with magnitude smaller than supported range";
constexpr const char* kTooPrecise = "Attempting to store more than 38 significant digits in a Number";

// Digits d0 d1 … of the value ±d0.d1d2… × 10^exponent, without leading or trailing zeros; none for zero.
struct Decimal {
  bool negative = false;
  int exponent = 0;
  int count = 0;
  std::array<uint8_t, 160> digits{};
};

void normalize(Decimal& d) {
  int lead = 0;
  while (lead < d.count && d.digits[lead] == 0) ++lead;
  std::copy(d.digits.begin() + lead, d.digits.begin() + d.count, d.digits.begin());
  d.count -= lead;
  d.exponent -= lead;
  while (d.count > 0 && d.digits[d.count - 1] == 0) --d.count;
  if (d.count == 0) d = {};
}

Checked<std::string> encode(const Decimal& d) {
  if (d.count == 0) return std::string(1, kZero);
  if (d.exponent > kMaxExponent) return invalid(kOverflow);
  if (d.exponent < kMinExponent) return invalid(kUnderflow);
  if (d.count > kMaxDigits) return invalid(kTooPrecise);
  std::string out;
  out.push_back(d.negative ? kNegative : kPositive);
  out.push_back(static_cast<char>(d.exponent - kMinExponent));
  for (int i = 0; i < d.count; i += 2) {
    const int second = i + 1 < d.count ? d.digits[i + 1] : 0;
    out.push_back(static_cast<char>(d.digits[i] * 10 + second + 1));
  }
  out.push_back(0);
  if (d.negative) std::transform(out.begin() + 1, out.end(), out.begin() + 1, [](char c) { return ~c; });
  return out;
}

Decimal decode(std::string_view encoded) {
  Decimal d;
  if (encoded.size() < 3 || encoded[0] == kZero) return d;
  d.negative = encoded[0] == kNegative;
  const auto at = [&](size_t i) { return static_cast<uint8_t>(d.negative ? ~encoded[i] : encoded[i]); };
  d.exponent = at(1) + kMinExponent;
  for (size_t i = 2; i + 1 < encoded.size() && d.count + 2 <= static_cast<int>(d.digits.size()); ++i) {
    const int pair = at(i) - 1;
    d.digits[d.count++] = static_cast<uint8_t>(pair / 10);
    d.digits[d.count++] = static_cast<uint8_t>(pair % 10);
  }
  if (d.count > 0 && d.digits[d.count - 1] == 0) --d.count;
  return d;
}

std::unexpected<Invalid> not_a_number(std::string_view text) {
  return invalid(fmt::format("The parameter cannot be converted to a numeric value: {}", text));
}

// Reads the exponent after 'e'. One that does not fit 32 bits is no number to AWS; less is under- or
// overflow.
std::optional<int> read_exponent(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
    if (value > INT32_MAX) return std::nullopt;
  }
  return static_cast<int>(negative ? -value : value);
}

// |a| compared with |b|.
int compare_magnitude(const Decimal& a, const Decimal& b) {
  if (a.count == 0 || b.count == 0) return (a.count > 0) - (b.count > 0);
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  for (int i = 0; i < std::max(a.count, b.count); ++i) {
    const int x = i < a.count ? a.digits[i] : 0;
    const int y = i < b.count ? b.digits[i] : 0;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

// Adds b to a, whose magnitude is not the smaller, digit by digit on a common grid.
Checked<std::string> add_decimals(const Decimal& a, const Decimal& b) {
  if (b.count == 0) return encode(a);
  const int lowest = std::min(a.exponent - a.count, b.exponent - b.count) + 1;
  const int span = a.exponent - lowest + 1;
  if (span > 2 * kMaxDigits) return invalid(kOverflow);
  const auto digit_of = [](const Decimal& d, int power) -> int {
    const int i = d.exponent - power;
    return i >= 0 && i < d.count ? d.digits[i] : 0;
  };
  Decimal sum{.negative = a.negative, .exponent = a.exponent + 1, .count = span + 1};
  const bool subtract = a.negative != b.negative;
  int carry = 0;
  for (int power = lowest; power <= a.exponent; ++power) {
    int digit = digit_of(a, power) + carry + (subtract ? -digit_of(b, power) : digit_of(b, power));
    carry = digit < 0 ? -1 : digit / 10;
    digit = (digit + 10) % 10;
    sum.digits[sum.exponent - power] = static_cast<uint8_t>(digit);
  }
  sum.digits[0] = static_cast<uint8_t>(carry);
  normalize(sum);
  // A sum that does not fit 38 digits is an overflow to DynamoDB, whatever its magnitude.
  if (sum.count > kMaxDigits) return invalid(kOverflow);
  return encode(sum);
}

Checked<std::string> add_any(const Decimal& a, const Decimal& b) {
  return compare_magnitude(a, b) >= 0 ? add_decimals(a, b) : add_decimals(b, a);
}

}  // namespace

Checked<std::string> parse_number(std::string_view text) {
  if (text.empty()) return invalid("The parameter cannot be converted to a numeric value");
  const auto whole = text;
  Decimal d;
  if (text[0] == '+' || text[0] == '-') {
    d.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int scale = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto exponent = read_exponent(text.substr(e + 1));
    if (!exponent) return not_a_number(whole);
    scale = *exponent;
    text = text.substr(0, e);
  }
  bool seen_point = false;
  bool seen_digit = false;
  int64_t integer_digits = 0;   // digits before the point, leading zeros left out
  int64_t fraction_digits = 0;  // digits after the point
  int64_t leading_zeros = 0;    // zeros between the point and the first other digit
  int64_t pending_zeros = 0;    // zeros that count only if another digit follows
  bool too_precise = false;
  for (char c : text) {
    if (c == '.') {
      if (seen_point) return not_a_number(whole);
      seen_point = true;
      continue;
    }
    if (c < '0' || c > '9') return not_a_number(whole);
    seen_digit = true;
    if (seen_point) ++fraction_digits;
    const bool started = d.count > 0 || pending_zeros > 0;
    if (!started && c == '0') {
      if (seen_point) ++leading_zeros;
      continue;
    }
    if (!seen_point) ++integer_digits;
    if (c == '0') {
      ++pending_zeros;
      continue;
    }
    if (d.count + pending_zeros + 1 > kMaxDigits) {
      too_precise = true;
      continue;
    }
    for (; pending_zeros > 0; --pending_zeros) d.digits[d.count++] = 0;
    d.digits[d.count++] = static_cast<uint8_t>(c - '0');
  }
  if (!seen_digit) return not_a_number(whole);
  // AWS's numbers have a scale of 32 bits.
  const int64_t last_power = scale - fraction_digits;  // the power of ten that the last digit stands for
  if (last_power < -INT32_MAX) return not_a_number(whole);
  const int64_t first_power = (integer_digits > 0 ? integer_digits - 1 : -leading_zeros - 1) + scale;
  // A zero is as large as it is written: AWS refuses 0e126 and 0e-131, and takes 0.0e126.
  const int64_t exponent = d.count > 0 ? first_power : last_power;
  if (exponent > kMaxExponent) return invalid(kOverflow);
  if (exponent < kMinExponent) return invalid(kUnderflow);
  if (d.count == 0) return std::string(1, kZero);
  if (too_precise) return invalid(kTooPrecise);
  d.exponent = static_cast<int>(exponent);
  return encode(d);
}

std::string encode_int(int64_t value) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return *parse_number({text.data(), static_cast<size_t>(end - text.data())});
}

void append_number_text(std::string& out, std::string_view encoded) {
  const Decimal d = decode(encoded);
  if (d.count == 0) {
    out.push_back('0');
    return;
  }
  if (d.negative) out.push_back('-');
  if (d.exponent < 0) {
    out.append("0.").append(static_cast<size_t>(-d.exponent) - 1, '0');
  }
  for (int i = 0; i < d.count; ++i) {
    if (i == d.exponent + 1 && d.exponent >= 0) out.push_back('.');
    out.push_back(static_cast<char>('0' + d.digits[i]));
  }
  if (d.exponent >= d.count) out.append(static_cast<size_t>(d.exponent - d.count) + 1, '0');
}

std::string number_text(std::string_view encoded) {
  std::string out;
  append_number_text(out, encoded);
  return out;
}

size_t number_length(std::string_view in) {
  if (in.empty()) return 0;
  if (in[0] == kZero) return 1;
  const char end = in[0] == kNegative ? '\xff' : '\0';
  const auto at = in.find(end, 2);
  return at == std::string_view::npos ? in.size() : at + 1;
}

Checked<std::string> add_numbers(std::string_view a, std::string_view b) {
  return add_any(decode(a), decode(b));
}

Checked<std::string> subtract_numbers(std::string_view a, std::string_view b) {
  Decimal negated = decode(b);
  negated.negative = !negated.negative;
  return add_any(decode(a), negated);
}

size_t number_size(std::string_view encoded) {
  const Decimal d = decode(encoded);
  if (d.count == 0) return 1;
  // Significant digits are counted in pairs on each side of the decimal point.
  const int whole = std::clamp(d.exponent + 1, 0, d.count);
  const int fraction = d.count - whole;
  const int bytes = 1 + (whole + 1) / 2 + (fraction + 1) / 2 + (d.negative ? 1 : 0);
  return static_cast<size_t>(bytes);
}

namespace {

// Positive whole numbers of few digits, which most are, without their text.
std::optional<int64_t> small_number(std::string_view encoded) {
  constexpr int kMostDigits = 18;
  if (encoded.size() < 3 || encoded[0] != 2) return std::nullopt;
  const int digits = static_cast<uint8_t>(encoded[1]) - 130 + 1;
  if (digits < 1 || digits > kMostDigits) return std::nullopt;
  int64_t value = 0;
  int read = 0;
  for (const char byte : encoded.substr(2)) {
    if (byte == 0) break;
    const int pair = static_cast<uint8_t>(byte) - 1;
    if (read + 2 <= digits)
      value = value * 100 + pair;
    else if (read + 1 == digits && pair % 10 == 0)
      value = value * 10 + pair / 10;
    else
      return std::nullopt;
    read += 2;
  }
  for (; read < digits; ++read) value *= 10;
  return value;
}

}  // namespace

std::optional<int64_t> number_to_int(std::string_view encoded) {
  if (const auto small = small_number(encoded)) return small;
  const auto text = number_text(encoded);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tabella::item

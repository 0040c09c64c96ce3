// A schema and a message, a line each: both are strangers'.
#include <cstdint>
#include <cstdlib>

#include "inbox/model.h"
#include "inbox/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  JsonDocument values;
  const auto value = values.parse(text.substr(line + 1));
  if (!value) return 0;
  if (const auto schema = inbox::Schema::read(text.substr(0, line))) (*schema)->mismatch(*value);
  // What was kept of a message is what it said.
  std::string kept;
  if (!inbox::append_value(kept, *value, 100 * 1024)) return 0;
  std::string shown;
  inbox::append_plain_json(shown, item::ValueView(std::string_view(kept)));
  // Numbers are written without exponents, and we read none of more than 64 bits.
  size_t digits = 0;
  for (const char c : shown)
    if ((digits = c >= '0' && c <= '9' ? digits + 1 : 0) > 18) return 0;
  JsonDocument again;
  const auto read = again.parse(shown);
  const bool same_kind = read && (read->kind() == value->kind() || (read->is_number() && value->is_number()));
  if (!same_kind) std::abort();
  return 0;
}

#include "engine/tokens.h"

#include "base/bytes.h"
#include "engine/keys.h"

namespace tabella::engine {
namespace {

constexpr std::chrono::minutes kTokenLife{10};

uint64_t milliseconds(TimePoint at) { return static_cast<uint64_t>(epoch_milliseconds(at)); }

}  // namespace

// Stored as: due millisecond (8) · sized fingerprint · (sized table · varint units) each.
std::optional<TokenRecord> find_token(const WriteContext& context, const std::string& token) {
  const auto stored = context.get(keys::token(token));
  if (!stored || get_u64(*stored) <= milliseconds(context.now())) return std::nullopt;
  std::string_view in = std::string_view(*stored).substr(8);
  TokenRecord record{.fingerprint = std::string(take_sized(in)), .read_units = {}};
  while (!in.empty()) {
    std::string table(take_sized(in));
    record.read_units.emplace_back(std::move(table), static_cast<double>(take_varint(in)));
  }
  return record;
}

void remember_token(WriteContext& context, const std::string& token, const TokenRecord& record) {
  const auto due = milliseconds(context.now() + kTokenLife);
  std::string value;
  put_u64(value, due);
  put_sized(value, record.fingerprint);
  for (const auto& [table, units] : record.read_units) {
    put_sized(value, table);
    put_varint(value, static_cast<uint64_t>(units));
  }
  context.put(keys::token(token), value);
  context.batch().put(keys::token_by_age(due, token), {});
}

bool forget_tokens(WriteContext& context, std::string& position, size_t most) {
  auto end = keys::tokens_by_age();
  put_u64(end, milliseconds(context.now()) + 1);
  if (position.empty()) position = keys::tokens_by_age();
  if (position >= end) return false;
  context.restore_on_undo(position);
  auto cursor = context.database().range(position, end, Database::Direction::forward, false);
  for (; cursor.valid() && most > 0; cursor.next(), --most) {
    const auto due = get_u64(cursor.key().substr(1));
    const auto key = keys::token(cursor.key().substr(9));
    context.batch().remove(cursor.key());
    // Its owner may have begun anew under the same token.
    if (const auto stored = context.get(key); stored && get_u64(*stored) == due) context.remove(key);
  }
  position = cursor.valid() ? std::string(cursor.key()) : end;
  return cursor.valid();
}

}  // namespace tabella::engine

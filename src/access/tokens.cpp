#include "access/tokens.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "access/table.h"
#include "base/checksum.h"
#include "base/random.h"
#include "base/text.h"
#include "base/utf8.h"
#include "store/batches.h"
#include "store/rows.h"

namespace tabella::access {
namespace {

using std::chrono::seconds;
using store::Async;

constexpr size_t kIdBytes = 8;
constexpr size_t kSecretBytes = 32;
constexpr size_t kLongestName = 100;
constexpr std::chrono::minutes kBetweenNotes{1};

struct Secret {
  std::string_view id;
  std::string_view random;
};

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return hex_digit(c) >= 0 && c == lower(c); });
}

// Nothing if it is not of the shape that create() makes.
std::optional<Secret> parse_secret(std::string_view secret) {
  if (!secret.starts_with(kTokenPrefix)) return std::nullopt;
  const auto parts = split(secret.substr(kTokenPrefix.size()), '_');
  if (parts.size() != 2 || parts[0].size() != 2 * kIdBytes || parts[1].size() != 2 * kSecretBytes)
    return std::nullopt;
  if (!is_hex(parts[0]) || !is_hex(parts[1])) return std::nullopt;
  return Secret{.id = parts[0], .random = parts[1]};
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && is_valid_utf8(text) &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Checked<> check(std::string_view name, const std::vector<std::string>& scopes,
                std::optional<seconds> lifetime) {
  if (!is_name(name))
    return invalid(fmt::format("a token's name is one line of up to {} bytes of text", kLongestName));
  if (scopes.empty()) return invalid("a token needs a scope, as in mail:read");
  for (const auto& scope : scopes) TABELLA_TRY(check_scope(scope));
  if (lifetime && *lifetime <= seconds{0}) return invalid("a token's time must not be over at once");
  return {};
}

std::optional<TimePoint> time_of(item::ItemView row, std::string_view name) {
  const auto milliseconds = store::number_of(row, name);
  return milliseconds ? std::optional(time_at(milliseconds)) : std::nullopt;
}

// To the millisecond, as it is in the store.
TimePoint shortened(TimePoint time) { return time_at(epoch_milliseconds(time)); }

}  // namespace

Checked<> check_scope(std::string_view scope) {
  if (scope == "*") return {};
  const auto parts = split(scope, ':');
  if (parts.size() == 2 && is_word(parts[0]) && (parts[1] == "*" || is_word(parts[1]))) return {};
  return invalid(fmt::format("'{}' is no scope: expected one as mail:read, mail:* or *", scope));
}

Tokens::Tokens(store::Store& store, const Clock& clock, std::string table)
    : store_(store), clock_(clock), table_(std::move(table)), recent_(clock), any_(clock) {}

Tokens::Row Tokens::to_row(item::ItemView row) {
  Token token{.id = store::text_of(row, "id"),
              .name = store::text_of(row, "name"),
              .scopes = {},
              .created = time_at(store::number_of(row, "created")),
              .expires = time_of(row, "valid_until"),
              .last_used = time_of(row, "last_used")};
  if (const auto scopes = row.find("scopes"); scopes && scopes->type() == item::Type::SS)
    for (const auto scope : item::ordered_contents(*scopes)) token.scopes.emplace_back(scope);
  return {.token = std::move(token), .hash = store::binary_of(row, "hash")};
}

Async<Tokens::Made> Tokens::create(std::string name, std::vector<std::string> scopes,
                                   std::optional<seconds> lifetime) {
  if (auto checked = check(name, scopes, lifetime); !checked) co_return std::unexpected(checked.error());
  std::ranges::sort(scopes);
  scopes.erase(std::ranges::unique(scopes).begin(), scopes.end());
  Token token{.id = to_hex(random_bytes(kIdBytes)),
              .name = std::move(name),
              .scopes = std::move(scopes),
              .created = shortened(clock_.now())};
  if (lifetime) token.expires = token.created + *lifetime;
  const auto random = to_hex(random_bytes(kSecretBytes));
  const auto hash = sha256(random);
  store::Row row;
  row.set("kind", kToken).set("id", token.id).set("name", token.name).set("scopes", token.scopes);
  row.set("created", epoch_milliseconds(token.created)).set("hash", store::Binary{hash});
  if (token.expires) row.set("valid_until", epoch_milliseconds(*token.expires));
  // Itself it may replace: an answer may be lost, and the row sent again.
  auto made = co_await store_.put_item(
      store::Put(table_, row).when(store::absent("id") || store::equals("hash", store::Binary{hash})));
  if (!made) co_return store::error_of(made);
  any_.forget("");
  auto secret = fmt::format("{}{}_{}", kTokenPrefix, token.id, random);
  co_return Made{.token = std::move(token), .secret = std::move(secret)};
}

Async<std::vector<Token>> Tokens::list() {
  auto rows = co_await store::query_all(store_, store::Query(table_).partition("kind", kToken).consistent());
  if (!rows) co_return store::error_of(rows);
  std::vector<Token> tokens;
  tokens.reserve(rows->size());
  for (const auto& row : *rows) tokens.push_back(to_row(row).token);
  std::ranges::sort(tokens, {}, [](const Token& token) { return std::pair(token.created, token.id); });
  co_return tokens;
}

Async<bool> Tokens::revoke(std::string id) {
  auto removed = co_await remove_row(store_, table_, kToken, id);
  recent_.forget(id);
  any_.forget("");
  co_return removed;
}

Async<std::optional<Tokens::Row>> Tokens::read(std::string id) {
  return read_row(store_, clock_, table_, kToken, std::move(id), recent_, to_row);
}

Async<std::optional<Token>> Tokens::find(std::string_view secret) {
  const auto given = parse_secret(secret);
  if (!given) co_return std::nullopt;
  auto row = co_await read(std::string(given->id));
  if (!row) co_return store::error_of(row);
  if (!*row || !equal_in_constant_time((*row)->hash, sha256(given->random))) co_return std::nullopt;
  auto& token = (*row)->token;
  const auto now = clock_.now();
  if (token.expires && *token.expires <= now) co_return std::nullopt;
  if (!token.last_used || now - *token.last_used >= kBetweenNotes) co_await note_use(token);
  co_return std::move(token);
}

// Where several processes note it, the first of a minute does.
boost::asio::awaitable<void> Tokens::note_use(Token token) {
  const auto now = shortened(clock_.now());
  recent_.change(token.id, [&](std::optional<Row>& row) {
    if (row) row->token.last_used = now;
  });
  co_await update_aside(store_,
                        store::Update(table_, key_of(kToken, token.id))
                            .set("last_used", epoch_milliseconds(now))
                            .when(store::exists("id"))
                            .when(store::absent("last_used") ||
                                  store::at_most("last_used", epoch_milliseconds(now - kBetweenNotes))));
}

Async<bool> Tokens::any() {
  if (const auto known = any_.find("")) co_return *known;
  const auto asked = clock_.elapsed();
  auto page = co_await store_.query(
      store::Query(table_).partition("kind", kToken).only({"id"}).consistent().limit(1));
  if (!page) co_return store::error_of(page);
  const bool there = !page->items.empty();
  any_.keep("", there, asked);
  co_return there;
}

}  // namespace tabella::access

#include "outbox/suppressions.h"

#include "base/text.h"
#include "outbox/named_rows.h"
#include "store/batches.h"

namespace tabella::outbox {

using store::Async;

namespace {

constexpr const char* kSuppression = "#suppression";

Suppressed to_suppressed(item::ItemView row) {
  return {.address = store::text_of(row, "part"),
          .reason = store::text_of(row, "reason"),
          .at = time_at(store::number_of(row, "at")),
          .email = store::text_of(row, "email"),
          .diagnostic = store::text_of(row, "diagnostic")};
}

}  // namespace

Async<void> Suppressions::add(Suppressed suppressed) {
  store::Row row;
  row.set("id", kSuppression).set("part", lower(suppressed.address));
  row.set("reason", suppressed.reason).set("at", epoch_milliseconds(clock_.now()));
  if (!suppressed.email.empty()) row.set("email", suppressed.email);
  if (!suppressed.diagnostic.empty()) row.set("diagnostic", suppressed.diagnostic);
  TABELLA_CO_TRY(co_await store_.put_item(store::Put(table_, row)));
  co_return store::Result<>{};
}

Async<bool> Suppressions::remove(std::string address) {
  return remove_named(store_, table_, kSuppression, lower(address));
}

Async<std::optional<Suppressed>> Suppressions::find(std::string address) {
  TABELLA_CO_ASSIGN(const auto row, co_await find_named(store_, table_, kSuppression, lower(address)));
  if (!row) co_return std::nullopt;
  co_return to_suppressed(*row);
}

Async<SuppressedPage> Suppressions::list(size_t limit, std::string from) {
  TABELLA_CO_ASSIGN(auto found, co_await list_named(store_, table_, kSuppression, limit, std::move(from)));
  SuppressedPage page{.addresses = {}, .next = std::move(found.next)};
  for (const auto& row : found.rows) page.addresses.push_back(to_suppressed(row));
  co_return page;
}

Async<std::set<std::string>> Suppressions::among(std::vector<std::string> addresses) {
  std::set<std::string> wanted;
  for (const auto& address : addresses) wanted.insert(lower(address));
  std::vector<item::Item> keys;
  for (const auto& address : wanted) keys.push_back(named_key(kSuppression, address));
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(store_, table_, std::move(keys), {"part"}));
  std::set<std::string> suppressed;
  for (const auto& row : rows) suppressed.insert(store::text_of(row, "part"));
  co_return suppressed;
}

}  // namespace tabella::outbox

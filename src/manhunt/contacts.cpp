#include "manhunt/contacts.h"

#include <algorithm>

#include "base/base64.h"
#include "base/ids.h"
#include "item/attribute_json.h"
#include "store/batches.h"
#include "store/conditional.h"

namespace tabella::manhunt {

using store::Async;

std::string cursor_text(const std::optional<store::Item>& last_key) {
  if (!last_key) return {};
  std::string json;
  item::append_item_json(json, *last_key);
  return to_base64url(json);
}

Checked<std::optional<store::Item>> parse_cursor(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto json = from_base64url(text);
  JsonDocument document;
  const auto parsed = json ? document.parse(*json) : std::nullopt;
  if (parsed)
    if (auto key = item::read_item(*parsed)) return std::optional(std::move(*key));
  return invalid("next: expected what the page before gave");
}

Async<void> Contacts::create(FullContact contact) {
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, to_item(contact.contact)).when(store::absent(kPartition)));
  for (const auto& method : contact.methods) writes.push_back(store::Put(table_, to_item(method)));
  TABELLA_CO_TRY(co_await store_.transact_write_items({.writes = std::move(writes), .token = make_uuid()}));
  co_return store::Result<void>();
}

Async<std::optional<Contact>> Contacts::find(std::string domain, std::string id) {
  store::QueryRequest request =
      store::Query(table_).partition(kPartition, id).where(store::equals(kSort, kContactSort)).consistent();
  TABELLA_CO_ASSIGN(const auto page, co_await store_.query(std::move(request)));
  if (page.items.empty()) co_return std::nullopt;
  auto contact = to_contact(page.items.front());
  if (!contact || contact->domain != domain) co_return std::nullopt;
  co_return contact;
}

Async<std::optional<FullContact>> Contacts::find_full(std::string domain, std::string id) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(store_, store::Query(table_).partition(kPartition, id).consistent()));
  std::optional<FullContact> found;
  std::vector<Method> methods;
  for (const auto& row : rows) {
    if (auto method = to_method(row)) methods.push_back(std::move(*method));
    if (auto contact = to_contact(row); contact && contact->domain == domain)
      found = FullContact{.contact = std::move(*contact)};
  }
  if (!found) co_return std::nullopt;
  std::ranges::sort(methods, {}, [](const Method& method) { return std::pair(method.order, method.id); });
  found->methods = std::move(methods);
  co_return found;
}

Async<ContactPage> Contacts::list(std::string domain, int64_t limit, std::string from) {
  store::QueryRequest request =
      store::Query(table_).index(kFirstIndex).partition(kFirstPartition, domain).limit(limit);
  TABELLA_CO_ASSIGN(request.options.start_key, parse_cursor(from));
  TABELLA_CO_ASSIGN(const auto page, co_await store_.query(std::move(request)));
  ContactPage found{.next = cursor_text(page.last_key)};
  for (const auto& row : page.items)
    if (auto contact = to_contact(row)) found.contacts.push_back(std::move(*contact));
  co_return found;
}

Async<bool> Contacts::update(Contact contact) {
  co_return store::was_made(
      co_await store_.put_item(store::Put(table_, to_item(contact)).when(store::exists(kPartition))));
}

Async<bool> Contacts::remove(std::string domain, std::string id) {
  TABELLA_CO_ASSIGN(const auto found, co_await find_full(std::move(domain), id));
  if (!found) co_return false;
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Delete(table_, contact_key(id)));
  for (const auto& method : found->methods)
    writes.push_back(store::Delete(table_, method_key(id, method.id)));
  TABELLA_CO_TRY(co_await store_.transact_write_items({.writes = std::move(writes), .token = make_uuid()}));
  co_return true;
}

Async<std::optional<Method>> Contacts::find_method(std::string contact, std::string id) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = method_key(contact, id), .consistent = true}));
  co_return found.item ? to_method(*found.item) : std::nullopt;
}

Async<bool> Contacts::change_method(Method method, Method before) {
  co_return store::was_made(co_await store_.update_item(method_update(table_, method, before)));
}

Async<bool> Contacts::add_method(Method method) {
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Check(table_, contact_key(method.contact)).when(store::exists(kPartition)));
  writes.push_back(store::Put(table_, to_item(method)));
  const auto put = co_await store_.transact_write_items({.writes = std::move(writes), .token = make_uuid()});
  if (!put && store::failed_its_conditions(put.error())) co_return false;
  TABELLA_CO_TRY(put);
  co_return true;
}

Async<bool> Contacts::remove_method(std::string contact, std::string id) {
  co_return store::was_made(co_await store_.delete_item(
      store::Delete(table_, method_key(contact, id)).when(store::equals("entityType", "contactMethod"))));
}

}  // namespace tabella::manhunt

// Contacts and their methods.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "manhunt/model.h"
#include "store/store.h"

namespace tabella::manhunt {

struct ContactPage {
  std::vector<Contact> contacts;  // by name
  std::string next;               // empty: these were the last
};

// Thread-safe. A contact of another domain is none.
class Contacts {
 public:
  Contacts(store::Store& store, std::string table) : store_(store), table_(std::move(table)) {}

  store::Async<void> create(FullContact contact);
  store::Async<std::optional<Contact>> find(std::string domain, std::string id);
  store::Async<std::optional<FullContact>> find_full(std::string domain, std::string id);
  store::Async<ContactPage> list(std::string domain, int64_t limit, std::string from);
  store::Async<bool> update(Contact contact);  // false: there is none
  store::Async<bool> remove(std::string domain, std::string id);

  store::Async<std::optional<Method>> find_method(std::string contact, std::string id);
  store::Async<bool> add_method(Method method);
  // A code that is on its way to a destination stays good while that stays.
  // False: it is gone, or is no longer as it was before.
  store::Async<bool> change_method(Method method, Method before);
  store::Async<bool> remove_method(std::string contact, std::string id);

 private:
  store::Store& store_;
  const std::string table_;
};

// A page's end as text, and back; an error if it is none.
std::string cursor_text(const std::optional<store::Item>& last_key);
Checked<std::optional<store::Item>> parse_cursor(std::string_view text);

}  // namespace tabella::manhunt

#include "outbox/configuration_sets.h"

#include "outbox/named_rows.h"
#include "store/conditional.h"

namespace tabella::outbox {

using store::Async;

namespace {

constexpr const char* kConfigurationSet = "#configuration-set";

}  // namespace

Async<bool> ConfigurationSets::create(std::string name) {
  store::Row row;
  row.set("id", kConfigurationSet).set("part", name).set("created", epoch_milliseconds(clock_.now()));
  co_return store::was_made(co_await store_.put_item(store::Put(table_, row).when(store::absent("id"))));
}

Async<bool> ConfigurationSets::exists(std::string name) {
  TABELLA_CO_ASSIGN(const auto row, co_await find_named(store_, table_, kConfigurationSet, std::move(name)));
  co_return row.has_value();
}

Async<bool> ConfigurationSets::remove(std::string name) {
  return remove_named(store_, table_, kConfigurationSet, std::move(name));
}

Async<ConfigurationSetPage> ConfigurationSets::list(size_t limit, std::string from) {
  TABELLA_CO_ASSIGN(auto found,
                    co_await list_named(store_, table_, kConfigurationSet, limit, std::move(from)));
  ConfigurationSetPage page{.names = {}, .next = std::move(found.next)};
  for (const auto& row : found.rows) page.names.push_back(store::text_of(row, "part"));
  co_return page;
}

}  // namespace tabella::outbox

#include "contract/contract.h"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "item/attribute_json.h"

namespace tabella::contract {

item::Item item_of(std::string_view json) {
  item::JsonDocument document;
  return *item::read_item(*document.parse(json));
}

std::string json_of(const item::Item& item) {
  std::string out;
  item::append_item_json(out, item);
  return out;
}

store::IndexDefinition index(std::string name, std::vector<std::string> hash, std::vector<std::string> range,
                             store::ProjectionType projection, std::vector<std::string> include) {
  store::IndexDefinition index{.name = std::move(name), .projection = projection};
  for (auto& h : hash) index.key_schema.push_back({std::move(h), store::KeyRole::hash});
  for (auto& r : range) index.key_schema.push_back({std::move(r), store::KeyRole::range});
  if (projection == store::ProjectionType::include) index.non_key_attributes = std::move(include);
  return index;
}

template <class T>
store::Result<T> StoreContract::run(store::Async<T> call) {
  boost::asio::io_context context;
  std::optional<store::Result<T>> result;
  boost::asio::co_spawn(context, std::move(call), [&](std::exception_ptr failure, store::Result<T> value) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(value);
  });
  context.run();
  return std::move(*result);
}

template store::Result<store::TableDescription> StoreContract::run(store::Async<store::TableDescription>);
template store::Result<store::WriteResult> StoreContract::run(store::Async<store::WriteResult>);
template store::Result<store::GetItemResult> StoreContract::run(store::Async<store::GetItemResult>);
template store::Result<store::Page> StoreContract::run(store::Async<store::Page>);
template store::Result<store::BatchGetItemResult> StoreContract::run(store::Async<store::BatchGetItemResult>);
template store::Result<store::BatchWriteItemResult> StoreContract::run(
    store::Async<store::BatchWriteItemResult>);
template store::Result<store::ListTablesResult> StoreContract::run(store::Async<store::ListTablesResult>);
template store::Result<void> StoreContract::run(store::Async<void>);
template store::Result<std::vector<store::Tag>> StoreContract::run(store::Async<std::vector<store::Tag>>);

void StoreContract::create(const std::string& name, char sort, std::vector<store::IndexDefinition> global,
                           std::vector<store::IndexDefinition> local,
                           std::vector<store::AttributeDefinition> more) {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = name;
  d.billing_mode = store::BillingMode::pay_per_request;
  d.attributes = {{"pk", item::Type::S}};
  d.key_schema = {{"pk", store::KeyRole::hash}};
  if (sort != ' ') {
    d.attributes.push_back({"sk", *item::type_from_name(std::string(1, sort))});
    d.key_schema.push_back({"sk", store::KeyRole::range});
  }
  d.attributes.insert(d.attributes.end(), more.begin(), more.end());
  if (!global.empty()) d.global_indexes = std::move(global);
  if (!local.empty()) d.local_indexes = std::move(local);
  ASSERT_EQ(outcome(run(store().create_table(std::move(request)))), "ok");
  wait_until_active(name);
}

void StoreContract::wait_until_active(const std::string& name) {
  for (int tries = 0; tries < 2000; ++tries) {
    const auto table = run(store().describe_table(name));
    ASSERT_TRUE(table) << table.error().message;
    const bool filled = std::ranges::all_of(table->global_indexes,
                                            [](const auto& i) { return i.status == store::Status::active; });
    if (table->status == store::Status::active && filled) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  FAIL() << name << " did not become active";
}

std::string StoreContract::put(const std::string& table, std::string_view item, store::WriteOptions options) {
  const auto result =
      run(store().put_item({.table = table, .item = item_of(item), .options = std::move(options)}));
  if (!result) return result.error().message;
  return result->attributes ? json_of(*result->attributes) : "ok";
}

std::string StoreContract::get(const std::string& table, std::string_view key) {
  const auto result = run(store().get_item({.table = table, .key = item_of(key), .consistent = true}));
  if (!result) return result.error().message;
  return result->item ? json_of(*result->item) : "none";
}

std::string StoreContract::update(store::UpdateItemRequest request) {
  const auto result = run(store().update_item(std::move(request)));
  if (!result) return result.error().message;
  return result->attributes ? json_of(*result->attributes) : "ok";
}

namespace {

template <class Request, class Call>
std::string all_pages(Request request, Call call) {
  std::string lines;
  while (true) {
    const auto page = call(request);
    if (!page) return page.error().message;
    for (const auto& item : page->items) lines += json_of(item) + "\n";
    if (!page->last_key) return lines;
    request.options.start_key = page->last_key;
  }
}

}  // namespace

std::string StoreContract::query(store::QueryRequest request) {
  return all_pages(std::move(request),
                   [&](store::QueryRequest r) { return run(store().query(std::move(r))); });
}

std::string StoreContract::scan(store::ScanRequest request) {
  return all_pages(std::move(request), [&](store::ScanRequest r) { return run(store().scan(std::move(r))); });
}

}  // namespace tabella::contract

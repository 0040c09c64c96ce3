#include "contract/contract.h"

#include <thread>

#include "base/environment.h"
#include "contract/subjects.h"
#include "item/attribute_json.h"

namespace tabella::contract {

item::Item item_of(std::string_view json) {
  JsonDocument document;
  return *item::read_item(*document.parse(json));
}

std::vector<std::string> parameters_of(std::string_view json) {
  JsonDocument document;
  std::vector<std::string> values;
  for (JsonElements e(*document.parse(json)); e.next();)
    item::read_value(values.emplace_back(), e.value()).value();
  return values;
}

namespace {

item::Value in_order(const item::Value& value) {
  if (item::is_set(value.type())) {
    auto contents = value.contents();
    std::ranges::sort(contents);
    return item::Value::set(value.type(), std::move(contents));
  }
  if (value.type() == item::Type::L) {
    std::vector<item::Value> elements;
    for (const auto& element : value.elements()) elements.push_back(in_order(element));
    return item::Value::list(std::move(elements));
  }
  if (value.type() != item::Type::M) return value;
  std::map<std::string, item::Value> members;
  for (size_t i = 0; i < value.contents().size(); ++i)
    members.emplace(value.contents()[i], in_order(value.elements()[i]));
  auto map = item::Value::map();
  for (auto& [name, member] : members) map.set_member(name, std::move(member));
  return map;
}

}  // namespace

std::string json_of(const item::Item& item) {
  std::string out;
  item::append_item_json(out, item::encode_item(in_order(item::decode_item(item))));
  return out;
}

std::vector<Implementation> implementations() {
  std::vector<Implementation> all = {{"engine", make_engine},
                                     {"remote_to_tabella", make_remote_to_tabella},
                                     {"remote_to_dynamodb_local", make_remote_to_dynamodb_local}};
  const auto wanted = environment_variable("CONTRACT_ON");
  std::erase_if(all, [&](const auto& i) { return i.name != (wanted.empty() ? "engine" : wanted); });
  if (all.empty()) throw std::runtime_error("CONTRACT_ON: there is no " + wanted);
  return all;
}

store::IndexDefinition index(std::string name, std::vector<std::string> hash, std::vector<std::string> range,
                             store::ProjectionType projection, std::vector<std::string> include) {
  store::IndexDefinition index{.name = std::move(name), .projection = projection};
  for (auto& h : hash) index.key_schema.push_back({std::move(h), store::KeyRole::hash});
  for (auto& r : range) index.key_schema.push_back({std::move(r), store::KeyRole::range});
  if (projection == store::ProjectionType::include) index.non_key_attributes = std::move(include);
  return index;
}

void StoreContract::SetUp() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  if (!is_dynamodb_local()) return;
  const auto reason = difference_of_dynamodb_local(test->test_suite_name(), test->name(), subject_->is_old());
  if (!reason.empty()) GTEST_SKIP() << reason;
}

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

std::string StoreContract::create_with_stream(const std::string& name, store::StreamView view) {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = name;
  d.billing_mode = store::BillingMode::pay_per_request;
  d.attributes = {{"pk", item::Type::S}, {"sk", item::Type::S}};
  d.key_schema = {{"pk", store::KeyRole::hash}, {"sk", store::KeyRole::range}};
  d.stream = view;
  const auto created = run(store().create_table(std::move(request)));
  wait_until_active(name);
  return created ? created->stream_arn.value_or("") : created.error().message;
}

std::vector<store::StreamRecord> StoreContract::records(const std::string& arn) {
  std::vector<store::StreamRecord> all;
  const auto stream = run(store().describe_stream({.arn = arn}));
  if (!stream) return all;
  for (const auto& shard : stream->shards) {
    auto iterator = run(store().get_shard_iterator({.arn = arn, .shard = shard.id}));
    for (std::optional<std::string> next = *iterator; next;) {
      auto page = run(store().get_records({.iterator = *next}));
      EXPECT_TRUE(page) << page.error().message;
      if (!page || page->records.empty()) break;
      std::ranges::move(page->records, std::back_inserter(all));
      next = page->next;
    }
  }
  return all;
}

std::string StoreContract::execute(const std::string& statement, const char* parameters,
                                   std::optional<int64_t> limit) {
  store::ExecuteStatementRequest request{.statement = {.text = statement}, .limit = limit};
  if (parameters) request.statement.parameters = parameters_of(parameters);
  std::string lines;
  while (true) {
    const auto page = run(store().execute_statement(request));
    if (!page) return page.error().message;
    for (const auto& item : page->items) lines += json_of(item) + "\n";
    if (!page->next_token) return lines;
    request.next_token = page->next_token;
  }
}

bool StoreContract::eventually(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 2000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace tabella::contract

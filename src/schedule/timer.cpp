#include "schedule/timer.h"

#include <functional>

#include <fmt/format.h>

#include "store/rows.h"

namespace tabella::schedule {
namespace {

using item::Value;
using store::number_of;
using store::text_of;

// The same on every machine and in every version.
int shard_of(std::string_view id) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return static_cast<int>(hash % kShards);
}

}  // namespace

std::string shard_name(int shard) { return fmt::format("{:02}", shard); }

store::TablePlan plan(const std::string& table) {
  store::TableDefinition definition{.name = table};
  definition.billing_mode = store::BillingMode::pay_per_request;
  definition.attributes = {{"id", item::Type::S}, {"shard", item::Type::S}, {"due", item::Type::N}};
  definition.key_schema = {{"id", store::KeyRole::hash}};
  store::IndexDefinition index{.name = kIndex};
  index.key_schema = {{"shard", store::KeyRole::hash}, {"due", store::KeyRole::range}};
  index.projection = store::ProjectionType::include;
  index.non_key_attributes = {{"kind", "owner"}};
  definition.global_indexes = {{index}};
  return {.definition = std::move(definition), .time_to_live = "expires"};
}

item::Item key_of(const std::string& id) {
  auto key = Value::map();
  key.set_member("id", Value::string(id));
  return item::encode_item(key);
}

item::Item to_item(const Timer& timer, const std::string& nonce) {
  auto row = Value::map();
  row.set_member("id", Value::string(timer.id));
  row.set_member("kind", Value::string(timer.kind));
  row.set_member("shard", Value::string(shard_name(shard_of(timer.id))));
  row.set_member("at", Value::integer(epoch_milliseconds(timer.at)));
  row.set_member("due", Value::integer(epoch_milliseconds(timer.at)));
  if (!timer.payload.empty()) row.set_member("payload", Value::string(timer.payload));
  row.set_member("attempt", Value::integer(0));
  row.set_member("nonce", Value::string(nonce));
  return item::encode_item(row);
}

DueRow to_due_row(item::ItemView row) {
  return {.id = text_of(row, "id"),
          .kind = text_of(row, "kind"),
          .due = number_of(row, "due"),
          .owner = owner_of(row)};
}

ClaimedRow to_claimed_row(item::ItemView row) {
  return {.timer = {.id = text_of(row, "id"),
                    .kind = text_of(row, "kind"),
                    .at = time_at(number_of(row, "at")),
                    .payload = text_of(row, "payload")},
          .attempt = static_cast<int>(number_of(row, "attempt"))};
}

std::string owner_of(item::ItemView row) { return text_of(row, "owner"); }
std::string nonce_of(item::ItemView row) { return text_of(row, "nonce"); }
std::string end_of(item::ItemView row) { return text_of(row, "end"); }
bool is_done(item::ItemView row) { return !row.find("due"); }

}  // namespace tabella::schedule

#include "schedule/timer.h"

#include <fmt/format.h>

#include "store/rows.h"

namespace tabella::schedule {
namespace {

using store::number_of;
using store::text_of;

}  // namespace

// The same on every machine and in every version.
int shard_of(std::string_view id) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return static_cast<int>(hash % kShards);
}

std::string shard_name(int shard) { return fmt::format("{:02}", shard); }

store::TablePlan plan(const std::string& table) {
  auto plan = store::plan_table(table, {{"id", item::Type::S}}, "expires");
  plan.definition.attributes.push_back({"shard", item::Type::S});
  plan.definition.attributes.push_back({"due", item::Type::N});
  store::IndexDefinition index{.name = kIndex};
  index.key_schema = {{"shard", store::KeyRole::hash}, {"due", store::KeyRole::range}};
  index.projection = store::ProjectionType::include;
  index.non_key_attributes = {{"kind", "owner"}};
  plan.definition.global_indexes = {{index}};
  return plan;
}

item::Item key_of(const std::string& id) { return store::Row().set("id", id); }

item::Item to_item(const Timer& timer, const std::string& nonce) {
  auto row = store::Row()
                 .set("id", timer.id)
                 .set("kind", timer.kind)
                 .set("shard", shard_name(shard_of(timer.id)))
                 .set("at", epoch_milliseconds(timer.at))
                 .set("due", epoch_milliseconds(timer.at));
  if (!timer.payload.empty()) row.set("payload", timer.payload);
  return row.set("attempt", 0).set("nonce", nonce);
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
          .attempt = static_cast<int>(number_of(row, "attempt")),
          .nonce = nonce_of(row)};
}

std::string owner_of(item::ItemView row) { return text_of(row, "owner"); }
std::string nonce_of(item::ItemView row) { return text_of(row, "nonce"); }
std::string end_of(item::ItemView row) { return text_of(row, "end"); }
bool is_done(item::ItemView row) { return !row.find("due"); }

}  // namespace tabella::schedule

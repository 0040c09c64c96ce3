#include "journal/heads.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "journal/head_attributes.h"
#include "journal/row_numbers.h"
#include "store/batches.h"
#include "store/time_slice.h"

namespace tabella::journal {

using store::Async;

namespace {

constexpr std::string_view kHeadPart = "head";
constexpr std::string_view kWorkId = "#work";
constexpr std::string_view kJournalsId = "#journals";
const std::string kStagePart = "stage#";
const std::string kPurgePart = "purge#";
// How many rows one page of a list looks at, at least: a journal may be a small part of what is there.
constexpr int64_t kRowsPerScan = 1000;
constexpr int kScansPerPage = 10;

item::Item head_row_key(std::string_view id, std::string_view part) {
  return store::Row().set(head_attributes::kId, id).set(head_attributes::kPart, part);
}

// Names of journals have no '#'; pids may.
std::string head_id(const Entity& entity) { return fmt::format("{}#{}", entity.journal, entity.pid); }

std::optional<Entity> entity_of_head_id(std::string_view id) {
  const auto end = id.find('#');
  if (end == 0 || end == std::string_view::npos || end + 1 == id.size()) return std::nullopt;
  return Entity{.journal = std::string(id.substr(0, end)), .pid = std::string(id.substr(end + 1))};
}

std::optional<Head::Staging> staging_of(item::ItemView row) {
  namespace names = head_attributes;
  auto owner = store::text_of(row, names::kStagedId);
  if (owner.empty()) return std::nullopt;
  return Head::Staging{.owner = std::move(owner),
                       .append_id = store::text_of(row, names::kStagedRows),
                       .first = count_in(row, names::kStagedFirst).value_or(0),
                       .last = count_in(row, names::kStagedLast).value_or(0),
                       .epoch = count_in(row, names::kStagedEpoch).value_or(0),
                       .beat = store::text_of(row, names::kStagedBeat)};
}

std::string batch_part(std::string_view batch_id) { return fmt::format("batch#{}", batch_id); }

// Where a list goes on: behind a row's key.
std::string list_token(item::ItemView key) {
  std::string bytes;
  put_sized(bytes, store::text_of(key, head_attributes::kId));
  bytes.append(store::text_of(key, head_attributes::kPart));
  return to_base64(bytes);
}

store::Result<item::Item> key_of_token(std::string_view token) {
  const auto bytes = from_base64(token);
  std::string_view part = bytes ? std::string_view(*bytes) : std::string_view();
  const auto id = take_sized(part);
  if (id.empty() || part.empty() || !is_valid_utf8(id) || !is_valid_utf8(part))
    return store::refuse(
        "this token is none that a list of entities gave as its next: begin without one, and pass on what "
        "each page has as its next, as it is");
  return head_row_key(id, part);
}

}  // namespace

store::TablePlan Heads::plan(const std::string& table) {
  namespace names = head_attributes;
  auto plan = store::plan_table(
      table, {{std::string(names::kId), item::Type::S}, {std::string(names::kPart), item::Type::S}},
      std::string(names::kExpires));
  plan.definition.stream = store::StreamView::new_and_old_images;
  return plan;
}

item::Item Heads::key_of(const Entity& entity) { return head_row_key(head_id(entity), kHeadPart); }

item::Item Heads::batch_key(const Entity& entity, std::string_view batch_id) {
  return head_row_key(head_id(entity), batch_part(batch_id));
}

item::Item Heads::batch_row(const Entity& entity, std::string_view batch_id, const Batch& batch,
                            TimePoint expires) {
  namespace names = head_attributes;
  return store::Row()
      .set(names::kId, head_id(entity))
      .set(names::kPart, batch_part(batch_id))
      .set(names::kFirst, batch.first)
      .set(names::kLast, batch.last)
      .set(names::kExpires, epoch_milliseconds(expires) / 1000);
}

item::Item Heads::work_key(const Entity& entity, Work work) {
  return head_row_key(kWorkId, (work == Work::stage ? kStagePart : kPurgePart) + head_id(entity));
}

Head Heads::head_of(item::ItemView row) {
  namespace names = head_attributes;
  const auto count = [row](std::string_view name) { return count_in(row, name).value_or(0); };
  const auto expires = integer_in(row, names::kExpiresAt);
  return {.highest = count(names::kHighest),
          .deleted_to = count(names::kDeletedTo),
          .purge_to = count(names::kPurgeTo),
          .purged_to = count(names::kPurgedTo),
          .epoch = count(names::kEpoch),
          .expiring_to = count(names::kExpiringTo),
          .expires = expires ? std::optional(time_at(*expires)) : std::nullopt,
          .time = time_at(store::number_of(row, names::kTime)),
          .tagged = store::flag_of(row, names::kTagged),
          .staging = staging_of(row)};
}

std::optional<Entity> Heads::entity_of(item::ItemView row) {
  if (store::text_of(row, head_attributes::kPart) != kHeadPart) return std::nullopt;
  return entity_of_head_id(store::text_of(row, head_attributes::kId));
}

Async<std::optional<Head>> Heads::find(Entity entity) const {
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store_.get_item({.table = table_, .key = key_of(entity), .consistent = true}));
  co_return found.item ? std::optional(head_of(*found.item)) : std::nullopt;
}

Async<std::optional<Batch>> Heads::find_batch(Entity entity, std::string batch_id) const {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = batch_key(entity, batch_id), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return Batch{.first = count_in(*found.item, head_attributes::kFirst).value_or(0),
                  .last = count_in(*found.item, head_attributes::kLast).value_or(0)};
}

// A page ends at its last entity if it is full, and else behind the last row that was looked at: it may be
// short, or empty, although more is to come.
std::string Heads::next_after(const Entity& entity) { return list_token(key_of(entity)); }

Async<Heads::Page> Heads::list(std::string journal, size_t limit, std::string from) const {
  store::ScanRequest scan = store::Scan(table_)
                                .limit(kRowsPerScan)
                                .filter(store::begins_with(head_attributes::kId, journal + "#") &&
                                        store::equals(head_attributes::kPart, kHeadPart))
                                .consistent();
  if (!from.empty()) {
    TABELLA_CO_ASSIGN(scan.options.start_key, key_of_token(from));
  }
  Page page;
  store::TimeSlice slice;
  for (int scans = 0; scans < kScansPerPage; ++scans) {
    TABELLA_CO_ASSIGN(auto found, co_await store_.scan(scan));
    for (const auto& row : found.items) {
      auto entity = entity_of(row);
      if (!entity) continue;
      if (page.entities.size() == std::max<size_t>(limit, 1)) {
        page.next = next_after(page.entities.back().entity);
        co_return page;
      }
      page.entities.push_back({.entity = std::move(*entity), .head = head_of(row)});
    }
    if (!found.last_key) {
      page.next.clear();
      co_return page;
    }
    page.next = list_token(*found.last_key);
    scan.options.start_key = std::move(found.last_key);
    co_await slice.yield_if_over();
  }
  co_return page;
}

Async<std::vector<std::string>> Heads::journals() const {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          store_, store::Query(table_).partition(head_attributes::kId, kJournalsId).consistent()));
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(store::text_of(row, head_attributes::kPart));
  co_return names;
}

Async<void> Heads::add_journal(std::string journal) const {
  TABELLA_CO_TRY(co_await store_.put_item(store::Put(table_, head_row_key(kJournalsId, journal))));
  co_return store::Result<void>();
}

Async<std::vector<Entity>> Heads::unfinished_work() const {
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::query_all(
                        store_, store::Query(table_).partition(head_attributes::kId, kWorkId).consistent()));
  std::vector<Entity> entities;
  std::set<std::string> ids;
  for (const auto& row : rows) {
    auto id = store::text_of(row, head_attributes::kPart);
    id.erase(0, kStagePart.size());
    auto entity = entity_of_head_id(id);
    if (entity && ids.insert(std::move(id)).second) entities.push_back(std::move(*entity));
  }
  co_return entities;
}

store::Condition highest_is(uint64_t number) {
  auto condition = store::equals(head_attributes::kHighest, number);
  return number > 0 ? condition : store::absent(head_attributes::kHighest) || std::move(condition);
}

}  // namespace tabella::journal

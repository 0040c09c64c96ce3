#include "journal/adoption.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "store/batches.h"

namespace tabella::journal {

using boost::asio::awaitable;
using store::Async;

namespace {

// Rows that are being staged belong to an append of ours, which moves the head itself or removes them.
bool is_staged(const Head& head, uint64_t number) {
  return head.staging && head.staging->first <= number && number <= head.staging->last;
}

}  // namespace

void Adoption::appended(const Entity& entity, uint64_t highest) {
  const std::lock_guard lock(mutex_);
  appended_.note(entity, highest);
}

uint64_t Adoption::known(const Entity& entity) {
  const std::lock_guard lock(mutex_);
  return appended_.of(entity);
}

Adoption::Numbers Adoption::not_appended_here(std::vector<Located> rows) {
  Numbers numbers;
  const std::lock_guard lock(mutex_);
  for (auto& [entity, number] : rows) {
    if (number <= appended_.of(entity)) continue;
    // Somebody else's rows need not be what we would write.
    if (!problem_with_journal(entity.journal).empty() || !problem_with_pid(entity.pid).empty()) continue;
    auto& highest = numbers[{std::move(entity.journal), std::move(entity.pid)}];
    highest = std::max(highest, number);
  }
  return numbers;
}

Async<std::vector<Entity>> Adoption::behind_their_heads(Numbers numbers) {
  std::vector<item::Item> keys;
  for (const auto& [entity, number] : numbers)
    keys.push_back(Heads::key_of({.journal = entity.first, .pid = entity.second}));
  TABELLA_CO_ASSIGN(const auto rows,
                    co_await store::get_all(store_, journal_.heads().table(), std::move(keys)));
  for (const auto& row : rows) {
    const auto entity = Heads::entity_of(row);
    if (!entity) continue;
    const auto head = Heads::head_of(row);
    appended(*entity, head.highest);
    const auto at = numbers.find({entity->journal, entity->pid});
    if (at != numbers.end() && (at->second <= head.highest || is_staged(head, at->second))) numbers.erase(at);
  }
  std::vector<Entity> entities;
  for (const auto& [entity, number] : numbers)
    entities.push_back({.journal = entity.first, .pid = entity.second});
  co_return entities;
}

awaitable<void> Adoption::handle(const std::string&, std::span<const store::StreamRecord> records) {
  std::vector<Located> rows;
  for (const auto& record : records)
    if (record.event == store::StreamEvent::insert)
      if (auto located = journal_.layout().locate(record.keys)) rows.push_back(std::move(*located));
  const auto adopted = co_await adopt(std::move(rows));
  if (!adopted)
    throw std::runtime_error(
        fmt::format("events of other programs are not adopted: {}", adopted.error().message));
}

Async<void> Adoption::adopt(std::vector<Located> rows) {
  auto numbers = not_appended_here(std::move(rows));
  if (numbers.empty()) co_return store::Result<void>();
  TABELLA_CO_ASSIGN(const auto entities, co_await behind_their_heads(std::move(numbers)));
  for (const auto& entity : entities) {
    TABELLA_CO_ASSIGN(const auto head, co_await journal_.adopt(entity));
    // A row that is no event of another program's moves nothing.
    if (!head || head->highest <= known(entity)) continue;
    appended(entity, head->highest);
    ++count_;
    if (adopted_) adopted_(entity, head->highest);
  }
  co_return store::Result<void>();
}

}  // namespace tabella::journal

#include "journal/journal_fixture.h"

#include <algorithm>

#include "journal/event_attributes.h"

namespace tabella::journal {

std::string outcome_of(const store::Result<AppendOutcome>& outcome) {
  if (!outcome) return outcome.error().message;
  if (const auto* appended = std::get_if<Appended>(&*outcome))
    return fmt::format("{}-{}{}", appended->first, appended->last, appended->repeated ? " again" : "");
  const auto& conflict = std::get<Conflict>(*outcome);
  switch (conflict.kind) {
    case Conflict::Kind::version: return fmt::format("version {}", conflict.actual);
    case Conflict::Kind::epoch: return fmt::format("epoch {}", conflict.actual);
    case Conflict::Kind::batch: return fmt::format("batch {}", conflict.actual);
  }
  return {};
}

std::vector<NewEvent> events(size_t count, size_t first) {
  std::vector<NewEvent> made;
  made.reserve(count);
  for (size_t i = 0; i < count; ++i) made.push_back({.payload = std::to_string(first + i)});
  return made;
}

std::vector<std::string> numbers(uint64_t from, uint64_t to) {
  std::vector<std::string> texts;
  for (auto number = from; from <= to ? number <= to : number >= to; from <= to ? ++number : --number)
    texts.push_back(std::to_string(number));
  return texts;
}

JournalContract::JournalContract()
    : subject_(std::get<0>(GetParam()).make()),
      clock_(subject_->clock().now()),
      layout_(layout_of(kind(), kEventsTable)) {
  process_ = process();
  const auto prepared = run(
      store::prepare_tables(store(), {layout_->plan(), Heads::plan(kHeadsTable)}, store::Missing::create));
  if (!prepared) throw std::runtime_error(prepared.error().message);
}

Journal::Options JournalContract::options() const { return {.heads_table = kHeadsTable}; }

std::unique_ptr<JournalContract::Process> JournalContract::process(Journal::Options options) {
  return std::make_unique<Process>(store(), clock_, *layout_, std::move(options));
}

std::string JournalContract::append(size_t count, Expected expected) {
  const auto first = extent().highest + 1;
  return append({.entity = kCart, .events = events(count, first), .expected = expected});
}

std::vector<std::string> JournalContract::read_from(const Journal& journal, Range range,
                                                    const Entity& entity) {
  auto replay = journal.replay(entity, range);
  std::vector<std::string> payloads;
  while (true) {
    const auto some = run(replay.next());
    if (!some) {
      payloads.push_back(some.error().message);
      return payloads;
    }
    if (some->empty()) return payloads;
    for (const auto& event : *some) payloads.emplace_back(event.payload());
  }
}

bool JournalContract::has_row(uint64_t number) {
  return get(kEventsTable, layout_->key_of(kCart, number)).has_value();
}

size_t JournalContract::count_rows(const std::string& table) {
  store::ScanRequest request = store::Scan(table).consistent();
  size_t count = 0;
  while (true) {
    const auto page = run(store().scan(request));
    if (!page) throw std::runtime_error(page.error().message);
    count += page->items.size();
    if (!page->last_key) return count;
    request.options.start_key = page->last_key;
  }
}

void JournalContract::remove_row(uint64_t number) {
  const auto removed = run(store().delete_item(store::Delete(kEventsTable, layout_->key_of(kCart, number))));
  if (!removed) throw std::runtime_error(removed.error().message);
}

void JournalContract::put(const std::string& table, item::Item row) {
  const auto written = run(store().put_item(store::Put(table, std::move(row))));
  if (!written) throw std::runtime_error(written.error().message);
}

std::optional<item::Item> JournalContract::get(const std::string& table, item::Item key) {
  auto found = run(store().get_item({.table = table, .key = std::move(key), .consistent = true}));
  if (!found) throw std::runtime_error(found.error().message);
  return std::move(found->item);
}

void JournalContract::put_foreign(uint64_t number, std::optional<Event::BatchPlace> place) {
  for (auto& row : foreign_rows(kind(), kCart, number, place)) put(kEventsTable, std::move(row));
}

void JournalContract::put_foreign_batch(uint64_t first, uint64_t count,
                                        const std::vector<uint64_t>& missing) {
  for (uint64_t i = 0; i < count; ++i)
    if (std::ranges::find(missing, first + i) == missing.end())
      put_foreign(first + i, Event::BatchPlace{.index = i, .last = count - 1});
}

void JournalContract::put_foreign_low(uint64_t lowest) {
  for (auto& row : foreign_low_rows(kind(), kCart, lowest)) put(kEventsTable, std::move(row));
}

}  // namespace tabella::journal

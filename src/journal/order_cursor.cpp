#include "journal/order_cursor.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "store/rows.h"

namespace tabella::journal {
namespace {

// Nothing: no part of it is between them.
std::optional<Run> part_between(Run run, uint64_t first, uint64_t last) {
  if (run.last_position() < first || run.position > last) return std::nullopt;
  if (run.position < first) {
    const auto before = first - run.position;
    run.position += before;
    run.number += before;
    run.count -= before;
  }
  run.count -= run.last_position() - std::min(run.last_position(), last);
  return run;
}

}  // namespace

std::unexpected<store::Error> OrderCursor::missing() const {
  return store::fail(
      store::ErrorCode::internal,
      fmt::format("position {} of the journal {} is missing from its order", at_, options_.journal));
}

// The first row forward is the one that the position is in, wherever that begins.
store::QueryRequest OrderCursor::request(size_t rows) const {
  const bool up = is_forward() && begun_;
  auto query = store::Query(options_.table)
                   .partition(kOrderPartition, is_dense() ? all_partition(options_.journal, at_)
                                                          : tag_partition(options_.journal, options_.tag))
                   .where(up ? store::at_least(kOrderNumber, at_) : store::at_most(kOrderNumber, at_))
                   .limit(is_forward() && !begun_ ? 1 : static_cast<int64_t>(rows))
                   .consistent();
  if (!up) query.descending();
  return std::move(query);
}

// Of all, each row begins where the one before has ended.
store::Result<void> OrderCursor::take(std::vector<Run> row, std::vector<Run>& runs) {
  const auto first = row.front().position;
  const auto last = row.back().last_position();
  if (is_dense() && (at_ < first || at_ > last || (is_forward() && begun_ && at_ != first))) return missing();
  if (is_dense() && !is_forward() && begun_ && at_ != last) return missing();
  if (!is_forward()) std::ranges::reverse(row);
  for (auto& run : row)
    if (auto part = part_between(std::move(run), options_.first, options_.last))
      runs.push_back(std::move(*part));
  // A row of a tag may end before the position that it was looked for with.
  at_ = is_forward() ? std::max(at_, last + 1) : first - 1;
  begun_ = true;
  at_end_ = is_forward() ? at_ > options_.last : at_ < options_.first;
  return {};
}

store::Async<std::vector<Run>> OrderCursor::next(size_t rows) {
  std::vector<Run> runs;
  if (at_end_) co_return runs;
  TABELLA_CO_ASSIGN(auto page, co_await store_.query(request(std::clamp<size_t>(rows, 1, 1000))));
  if (page.items.empty() && is_dense()) co_return missing();
  // A tag may have no row before the position, and some behind it.
  if (page.items.empty()) at_end_ = !is_forward() || begun_;
  begun_ = begun_ || page.items.empty();
  for (const auto& item : page.items) {
    TABELLA_CO_ASSIGN(auto row, runs_of(item, is_dense() ? Positions::dense : Positions::sparse));
    TABELLA_CO_TRY(take(std::move(row), runs));
    if (at_end_) break;
  }
  co_return runs;
}

}  // namespace tabella::journal

#include "store/batches.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "store/pause.h"
#include "store/rows.h"
#include "store/time_slice.h"

namespace tabella::store {
namespace {

constexpr size_t kMostWrites = 25;
constexpr size_t kMostBytes = 12u << 20;  // DynamoDB takes 16 MB, in its own count
constexpr size_t kMostGets = 100;
constexpr int kMostTries = 20;

// Longer each time, for a store that is busy.
boost::asio::awaitable<void> back_off(int tries) {
  if (tries > 0) co_await pause_for(std::chrono::milliseconds(5) * (1 << std::min(tries, 10)));
}

Error still_busy() { return {ErrorCode::throttled, "the store did not get to all items of a batch"}; }

}  // namespace

Async<void> write_all(Store& store, std::string table, std::vector<BatchWrite> writes) {
  std::deque<BatchWrite> left(std::make_move_iterator(writes.begin()), std::make_move_iterator(writes.end()));
  TimeSlice slice;
  for (int tries = 0; !left.empty();) {
    std::vector<BatchWrite> batch;
    for (size_t bytes = 0; !left.empty() && batch.size() < kMostWrites;) {
      bytes += left.front().item.bytes().size();
      if (!batch.empty() && bytes > kMostBytes) break;
      batch.push_back(std::move(left.front()));
      left.pop_front();
    }
    const size_t tried = batch.size();
    BatchWriteItemRequest request;
    request.tables.emplace_back(table, std::move(batch));
    TABELLA_CO_ASSIGN(auto result, co_await store.batch_write_item(std::move(request)));
    size_t again = 0;
    for (auto& [name, unwritten] : result.unprocessed)
      for (auto& write : unwritten) {
        left.push_front(std::move(write));
        ++again;
      }
    // A store that gets on, if slowly, is not given up.
    tries = again < tried ? (again > 0 ? 1 : 0) : tries + 1;
    if (tries > kMostTries) co_return std::unexpected(still_busy());
    co_await back_off(tries);
    co_await slice.yield_if_over();
  }
  co_return Result<void>();
}

Async<std::vector<Item>> get_all(Store& store, std::string table, std::vector<Item> keys,
                                 std::vector<std::string> only) {
  std::vector<Item> items;
  std::deque<Item> left(std::make_move_iterator(keys.begin()), std::make_move_iterator(keys.end()));
  TimeSlice slice;
  for (int tries = 0; !left.empty();) {
    BatchGetTable part{.table = table, .consistent = true};
    if (!only.empty()) {
      References references;
      part.projection = references.list(only);
      part.attributes = std::move(references).attributes();
    }
    while (!left.empty() && part.keys.size() < kMostGets) {
      part.keys.push_back(std::move(left.front()));
      left.pop_front();
    }
    const size_t tried = part.keys.size();
    BatchGetItemRequest request;
    request.tables.push_back(std::move(part));
    TABELLA_CO_ASSIGN(auto result, co_await store.batch_get_item(std::move(request)));
    for (auto& [name, found] : result.responses)
      items.insert(items.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    size_t again = 0;
    for (auto& unread : result.unprocessed)
      for (auto& key : unread.keys) {
        left.push_front(std::move(key));
        ++again;
      }
    // A batch that was merely too large for one answer is no sign of a busy store.
    tries = again < tried ? 0 : tries + 1;
    if (tries > kMostTries) co_return std::unexpected(still_busy());
    co_await back_off(tries);
    co_await slice.yield_if_over();
  }
  co_return items;
}

Async<std::vector<Item>> query_all(Store& store, QueryRequest request) {
  std::vector<Item> items;
  TimeSlice slice;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store.query(request));
    items.insert(items.end(), std::make_move_iterator(page.items.begin()),
                 std::make_move_iterator(page.items.end()));
    if (!page.last_key) co_return items;
    request.options.start_key = std::move(page.last_key);
    co_await slice.yield_if_over();
  }
}

}  // namespace tabella::store

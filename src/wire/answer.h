// The way of every operation: its request is read, the Store is called, its result is written.
#pragma once

#include <string>
#include <utility>

#include "store/store.h"
#include "wire/operations.h"

namespace tabella::wire {

// What a result's items take, where it has any: to write much takes long.
template <class Answer>
size_t weight(const Answer& result) {
  const auto of_items = [](const auto& items) {
    size_t bytes = 0;
    for (const auto& item : items) bytes += item.bytes().size();
    return bytes;
  };
  if constexpr (requires { result.items; }) {
    return of_items(result.items);
  } else if constexpr (std::is_same_v<Answer, store::BatchGetItemResult>) {
    size_t bytes = 0;
    for (const auto& [table, items] : result.responses) bytes += of_items(items);
    return bytes;
  } else if constexpr (std::is_same_v<Answer, store::TransactGetItemsResult> ||
                       std::is_same_v<Answer, store::ExecuteTransactionResult>) {
    size_t bytes = 0;
    for (const auto& item : result.responses) bytes += item ? item->bytes().size() : 0;
    return bytes;
  } else if constexpr (std::is_same_v<Answer, store::GetRecordsResult>) {
    size_t bytes = 0;
    for (const auto& record : result.records)
      bytes += (record.new_image ? record.new_image->bytes().size() : 0) +
               (record.old_image ? record.old_image->bytes().size() : 0);
    return bytes;
  }
  return 0;
}

inline constexpr size_t kHeavyResult = 128u << 10;

// `append` writes the result's JSON to the end of its first argument. The request has been read already: its
// JSON is not there any more when this first waits.
template <class Request, class Answer, class Append>
boost::asio::awaitable<Result<>> answer(Result<Request> request, OperationContext context,
                                        store::Async<Answer> (store::Store::*call)(Request), std::string& out,
                                        Append append) {
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await (context.store.*call)(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  const size_t heavy = weight(*result);
  if (heavy < kHeavyResult) {
    append(out, *result);
    co_return Result<>{};
  }
  // The result, and the answer that is made of it.
  if (context.memory && !context.memory->resize(context.memory->size() + 3 * heavy))
    co_return std::unexpected(
        to_wire({store::ErrorCode::unavailable, "Too many large answers are under way; try again"}));
  co_await context.long_work.run([&] {
    append(out, *result);
    return true;
  });
  co_return Result<>{};
}

// For operations whose answer has no body.
template <class Request>
boost::asio::awaitable<Result<>> answer(Result<Request> request, OperationContext context,
                                        store::Async<void> (store::Store::*call)(Request)) {
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await (context.store.*call)(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  co_return Result<>{};
}

}  // namespace tabella::wire

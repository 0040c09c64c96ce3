// The way of every operation: its request is read, the Store is called, its result is written.
#pragma once

#include <string>
#include <utility>

#include "store/store.h"
#include "wire/operations.h"

namespace tabella::wire {

// `append` writes the result's JSON to the end of its first argument. The request has been read already: its
// JSON is not there any more when this first waits.
template <class Request, class Result, class Append>
boost::asio::awaitable<Wire<>> answer(Wire<Request> request, OperationContext context,
                                      store::Async<Result> (store::Store::*call)(Request), std::string& out,
                                      Append append) {
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await (context.store.*call)(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  append(out, *result);
  co_return Wire<>{};
}

// For operations whose answer has no body.
template <class Request>
boost::asio::awaitable<Wire<>> answer(Wire<Request> request, OperationContext context,
                                      store::Async<void> (store::Store::*call)(Request)) {
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await (context.store.*call)(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  co_return Wire<>{};
}

}  // namespace tabella::wire

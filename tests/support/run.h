// Runs a call of a Store to its end on this thread.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "store/store.h"

namespace tabella::test {

template <class T>
store::Result<T> run(store::Async<T> call) {
  boost::asio::io_context context;
  std::optional<store::Result<T>> result;
  boost::asio::co_spawn(context, std::move(call), [&](std::exception_ptr failure, store::Result<T> value) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(value);
  });
  context.run();
  return std::move(*result);
}

}  // namespace tabella::test

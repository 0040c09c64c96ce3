#include "access/table.h"

#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/log.h"
#include "store/rows.h"

namespace tabella::access {

namespace asio = boost::asio;
using store::Async;
using store::ErrorCode;

namespace {

asio::awaitable<void> update(store::Store& store, store::UpdateItemRequest request) {
  const auto table = request.table;
  const auto changed = co_await store.update_item(std::move(request));
  // The condition fails where somebody else has noted it, or the row is gone.
  if (!changed && changed.error().code != ErrorCode::conditional_check_failed)
    log::warning("a use could not be noted in {}: {}", table, changed.error().message);
}

}  // namespace

store::TablePlan plan(const std::string& table) {
  return store::plan_table(table, {{"kind", item::Type::S}, {"id", item::Type::S}}, "expires");
}

item::Item key_of(const char* kind, const std::string& id) {
  return store::Row().set("kind", kind).set("id", id);
}

Async<std::optional<item::Item>> get_row(store::Store& store, std::string table, const char* kind,
                                         std::string id) {
  auto found =
      co_await store.get_item({.table = std::move(table), .key = key_of(kind, id), .consistent = true});
  if (!found) co_return store::error_of(found);
  co_return std::move(found->item);
}

Async<bool> remove_row(store::Store& store, std::string table, const char* kind, std::string id) {
  auto removed =
      co_await store.delete_item(store::Delete(std::move(table), key_of(kind, id)).when(store::exists("id")));
  if (removed) co_return true;
  if (removed.error().code != ErrorCode::conditional_check_failed) co_return store::error_of(removed);
  // Where an answer was lost, it was this that removed the row.
  co_return removed.error().unsure;
}

asio::awaitable<void> update_aside(store::Store& store, store::UpdateItemRequest request) {
  asio::co_spawn(co_await asio::this_coro::executor, update(store, std::move(request)),
                 [](const std::exception_ptr& failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::exception& error) {
                     log::warning("a use could not be noted: {}", error.what());
                   }
                 });
}

}  // namespace tabella::access

// UpdateTimeToLive and DescribeTimeToLive, and the entries of the items that were there before.
#include <fmt/format.h>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "engine/describe_table.h"
#include "engine/engine.h"
#include "engine/expiry.h"
#include "engine/keys.h"
#include "engine/slices.h"

namespace tabella::engine {

using store::Result;
using store::TimeToLiveDescription;
using store::UpdateTimeToLiveRequest;

namespace {

// Gives the items of a table their entries, a slice at a time, while writes go on: these keep the entries
// from the moment time to live is enabled.
struct FillExpiry {
  std::string table;
  uint32_t expiry_id;
  std::string filled_to;

  bool step(WriteContext& context) {
    const auto schema = context.table(table);
    if (!schema || !schema->expiry || schema->expiry->id != expiry_id) return true;  // gone meanwhile
    const auto& expiry = *schema->expiry;
    const bool done =
        walk_slice(context, schema->id, filled_to, [&](std::string_view key, item::ItemView item) {
          if (const auto due = due_second(expiry, item))
            put_expiry_entry(context, expiry, keys::expiry(expiry_id, *due, key));
        });
    if (!done) return false;
    auto filled = std::make_shared<TableSchema>(*schema);
    filled->expiry->filled = true;
    context.put_table(std::move(filled));
    log::info("time to live of table {} is enabled on attribute {}", table, expiry.attribute);
    return true;
  }
};

Result<> check_change(const TableSchema& table, const UpdateTimeToLiveRequest& request) {
  if (table.expiry && table.expiry->attribute != request.attribute)
    return store::refuse(
        fmt::format("TimeToLive is active on a different AttributeName: current AttributeName is {}",
                    table.expiry->attribute));
  if (request.enabled == table.expiry.has_value())
    return store::refuse(fmt::format("TimeToLive is already {}", request.enabled ? "enabled" : "disabled"));
  return {};
}

}  // namespace

void Engine::start_filling_expiry(const TableSchema& table) {
  writer_.run_in_background([fill = FillExpiry{table.name(), table.expiry->id, {}}](
                                WriteContext& context) mutable { return fill.step(context); });
}

store::Async<UpdateTimeToLiveRequest> Engine::update_time_to_live(UpdateTimeToLiveRequest request) {
  Result<UpdateTimeToLiveRequest> result;
  const auto executed = co_await writer_.execute([&](WriteContext& context) {
    const auto old = context.table(request.table);
    if (!old) {
      result = table_not_found(request.table);
      return;
    }
    if (auto checked = check_change(*old, request); !checked) {
      result = std::unexpected(std::move(checked).error());
      return;
    }
    auto table = std::make_shared<TableSchema>(*old);
    if (request.enabled) {
      table->expiry = Expiry{.id = take_id(context), .attribute = request.attribute};
      *table->expiry->swept_to = keys::expiries_of(table->expiry->id);
    } else {
      remove_expiry_entries(context, *table->expiry);
      table->expiry.reset();
    }
    context.put_table(table);
    if (request.enabled) start_filling_expiry(*table);
    result = request;
  });
  if (!executed) co_return std::unexpected(executed.error());
  // A table with few items is done in a moment: clients that look at once find it enabled.
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  for (int tries = 0; result && tries < 100; ++tries) {
    const auto table = catalogue_.find(request.table);
    if (!table || !table->expiry || table->expiry->filled) break;
    timer.expires_after(std::chrono::milliseconds{2});
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  co_return result;
}

store::Async<TimeToLiveDescription> Engine::describe_time_to_live(std::string name) {
  const auto table = catalogue_.find(name);
  if (!table) co_return table_not_found(name);
  if (!table->expiry) co_return TimeToLiveDescription{};
  co_return TimeToLiveDescription{
      .status = table->expiry->filled ? store::TimeToLiveStatus::enabled : store::TimeToLiveStatus::enabling,
      .attribute = table->expiry->attribute};
}

}  // namespace tabella::engine

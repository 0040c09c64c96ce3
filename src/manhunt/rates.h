// How often something has happened, counted in windows of time that follow each other since 1970: one row
// each.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::manhunt {

struct RateWindow {
  std::string name;  // what is counted
  std::chrono::milliseconds length;
  int64_t number = 0;

  static RateWindow at(std::string name, std::chrono::milliseconds length, TimePoint time) {
    return {std::move(name), length, epoch_milliseconds(time) / length.count()};
  }
};

std::string rate_partition(std::string_view name);
store::Item rate_key(const RateWindow& window);
// In seconds: when rows of a window are not needed any more.
int64_t rate_expires(const RateWindow& window);

// Counts once more. The number of this one, from 1 on; nothing: there were `most` already.
store::Async<std::optional<int64_t>> count_once(store::Store& store, std::string table, RateWindow window,
                                                std::optional<int64_t> most = {});

}  // namespace tabella::manhunt

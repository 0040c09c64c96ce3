// What time brings: items that are due, tokens that are forgotten, stream records older than a day. In slices
// that are small while writes wait.
#include "engine/engine.h"
#include "engine/expiry.h"
#include "engine/keys.h"
#include "engine/stream_record.h"
#include "engine/tokens.h"

namespace tabella::engine {
namespace {

constexpr size_t kSlice = 512;
constexpr size_t kBusySlice = 32;
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

std::chrono::milliseconds Engine::run_housekeeping(WriteContext& context, bool busy) {
  const size_t slice = busy ? kBusySlice : kSlice;
  bool more = false;
  uint64_t behind = 0;
  for (const auto& seen : catalogue_.all()) {
    if (!seen->expiry) continue;
    const auto table = context.table(seen->name());
    if (!table || !table->expiry || table->expiry->id != seen->expiry->id) continue;
    const auto swept = sweep_expired(context, *table, slice);
    expired_items_ += swept.deleted;
    more = more || swept.more;
    behind = std::max(behind, swept.behind);
  }
  expiry_lag_ = static_cast<int64_t>(behind);
  more = forget_tokens(context, tokens_forgotten_to_, slice) || more;
  trim_streams(context, streams_, [this](TimePoint time) { return is_trimmed(time); });
  return more ? std::chrono::milliseconds{0} : kPause;
}

}  // namespace tabella::engine

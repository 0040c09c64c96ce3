#include "journal/sweeper.h"

#include "base/log.h"
#include "store/pause.h"

namespace tabella::journal {

using boost::asio::awaitable;

namespace {
constexpr std::chrono::milliseconds kSweepEvery{30'000};
constexpr std::chrono::milliseconds kSweepStep{100};  // how soon it notices that it is to stop
}  // namespace

awaitable<void> Sweeper::run() {
  while (!stopping_) {
    const auto swept = co_await sweep();
    if (!swept)
      log::warning("unfinished appends and deletions cannot be looked for: {}", swept.error().message);
    co_await rest();
  }
}

store::Async<void> Sweeper::sweep() {
  TABELLA_CO_ASSIGN(const auto unfinished, co_await journal_.heads().unfinished_work());
  for (const auto& entity : unfinished) {
    if (stopping_) break;
    const auto finished = co_await journal_.finish_work(entity);
    // One that fails must not keep the others waiting.
    if (!finished)
      log::warning("what is unfinished on {} in {} stays so: {}", entity.pid, entity.journal,
                   finished.error().message);
    else if (*finished)
      ++counts_.finished_work;
  }
  co_return store::Result<>{};
}

awaitable<void> Sweeper::rest() {
  for (auto left = kSweepEvery; left > std::chrono::milliseconds{0} && !stopping_; left -= kSweepStep)
    co_await store::pause_for(kSweepStep);
}

}  // namespace tabella::journal

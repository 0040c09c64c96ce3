#include "app/reindex.h"

#include <unistd.h>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "app/open_store.h"
#include "mail/indexer.h"

namespace tabella::app {
namespace {

// How far it is, on stderr: in one line that changes where somebody watches, in a line now and then
// otherwise.
class ProgressLine {
 public:
  void show(const std::string& step) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + (watched_ ? std::chrono::milliseconds{100} : std::chrono::milliseconds{5'000});
    fmt::print(stderr, "{}{}{}", watched_ ? "\r\x1b[K" : "", step, watched_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (watched_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  const bool watched_ = isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point next_{};
};

store::Async<mail::Indexer::Rebuilt> prepare_and_rebuild(store::Store& store, mail::Mail& mail,
                                                         ProgressLine& progress) {
  auto plans = mail::Mail::plans(mail.options());
  // Nobody follows a stream here, and tables of an older version have none.
  for (auto& plan : plans) plan.definition.stream.reset();
  TABELLA_CO_TRY(co_await store::prepare_tables(store, std::move(plans), store::Missing::refuse));
  mail::Indexer indexer(mail);
  co_return co_await indexer.rebuild([&](const std::string& step) { progress.show(step); });
}

void rebuild(OpenStore& store, const Clock& clock, const ReindexOptions& options) {
  auto mail_options = mail::table_names(options.store.table_prefix);
  // Messages may have been kept for longer once: as far back as there are any.
  mail_options.time_to_live = std::chrono::hours{100 * 365 * 24};
  mail_options.shared = store.shared();
  mail::Mail mail(store.store(), clock, std::move(mail_options));
  ProgressLine progress;
  boost::asio::io_context context(1);
  auto result = boost::asio::co_spawn(context, prepare_and_rebuild(store.store(), mail, progress),
                                      boost::asio::use_future);
  context.run();
  const auto rebuilt = result.get();
  progress.clear();
  if (!rebuilt)
    throw std::runtime_error(fmt::format("the index could not be built: {}", rebuilt.error().message));
  fmt::print("{} messages, {} of them in the index", rebuilt->messages, rebuilt->indexed);
  fmt::print("{}\n", rebuilt->indexed < rebuilt->messages ? "; the rest follows when it is served" : "");
}

}  // namespace

int reindex(const ReindexOptions& options) {
  try {
    const SystemClock clock;
    const auto store = open_for_command(options.store, clock, WhileServed::refuse);
    rebuild(*store, clock, options);
    store->close();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
    return 1;
  }
}

}  // namespace tabella::app

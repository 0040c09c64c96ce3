#include "mail/worker.h"

#include "base/log.h"
#include "store/pause.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {
constexpr std::chrono::milliseconds kBetween{500};
constexpr std::chrono::milliseconds kBetweenShared{2'000};  // at most: no longer than messages take to settle
constexpr std::chrono::milliseconds kLooks{300};
constexpr std::chrono::milliseconds kRestSlice{50};
constexpr std::chrono::milliseconds kLongestPause{30'000};
}  // namespace

awaitable<void> Worker::rest(std::chrono::milliseconds length) {
  const auto until = std::chrono::steady_clock::now() + length;
  while (!stopping_ && std::chrono::steady_clock::now() < until) co_await store::pause_for(kRestSlice);
}

awaitable<void> Worker::run() {
  std::chrono::milliseconds pause = kBetween;
  while (!stopping_) {
    std::string failure;
    bool more = false;
    try {
      const auto worked = co_await indexer_.work();
      if (!worked)
        failure = worked.error().message;
      else
        more = *worked;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) {
      log::warning("the mail index could not be brought up to date: {}", failure);
      if (repair_) co_await repair_();
      co_await rest(pause);
      pause = std::min(pause * 2, kLongestPause);
      continue;
    }
    pause = kBetween;
    if (!more) co_await rest(shared_ ? std::min(kBetweenShared, mail_.options().settle) : kBetween);
  }
}

awaitable<void> Worker::follow_others() {
  while (!stopping_) {
    try {
      if (shared_ && arrivals_.anyone()) co_await arrivals_.look_for_others(mail_);
    } catch (const std::exception& error) {
      log::warning("the messages of other processes could not be looked for: {}", error.what());
    }
    co_await rest(kLooks);
  }
}

}  // namespace tabella::mail

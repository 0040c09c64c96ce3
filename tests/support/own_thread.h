// Something with run() and stop() — a StreamReader, a Schedule — on a thread of its own, as in a process of
// its own.
#pragma once

#include <exception>
#include <memory>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace tabella::test {

template <class Runner>
class OwnThread {
 public:
  explicit OwnThread(std::unique_ptr<Runner> runner)
      : runner_(std::move(runner)), context_(std::make_unique<boost::asio::io_context>(1)) {
    boost::asio::co_spawn(*context_, runner_->run(), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    thread_ = std::thread([this] { context_->run(); });
  }
  ~OwnThread() { stop(); }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  Runner& operator*() { return *runner_; }
  Runner* operator->() { return runner_.get(); }

  void stop() {
    if (!thread_.joinable()) return;
    boost::asio::post(*context_, [this] { runner_->stop(); });
    thread_.join();
  }

  // Ends as a killed process does: where it stands, with all it holds. To be kept until the store has
  // answered what it was asked last.
  void die() {
    context_->stop();
    thread_.join();
  }

 private:
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<boost::asio::io_context> context_;
  std::thread thread_;
};

}  // namespace tabella::test

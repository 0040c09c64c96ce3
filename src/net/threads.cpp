#include "net/threads.h"

#include <sys/resource.h>
#include <unistd.h>

namespace tabella::net {

namespace asio = boost::asio;

struct IoThreads::Guard {
  asio::executor_work_guard<asio::io_context::executor_type> guard;
};

IoThreads::IoThreads(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    contexts_.push_back(std::make_unique<asio::io_context>(1));
    guards_.push_back(std::make_unique<Guard>(Guard{asio::make_work_guard(*contexts_.back())}));
  }
  for (auto& context : contexts_) threads_.emplace_back([&context] { context->run(); });
}

IoThreads::~IoThreads() { stop(); }

void IoThreads::stop() {
  for (auto& context : contexts_) context->stop();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

namespace {

constexpr int kNice = 5;

}  // namespace

WorkThreads::WorkThreads(size_t count) : guard_(context_.get_executor()) {
  for (size_t i = 0; i < count; ++i)
    threads_.emplace_back([this] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
      context_.run();
    });
}

WorkThreads::~WorkThreads() { stop(); }

void WorkThreads::stop() {
  guard_.reset();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace tabella::net

#include "net/threads.h"

#include <boost/asio/executor_work_guard.hpp>

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

}  // namespace tabella::net

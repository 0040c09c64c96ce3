// The process's I/O threads: one io_context each, so that what lives on one needs no locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace tabella::net {

class IoThreads {
 public:
  explicit IoThreads(size_t count);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  size_t size() const { return contexts_.size(); }
  boost::asio::io_context& at(size_t i) { return *contexts_[i]; }

  // Ends the threads. Whatever still waits on them is dropped.
  void stop();

 private:
  struct Guard;
  std::vector<std::unique_ptr<boost::asio::io_context>> contexts_;
  std::vector<std::unique_ptr<Guard>> guards_;
  std::vector<std::thread> threads_;
};

// Threads that share one queue, for work that takes long. They give way to the I/O threads where there are
// too few cores for all.
class WorkThreads {
 public:
  explicit WorkThreads(size_t count);
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

  boost::asio::io_context::executor_type executor() { return context_.get_executor(); }

  // Finishes what it was given, and ends the threads.
  void stop();

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

}  // namespace tabella::net

// The process's I/O threads: one io_context each, so that what lives on one needs no locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

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

}  // namespace tabella::net

// Stands between a client and a DynamoDB, and does to requests and answers what networks and servers do.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tabella::test {

enum class Fault {
  none,
  latency,
  reset_before,    // the request never arrives
  half_request,    // half of it does
  reset_after,     // all of it does, and nothing comes back
  half_answer,     // half of the answer comes back
  damaged_answer,  // one bit of it is wrong
  error_before,    // 500, and nothing was done
  error_after,     // 500, and it was done
  throttled,       // refused, for now
  silence,         // it was done, and the connection just stands
  unprocessed,     // of a batch, nothing was done
};

class FaultProxy {
 public:
  // `share` of the requests meet a fault.
  FaultProxy(uint16_t upstream, double share, uint32_t seed);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // The next request, or the one after so many others, meets this one.
  void meet(Fault fault, int after = 0) {
    const std::lock_guard lock(mutex_);
    next_ = fault;
    before_next_ = after;
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int faults() const { return faults_; }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  void accept();
  void serve(Socket client);
  bool relay(Socket& client, Socket& upstream);
  Fault choose();

  const uint16_t upstream_;
  const double share_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> faults_ = 0;
  std::mutex mutex_;
  int before_next_ = 0;             // guarded by mutex_
  std::optional<Fault> next_;       // guarded by mutex_
  std::mt19937 random_;             // guarded by mutex_
  std::list<std::thread> threads_;  // guarded by mutex_
  std::thread accepting_;
};

}  // namespace tabella::test

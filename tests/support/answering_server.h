// An HTTP server of a test's own, on 127.0.0.1: answers one request on each connection, and remembers it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "net/http.h"

namespace tabella::test {

class AnsweringServer {
 public:
  // What is to be sent for a request, head and all. On the server's thread.
  using Answer = std::function<std::string(const std::string& request)>;

  explicit AnsweringServer(Answer answer)
      : answer_(std::move(answer)),
        acceptor_(context_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~AnsweringServer() {
    stopping_ = true;
    tcp::socket wake(context_);
    boost::system::error_code ignored;
    wake.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
  }
  AnsweringServer(const AnsweringServer&) = delete;
  AnsweringServer& operator=(const AnsweringServer&) = delete;

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::string url(std::string_view path = "/", std::string_view host = "127.0.0.1") const {
    return fmt::format("http://{}:{}{}", host, port(), path);
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::string last() const {
    const auto all = requests();
    return all.empty() ? "" : all.back();
  }

 private:
  using tcp = boost::asio::ip::tcp;

  void serve() {
    while (!stopping_) {
      tcp::socket socket(context_);
      acceptor_.accept(socket);
      if (stopping_) return;
      const auto request = read(socket);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      boost::system::error_code ignored;
      boost::asio::write(socket, boost::asio::buffer(answer_(request)), ignored);
    }
  }
  static std::string read(tcp::socket& socket) {
    std::string request;
    boost::system::error_code error;
    const auto head =
        boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "\r\n\r\n", error);
    net::RequestHead parsed;
    if (error || net::parse_head(request, parsed) != net::HeadResult::complete) return request;
    while (request.size() < head + parsed.content_length && !error) {
      char more[4096];
      request.append(more, socket.read_some(boost::asio::buffer(more), error));
    }
    return request;
  }

  const Answer answer_;
  boost::asio::io_context context_;
  tcp::acceptor acceptor_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tabella::test

// Stands between a client and a MySQL server, and ends the connection at a COMMIT: before the server has it,
// or when the server has answered.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace tabella::test {

class CommitProxy {
 public:
  enum class Loss { none, request, answer };

  explicit CommitProxy(uint16_t server)
      : server_(boost::asio::ip::make_address("127.0.0.1"), server),
        acceptor_(context_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)),
        threads_(1) {
    threads_[0] = std::thread([this] { accept(); });
  }
  ~CommitProxy() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    threads_[0].join();
    for (const auto& pair : pairs_) pair->end();
    for (size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  }
  CommitProxy(const CommitProxy&) = delete;
  CommitProxy& operator=(const CommitProxy&) = delete;

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void lose_next(Loss loss) { loss_ = loss; }
  bool has_lost() const { return loss_ == Loss::none; }

 private:
  using tcp = boost::asio::ip::tcp;
  static constexpr std::string_view kCommit{"\3COMMIT"};  // a COM_QUERY
  struct Pair {
    tcp::socket client;
    tcp::socket server;
    std::atomic<bool> mute = false;  // what the server says next ends it

    void end() {
      ::shutdown(client.native_handle(), SHUT_RDWR);
      ::shutdown(server.native_handle(), SHUT_RDWR);
    }
  };

  void accept() {
    while (true) {
      boost::system::error_code error;
      auto pair = std::make_shared<Pair>(tcp::socket(context_), tcp::socket(context_));
      acceptor_.accept(pair->client, error);
      if (error) return;
      pair->server.connect(server_, error);
      threads_.emplace_back([this, pair] { to_server(*pair); });
      threads_.emplace_back([pair] { to_client(*pair); });
      pairs_.push_back(std::move(pair));
    }
  }

  void to_server(Pair& pair) {
    char bytes[4096];
    boost::system::error_code error;
    while (!error) {
      const auto count = pair.client.read_some(boost::asio::buffer(bytes), error);
      if (error) break;
      const bool commit = std::string_view(bytes, count).find(kCommit) != std::string_view::npos;
      const auto loss = commit ? loss_.exchange(Loss::none) : Loss::none;
      if (loss == Loss::request) break;
      if (loss == Loss::answer) pair.mute = true;
      boost::asio::write(pair.server, boost::asio::buffer(bytes, count), error);
    }
    pair.end();
  }

  static void to_client(Pair& pair) {
    char bytes[4096];
    boost::system::error_code error;
    while (!error) {
      const auto count = pair.server.read_some(boost::asio::buffer(bytes), error);
      if (error || pair.mute) break;
      boost::asio::write(pair.client, boost::asio::buffer(bytes, count), error);
    }
    pair.end();
  }

  boost::asio::io_context context_;
  const tcp::endpoint server_;
  tcp::acceptor acceptor_;
  std::atomic<Loss> loss_ = Loss::none;
  std::vector<std::shared_ptr<Pair>> pairs_;  // of the accepting thread, until it has ended
  std::vector<std::thread> threads_;          // likewise; the first is that one
};

}  // namespace tabella::test

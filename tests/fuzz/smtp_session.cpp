// A whole session, in pieces as the input says: whatever a client sends, the session ends, and no message is
// taken that was not ended by CR LF . CR LF, or by its chunks.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "smtp/session.h"

namespace {

using namespace tabella::smtp;
namespace asio = boost::asio;

class PiecewiseChannel final : public Channel {
 public:
  explicit PiecewiseChannel(std::string_view input) : rest_(input) {}
  asio::awaitable<size_t> read_some(asio::mutable_buffer room) override {
    if (rest_.empty()) co_return 0;
    // The first byte of each piece says how long it is.
    const size_t wanted = 1 + static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    const auto piece = rest_.substr(0, std::min(wanted, room.size()));
    std::memcpy(room.data(), piece.data(), piece.size());
    rest_.remove_prefix(piece.size());
    co_return piece.size();
  }
  asio::awaitable<bool> write(std::string_view bytes) override {
    // Replies are whole lines of a code and a text.
    if (!bytes.ends_with("\r\n")) std::abort();
    co_return true;
  }
  asio::awaitable<bool> start_tls() override {
    secure_ = true;
    co_return true;
  }
  bool can_start_tls() const override { return true; }
  bool is_secure() const override { return secure_; }
  void expire_in(std::chrono::milliseconds) override {}

 private:
  std::string_view rest_;
  bool secure_ = false;
};

class CheckingHost final : public Host {
 public:
  asio::awaitable<bool> may_log_in(Credentials credentials) override { co_return credentials.user != "no"; }
  asio::awaitable<Reply> take(Envelope envelope) override {
    if (envelope.to.empty() || envelope.data.size() > 4096) std::abort();
    for (const auto& address : envelope.to)
      if (!is_address(address)) std::abort();
    co_return Reply{.code = 250, .text = "2.0.0 Ok"};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PiecewiseChannel channel({reinterpret_cast<const char*>(data), size});
  CheckingHost host;
  const SessionOptions options{.max_message = 4096, .max_recipients = 5, .max_line = 512, .budget = 3000};
  std::atomic<size_t> budget{0};
  {
    Session session(channel, host, options, budget, "192.0.2.1");
    asio::io_context context;
    asio::co_spawn(context, session.run(), asio::detached);
    context.run();
  }
  if (budget != 0) std::abort();
  return 0;
}

// The bytes of one connection, plain or by TLS, whoever opened it. A plain one may become secure on the way
// (STARTTLS).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tabella::net {

inline constexpr size_t kReadSize = 16 * 1024;  // what a reader asks for at once

struct TlsFiles {
  std::string certificate;
  std::string key;
};

// What the TLS of servers is checked against. Thread-safe once it is made.
class TlsTrust {
 public:
  // `ca_file` empty: the system's certificates. Throws std::runtime_error with a sentence for the user.
  explicit TlsTrust(const std::string& ca_file);
  // Encrypts, and takes whatever certificate there is: no protection against somebody in between.
  static TlsTrust anyone();
  ~TlsTrust();
  TlsTrust(TlsTrust&&) noexcept;
  TlsTrust& operator=(TlsTrust&&) = delete;
  TlsTrust(const TlsTrust&) = delete;
  TlsTrust& operator=(const TlsTrust&) = delete;

 private:
  friend class Transport;
  struct Impl;
  explicit TlsTrust(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What a server shows of itself. Thread-safe once it is made.
class TlsIdentity {
 public:
  // Throws std::runtime_error with a sentence for the user.
  explicit TlsIdentity(const TlsFiles& files);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

 private:
  friend class Transport;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// On one thread.
class Transport {
 public:
  using Error = boost::system::error_code;
  using Transferred = std::tuple<Error, size_t>;

  explicit Transport(const boost::asio::any_io_executor& executor);  // to connect with
  explicit Transport(boost::asio::ip::tcp::socket accepted);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  boost::asio::awaitable<std::tuple<Error>> connect(const boost::asio::ip::tcp::endpoint& endpoint);
  // The handshake of a client, with `host` checked, and that of a server. Both must outlive the transport.
  boost::asio::awaitable<Error> secure(const TlsTrust& trust, const std::string& host);
  boost::asio::awaitable<Error> secure(const TlsIdentity& identity);
  bool is_secure() const;

  boost::asio::awaitable<Transferred> write(std::array<boost::asio::const_buffer, 2> buffers);
  boost::asio::awaitable<Transferred> write_some(std::array<boost::asio::const_buffer, 2> buffers);
  boost::asio::awaitable<Transferred> read_some(boost::asio::mutable_buffer room);

  // Says that nothing more is coming; plain connections only.
  void finish_sending();
  // Ends whatever is under way.
  void close();
  // Whether the other side has neither closed it nor sent something that nobody asked for.
  bool is_quiet();
  // The other side's address; empty where it is gone.
  std::string peer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tabella::net

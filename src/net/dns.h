// Looks names up in the DNS: where a domain takes mail (MX), addresses, texts.
//
// The asking is done on a strand of the executor that it is given; c-ares watches the time, tries again and
// goes to the next server by itself. Answers are kept for as long as their TTL says, also that there is
// nothing.
//
// Thread-safe: a call resumes on the executor of the coroutine that made it. A call may be abandoned; one
// that is still waiting when the Dns goes ends with an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>

namespace tabella::net {

struct Mx {
  uint16_t preference = 0;
  std::string host;

  // The domain takes no mail (RFC 7505).
  bool is_null() const { return host.empty(); }
  bool operator==(const Mx&) const = default;
};

struct DnsError {
  enum class Kind {
    not_found,  // there is no such name, or nothing of that kind by it
    temporary,  // no answer, or one that says nothing: it may be there the next time
  };
  Kind kind = Kind::temporary;
  std::string message;
};

template <class T>
using DnsResult = std::expected<T, DnsError>;

class Dns {
 public:
  struct Options {
    std::vector<std::string> servers = {};     // "127.0.0.1:5353", "[::1]:53", "10.0.0.2"; none: the system's
    std::chrono::milliseconds timeout{3'000};  // of the first try; the next ones wait longer
    int tries = 3;                             // of each server
  };

  // Throws std::runtime_error with a sentence for the user.
  Dns(const boost::asio::any_io_executor& executor, const Options& options);
  ~Dns();
  Dns(const Dns&) = delete;
  Dns& operator=(const Dns&) = delete;

  // At least one. The most preferred come first; among equals it is for the caller to choose at random.
  boost::asio::awaitable<DnsResult<std::vector<Mx>>> mx(std::string domain);
  // At least one, IPv4 and IPv6, in the order in which they should be tried (RFC 6724). Names in the system's
  // hosts file, and what is an address already, are not asked for.
  boost::asio::awaitable<DnsResult<std::vector<boost::asio::ip::address>>> addresses(std::string host);
  // At least one, each in one piece.
  boost::asio::awaitable<DnsResult<std::vector<std::string>>> txt(std::string name);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tabella::net

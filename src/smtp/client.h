// The client's side of SMTP: hands one message to one server.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

namespace tabella::net {
class AddressRules;
}

namespace tabella::smtp {

enum class Security {
  none,
  opportunistic,  // STARTTLS where it is offered
  required,       // STARTTLS
  implicit,       // TLS from the start, as on port 465
};

enum class Mechanism { automatic, plain, login, cram_md5 };

struct Relay {
  std::string host;
  uint16_t port = 25;
  Security security = Security::opportunistic;
  bool check_certificate = true;
  std::string user;  // empty: no login
  std::string password;
  Mechanism mechanism = Mechanism::automatic;
  std::string helo = "localhost";
  const net::AddressRules* rules = nullptr;  // where it may be; null: anywhere. Must outlive the sending
};

struct Letter {
  std::string from;  // empty: <>
  std::vector<std::string> to;
  std::string_view data;  // line ends of any kind; they go out as CR LF
};

// What the server said, or what happened on the way.
struct SendError {
  int code = 0;          // the server's; 0: there was no answer
  bool refused = false;  // by the rules for addresses
  std::string message;
};

// Sends it to all recipients or to none. The answer to the message.
boost::asio::awaitable<std::expected<std::string, SendError>> send(Relay relay, Letter letter,
                                                                   std::chrono::milliseconds timeout);

// With a dot more where a line begins with one, and every line ending with CR LF; without the last dot.
std::string stuff_dots(std::string_view data);

}  // namespace tabella::smtp

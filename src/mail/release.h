// Releasing: handing a caught message to a real server after all.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mail/service.h"
#include "net/address_rules.h"
#include "store/settings.h"

namespace tabella::access {
class Secrets;
}

namespace tabella::mail {

// A server that messages can be released through, as MailHog names its parts.
struct OutgoingServer {
  std::string name;
  bool save = false;
  std::string email;  // whom to send to
  std::string host;
  std::string port;
  std::string username;
  std::string password;
  std::string mechanism;  // PLAIN, LOGIN, CRAMMD5 or CRAM-MD5
  bool trusted = false;   // the operator's: it may be anywhere
};

// Nothing if it is not such an object. Names in any case.
std::optional<OutgoingServer> outgoing_from_json(std::string_view json);
// Without the password.
void append_outgoing_json(std::string& out, const OutgoingServer& server);

// A file with the operator's servers by name, as MailHog's -outgoing-smtp. Throws std::runtime_error with a
// sentence.
std::map<std::string, OutgoingServer> read_outgoing_file(const std::string& path);

struct ReleaseError {
  int status = 500;  // HTTP's
  std::string message;
};

// Thread-safe.
class Release {
 public:
  // `rules` are for the servers that users name.
  Release(Mail& mail, store::Settings& settings, const access::Secrets& secrets,
          const net::AddressRules& rules, std::map<std::string, OutgoingServer> servers)
      : mail_(mail), settings_(settings), secrets_(secrets), rules_(rules), servers_(std::move(servers)) {}

  // All that can be named: of the file, and those that were saved, whose passwords are sealed.
  store::Async<std::map<std::string, OutgoingServer>> servers();
  boost::asio::awaitable<std::expected<void, ReleaseError>> release(const Message& message,
                                                                    OutgoingServer how);

 private:
  // What is known of the server that is named; or keeps it under its name.
  boost::asio::awaitable<std::expected<OutgoingServer, ReleaseError>> complete(OutgoingServer how);
  boost::asio::awaitable<std::expected<void, ReleaseError>> save(OutgoingServer how);

  Mail& mail_;
  store::Settings& settings_;
  const access::Secrets& secrets_;
  const net::AddressRules& rules_;
  const std::map<std::string, OutgoingServer> servers_;
};

}  // namespace tabella::mail

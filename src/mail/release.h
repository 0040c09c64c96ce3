// Releasing: handing a caught message to a real server after all.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mail/service.h"
#include "mail/settings.h"
#include "smtp/client.h"

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
};

// Nothing if it is not such an object. Names in any case.
std::optional<OutgoingServer> outgoing_from_json(std::string_view json);
// Without the password.
void append_outgoing_json(std::string& out, const OutgoingServer& server);

// A file with servers by name, as MailHog's -outgoing-smtp. Throws std::runtime_error with a sentence.
std::map<std::string, OutgoingServer> read_outgoing_file(const std::string& path);

struct ReleaseError {
  int status = 500;  // HTTP's
  std::string message;
};

// Thread-safe.
class Release {
 public:
  Release(Mail& mail, Settings& settings, std::map<std::string, OutgoingServer> servers)
      : mail_(mail), settings_(settings), servers_(std::move(servers)) {}

  // All that can be named: of the file, and those that were saved.
  store::Async<std::map<std::string, OutgoingServer>> servers();
  boost::asio::awaitable<std::expected<void, ReleaseError>> release(const Message& message,
                                                                    OutgoingServer how);

 private:
  Mail& mail_;
  Settings& settings_;
  const std::map<std::string, OutgoingServer> servers_;
};

}  // namespace tabella::mail

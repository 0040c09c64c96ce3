// SMTP submission (RFC 6409): whatever a framework can send to. 250 means that the email is in the tables,
// and names its id.
//
// Headers that begin with X-Outbox- are for us and do not travel on: X-Outbox-Send-At (a moment by RFC 3339),
// X-Outbox-Priority (high, normal, low) and X-Outbox-Callback (a URL).
#pragma once

#include <optional>
#include <string>

#include "access/password_check.h"
#include "base/passwords.h"
#include "base/result.h"
#include "net/outbound.h"
#include "outbox/composer.h"
#include "outbox/service.h"
#include "smtp/server.h"

namespace tabella::outbox {

struct SubmissionHeaders {
  std::optional<TimePoint> send_at = {};
  Priority priority = Priority::normal;
  std::string callback = {};
};

// Takes our headers out of a message. A sentence if one of them is wrong, not known, or there twice.
Checked<SubmissionHeaders> take_submission_headers(std::string& message);

// Thread-safe. Outlives the sessions.
class SubmissionHost {
 public:
  // `passwords` null: everybody may log in.
  SubmissionHost(Outbox& outbox, Composer& composer, const net::Outbound& outbound, Passwords* passwords)
      : outbox_(outbox), composer_(composer), outbound_(outbound) {
    if (passwords) check_.emplace(*passwords);
  }

  // For each connection.
  smtp::Server::Accepted invite();

 private:
  class Session;
  boost::asio::awaitable<smtp::Reply> take(smtp::Envelope envelope);

  Outbox& outbox_;
  Composer& composer_;
  const net::Outbound& outbound_;               // whose rules callbacks keep
  std::optional<access::PasswordCheck> check_;  // of their passwords; nothing: everybody may log in
};

}  // namespace tabella::outbox

// What SMTP sessions are for: messages go to Mail, through Jim.
#pragma once

#include <memory>
#include <optional>

#include "access/password_check.h"
#include "base/passwords.h"
#include "mail/arrivals.h"
#include "mail/jim.h"
#include "mail/service.h"
#include "smtp/server.h"

namespace tabella::mail {

// Thread-safe. Outlives the sessions.
class MailHost {
 public:
  // `passwords` null: everybody may log in.
  MailHost(Mail& mail, Jim& jim, Arrivals& arrivals, Passwords* passwords)
      : mail_(mail), jim_(jim), arrivals_(arrivals) {
    if (passwords) check_.emplace(*passwords);
  }

  // For each connection.
  smtp::Server::Accepted invite();

 private:
  class Session;

  Mail& mail_;
  Jim& jim_;
  Arrivals& arrivals_;
  std::optional<access::PasswordCheck> check_;  // of their passwords; nothing: everybody may log in
};

}  // namespace tabella::mail

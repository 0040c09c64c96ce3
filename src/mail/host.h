// What SMTP sessions are for: messages go to Mail, through Jim.
#pragma once

#include <memory>

#include <boost/asio/thread_pool.hpp>

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
      : mail_(mail), jim_(jim), arrivals_(arrivals), passwords_(passwords), slow_(1) {}

  // For each connection.
  smtp::Server::Accepted invite();

 private:
  class Session;

  Mail& mail_;
  Jim& jim_;
  Arrivals& arrivals_;
  Passwords* const passwords_;
  boost::asio::thread_pool slow_;  // for passwords that take long to check
};

}  // namespace tabella::mail

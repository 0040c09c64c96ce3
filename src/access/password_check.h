// Checks passwords beside the threads that serve: bcrypt takes a tenth of a second.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/passwords.h"

namespace tabella::access {

struct UserAndPassword {
  std::string user;
  std::string password;
};

// Thread-safe; borrows the passwords.
class PasswordCheck {
 public:
  explicit PasswordCheck(Passwords& passwords) : passwords_(passwords) {}

  boost::asio::awaitable<Verdict> check(std::string user, std::string password);
  // CRAM-MD5: whether the digest, in hex, is that of the challenge. Needs a password that can be read.
  Verdict check_digest(const std::string& user, std::string_view challenge, std::string_view digest);

 private:
  Passwords& passwords_;
  boost::asio::thread_pool slow_{1};
};

}  // namespace tabella::access

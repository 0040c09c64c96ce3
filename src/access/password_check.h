// Checks passwords beside the threads that serve: bcrypt takes a tenth of a second.
#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/passwords.h"

namespace tabella::access {

struct UserAndPassword {
  std::string user;
  std::string password;
};

// busy: so many are being checked that nobody has looked at this one; it may well be right.
enum class Verdict { right, wrong, busy };

// Thread-safe; borrows the passwords.
class PasswordCheck {
 public:
  explicit PasswordCheck(Passwords& passwords) : passwords_(passwords) {}

  boost::asio::awaitable<Verdict> check(std::string user, std::string password);

 private:
  Passwords& passwords_;
  boost::asio::thread_pool slow_{1};
};

}  // namespace tabella::access

#include "access/password_check.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/checksum.h"

namespace tabella::access {

using boost::asio::awaitable;

namespace {

Verdict verdict(bool right) { return right ? Verdict::right : Verdict::wrong; }

}  // namespace

awaitable<Verdict> PasswordCheck::check(std::string user, std::string password) {
  if (!passwords_.is_slow(user, password)) co_return verdict(passwords_.check(user, password));
  const auto waiting = wait_in_line(passwords_);
  if (!waiting) co_return Verdict::busy;
  const bool right = co_await boost::asio::co_spawn(
      slow_, [this, user, password]() -> awaitable<bool> { co_return passwords_.check(user, password); },
      boost::asio::use_awaitable);
  co_return verdict(right);
}

Verdict PasswordCheck::check_digest(const std::string& user, std::string_view challenge,
                                    std::string_view digest) {
  const auto password = passwords_.plain_password(user);
  return verdict(password && equal_in_constant_time(to_hex(hmac_md5(*password, challenge)), digest));
}

}  // namespace tabella::access

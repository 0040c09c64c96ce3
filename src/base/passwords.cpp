#include "base/passwords.h"

#include <crypt.h>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/text.h"

namespace tabella {
namespace {

bool is_bcrypt(std::string_view password) { return password.starts_with("$2") && password.size() >= 59; }

std::string crypted(const std::string& password, const std::string& setting) {
  const auto data = std::make_unique<crypt_data>();
  const char* result = crypt_r(password.c_str(), setting.c_str(), data.get());
  return result ? result : "";
}

}  // namespace

Passwords::Passwords(std::map<std::string, std::string, std::less<>> users)
    : users_(std::move(users)), salt_(make_uuid()), state_(std::make_unique<State>()) {}

Passwords Passwords::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("the file with users {} cannot be read", path));
  std::map<std::string, std::string, std::less<>> users;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    const auto text = trim(line);
    if (text.empty() || text.starts_with('#')) continue;
    const auto colon = text.find(':');
    // The line may hold a password: it is not repeated.
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
      throw std::runtime_error(
          fmt::format("the file with users {}, line {}: expected name:password", path, number));
    const auto password = text.substr(colon + 1);
    if (password.starts_with("$apr1$") || password.starts_with("{SHA}"))
      throw std::runtime_error(fmt::format(
          "the file with users {}, line {}: use bcrypt (htpasswd -B) or a plain password", path, number));
    users[std::string(text.substr(0, colon))] = password;
  }
  if (users.empty()) throw std::runtime_error(fmt::format("the file with users {} has none in it", path));
  return Passwords(std::move(users));
}

// What is kept of a password that was right: worth nothing to whoever reads our memory later.
std::string Passwords::remembered(std::string_view user, std::string_view password) const {
  std::string text;
  text.append(user).append(1, '\0').append(password);
  return hmac_sha256(salt_, text);
}

// Some password that takes long to check; any, if none does.
const std::string& Passwords::slowest() const {
  for (const auto& [user, password] : users_)
    if (is_bcrypt(password)) return password;
  return users_.begin()->second;
}

bool Passwords::is_slow(std::string_view user, std::string_view password) {
  const auto found = users_.find(user);
  if (!is_bcrypt(found == users_.end() ? slowest() : found->second)) return false;
  const std::lock_guard lock(state_->mutex);
  return !state_->good.contains(remembered(user, password));
}

bool Passwords::check(std::string_view user, std::string_view password) {
  const auto found = users_.find(user);
  if (found != users_.end() && !is_bcrypt(found->second))
    return equal_in_constant_time(found->second, password);
  if (found != users_.end() && !is_slow(user, password)) return true;
  // Somebody who is not there takes as long as somebody who is.
  const auto& wanted = found == users_.end() ? slowest() : found->second;
  if (!is_bcrypt(wanted)) return false;
  const std::string given(password);
  const bool fits =
      given.find('\0') == std::string::npos && equal_in_constant_time(crypted(given, wanted), wanted);
  if (!fits || found == users_.end()) return false;
  const std::lock_guard lock(state_->mutex);
  state_->good.insert(remembered(user, password));
  return true;
}

std::optional<std::string> Passwords::fingerprint(std::string_view user, std::string_view key) const {
  const auto found = users_.find(user);
  if (found == users_.end()) return std::nullopt;
  return hmac_sha256(key, found->second);
}

bool Passwords::all_plain() const {
  return std::ranges::none_of(users_, [](const auto& user) { return is_bcrypt(user.second); });
}

std::optional<std::string> Passwords::plain_password(std::string_view user) const {
  const auto found = users_.find(user);
  if (found == users_.end() || is_bcrypt(found->second)) return std::nullopt;
  return found->second;
}

std::shared_ptr<void> wait_in_line(Passwords& passwords) {
  auto& waiting = passwords.waiting();
  if (++waiting > Passwords::kMostWaiting) {
    --waiting;
    return nullptr;
  }
  return {&waiting, [](std::atomic<int>* count) { --*count; }};
}

std::string bcrypt(const std::string& password) {
  char setting[CRYPT_GENSALT_OUTPUT_SIZE];
  if (!crypt_gensalt_rn("$2b$", 10, nullptr, 0, setting, sizeof setting)) return {};
  return crypted(password, setting);
}

}  // namespace tabella

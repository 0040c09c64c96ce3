// A file of users and passwords, one "name:password" a line, the password as bcrypt ($2…) or plain.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace tabella {

// What came of checking one. busy: so many are being checked that nobody has looked at this one; it may well
// be right.
enum class Verdict { right, wrong, busy };

// Thread-safe.
class Passwords {
 public:
  // Throws std::runtime_error with a sentence for the user if the file cannot be read or understood.
  static Passwords read(const std::string& path);
  explicit Passwords(std::map<std::string, std::string, std::less<>> users);

  // Takes a tenth of a second the first time, with bcrypt; the same again takes nothing.
  bool check(std::string_view user, std::string_view password);
  // Whether check() would take that long: better not where others wait.
  bool is_slow(std::string_view user, std::string_view password);
  // At most so many slow checks wait at a time: who comes then is asked to come again, which is not to say
  // that the password is wrong.
  static constexpr int kMostWaiting = 64;
  std::atomic<int>& waiting() { return state_->waiting; }
  // Changes when the user's password does; nothing if there is no such user. Tells nothing of the password to
  // whoever does not have the key.
  std::optional<std::string> fingerprint(std::string_view user, std::string_view key) const;
  // Whether all passwords are plain: what CRAM-MD5 needs.
  bool all_plain() const;
  std::optional<std::string> plain_password(std::string_view user) const;

 private:
  const std::string& slowest() const;
  std::string remembered(std::string_view user, std::string_view password) const;

  std::map<std::string, std::string, std::less<>> users_;
  const std::string salt_;
  struct State {
    std::mutex mutex;
    std::atomic<int> waiting{0};
    std::unordered_set<std::string> good;  // guarded by mutex: what was right once
  };
  std::unique_ptr<State> state_;
};

// A place among those whose slow check is under way; null if there are too many. It is free again when it
// goes.
std::shared_ptr<void> wait_in_line(Passwords& passwords);

// $2b$…, of a cost that takes about a tenth of a second.
std::string bcrypt(const std::string& password);

}  // namespace tabella

#include "access/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/log.h"
#include "base/random.h"
#include "base/seal.h"

namespace tabella::access {
namespace {

namespace fs = std::filesystem;

// What a sealed secret begins with; the rest is base64 of what base/seal.h makes. Do not change.
constexpr std::string_view kPrefix = "sealed:v1:";

[[noreturn]] void fail(const fs::path& file, std::string_view what, int error) {
  throw std::runtime_error(fmt::format("the file with the secret key {} cannot be {}: {}", file.string(),
                                       what, std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int operator*() const { return number_; }

 private:
  const int number_;
};

// A name that goes when its file is where it belongs, or when that fails.
struct TemporaryName {
  explicit TemporaryName(std::string p) : path(std::move(p)) {}
  ~TemporaryName() { ::unlink(path.c_str()); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  std::string path;
};

void write_synced(const Descriptor& to, std::string_view text, const fs::path& file) {
  while (!text.empty()) {
    const auto written = ::write(*to, text.data(), text.size());
    if (written < 0 && errno != EINTR) fail(file, "written", errno);
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(*to) != 0) fail(file, "written", errno);
}

// Whole or not at all, also if the power fails; the key of whoever was faster stays.
void make_key(const fs::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  fs::create_directories(folder);
  auto pattern = (folder / ".secret-key-XXXXXX").string();
  const Descriptor made(::mkostemp(pattern.data(), O_CLOEXEC));  // its mode is 0600
  if (*made < 0) fail(file, "made", errno);
  const TemporaryName name(pattern);
  write_synced(made, to_base64(random_bytes(kSealKeySize)) + "\n", file);
  if (::link(name.path.c_str(), file.c_str()) != 0 && errno != EEXIST) fail(file, "made", errno);
  const Descriptor entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*entry < 0 || ::fsync(*entry) != 0) fail(file, "made", errno);
}

void warn_if_others_read(const fs::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0 || (status.st_mode & (S_IRGRP | S_IROTH)) == 0) return;
  log::warning("the file with the secret key {} can be read by others than its owner: chmod 600 {}",
               file.string(), file.string());
}

std::string read_key(const fs::path& file) {
  std::ifstream in(file);
  if (!in) fail(file, "read", errno);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  auto key = from_base64(text);
  if (key && key->size() == kSealKeySize) return std::move(*key);
  throw std::runtime_error(fmt::format(
      "the file with the secret key {} has none in it: it is {} bytes in base64, as `openssl rand "
      "-base64 {}` makes them",
      file.string(), kSealKeySize, kSealKeySize));
}

std::unexpected<std::string> no_key() {
  return std::unexpected<std::string>(
      "there is no key to keep secrets with: a store that is somewhere else needs --secret-key-file");
}

}  // namespace

Secrets Secrets::from_file(const fs::path& file, bool make) {
  if (make && !fs::exists(file)) make_key(file);
  Secrets secrets;
  secrets.key_ = read_key(file);
  warn_if_others_read(file);
  return secrets;
}

std::expected<std::string, std::string> Secrets::seal(std::string_view secret,
                                                      std::string_view context) const {
  if (!key_) return no_key();
  std::string text(kPrefix);
  append_base64(text, tabella::seal(*key_, secret, context));
  return text;
}

std::expected<std::string, std::string> Secrets::open(std::string_view sealed,
                                                      std::string_view context) const {
  if (!sealed.starts_with(kPrefix)) return std::string(sealed);
  if (!key_) return no_key();
  const auto bytes = from_base64(sealed.substr(kPrefix.size()));
  auto text = bytes ? unseal(*key_, *bytes, context) : std::nullopt;
  if (text) return std::move(*text);
  return std::unexpected(fmt::format(
      "the secret of {} was sealed with another key than that of --secret-key-file, or is damaged", context));
}

}  // namespace tabella::access

#include "outbox/folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/ids.h"

namespace tabella::outbox {
namespace {

using Trouble = FolderError::Kind;

std::unexpected<FolderError> folder_error(Trouble kind, std::string message) {
  return std::unexpected(FolderError{kind, std::move(message)});
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

Descriptor open_folder(const std::filesystem::path& path) {
  return Descriptor(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// The kernel sees to it that the path stays beneath the folder, whatever links there are on the way.
Descriptor open_beneath(const Descriptor& folder, const std::string& path, uint64_t flags, uint64_t mode) {
  open_how how{.flags = flags | O_CLOEXEC, .mode = mode, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  return Descriptor(static_cast<int>(syscall(SYS_openat2, folder.number(), path.c_str(), &how, sizeof how)));
}

std::unexpected<FolderError> failed_to(std::string_view what, const std::string& path) {
  const int number = errno;
  if (number == EXDEV || number == ELOOP)
    return folder_error(Trouble::outside, fmt::format("'{}' is outside the outbox's folder", path));
  if (number == ENOENT || number == ENOTDIR)
    return folder_error(Trouble::missing, fmt::format("there is no file '{}' in the outbox's folder", path));
  return folder_error(Trouble::trouble, fmt::format("cannot {} '{}': {}", what, path, std::strerror(number)));
}

bool write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

Folder::Folder(std::filesystem::path root) {
  std::error_code error;
  root_ = std::filesystem::canonical(root, error);
  given_ = std::filesystem::absolute(root);
  if (error || !std::filesystem::is_directory(root_))
    throw std::runtime_error(fmt::format("--outbox-folder: there is no folder {}", root.string()));
}

std::expected<std::string, FolderError> Folder::relative(const std::string& path) const {
  if (path.empty() || path.find('\0') != std::string::npos)
    return folder_error(Trouble::missing, "a file of the outbox's folder has a name");
  if (!path.starts_with('/')) return path;
  for (const auto* root : {&root_, &given_}) {
    const auto prefix = (*root / "").string();
    if (path.starts_with(prefix)) return path.substr(prefix.size());
  }
  return folder_error(Trouble::outside, fmt::format("'{}' is outside the outbox's folder", path));
}

std::expected<std::string, FolderError> Folder::read(const std::string& path, size_t most) const {
  const auto name = relative(path);
  if (!name) return std::unexpected(name.error());
  const auto folder = open_folder(root_);
  // Neither a pipe nor a device may keep us waiting.
  const auto file = open_beneath(folder, *name, O_RDONLY | O_NONBLOCK, 0);
  if (!file) return failed_to("read", path);
  struct stat facts{};
  if (fstat(file.number(), &facts) != 0) return failed_to("read", path);
  if (!S_ISREG(facts.st_mode)) return folder_error(Trouble::missing, fmt::format("'{}' is no file", path));
  if (static_cast<size_t>(facts.st_size) > most)
    return folder_error(Trouble::too_large, fmt::format("'{}' is larger than {} bytes", path, most));
  std::string bytes;
  std::string room(256 * 1024, '\0');
  while (bytes.size() <= most) {
    const auto n = ::read(file.number(), room.data(), room.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed_to("read", path);
    if (n == 0) return bytes;
    bytes.append(room, 0, static_cast<size_t>(n));
  }
  return folder_error(Trouble::too_large, fmt::format("'{}' is larger than {} bytes", path, most));
}

// Under another name first: a file with its own name is whole.
std::expected<void, FolderError> Folder::write_new(const std::string& path, std::string_view bytes) const {
  const auto name = relative(path);
  if (!name) return std::unexpected(name.error());
  const auto folder = open_folder(root_);
  const auto temporary = fmt::format("{}.{}.part", *name, make_uuid());
  {
    const auto file = open_beneath(folder, temporary, O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (!file) return failed_to("write", path);
    if (!write_whole(file.number(), bytes) || fsync(file.number()) != 0) {
      const auto failure = failed_to("write", path);
      unlinkat(folder.number(), temporary.c_str(), 0);
      return failure;
    }
  }
  const bool linked = linkat(folder.number(), temporary.c_str(), folder.number(), name->c_str(), 0) == 0;
  const int number = errno;
  unlinkat(folder.number(), temporary.c_str(), 0);
  if (!linked && number == EEXIST)
    return folder_error(Trouble::exists, fmt::format("there is a file '{}' already", path));
  errno = number;
  if (!linked) return failed_to("write", path);
  const Descriptor parent(
      open((root_ / std::filesystem::path(*name).parent_path()).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || fsync(parent.number()) != 0) return failed_to("write", path);
  return {};
}

}  // namespace tabella::outbox

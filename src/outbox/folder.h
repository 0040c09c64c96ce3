// A folder with payloads and messages as files, shared with other programs. Nothing outside it can be named:
// paths come from tables and requests.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

namespace tabella::outbox {

struct FolderError {
  enum class Kind { outside, missing, too_large, exists, trouble };
  Kind kind = Kind::trouble;
  std::string message;
};

// Thread-safe; all of it blocks.
class Folder {
 public:
  // May be given by a path with links. Throws std::runtime_error with a sentence for the user if there is
  // none.
  explicit Folder(std::filesystem::path root);

  // A path is relative to the folder, or absolute and in it, by the path it was given or its true one.
  // Neither "..", nor links, lead out of it.
  std::expected<std::string, FolderError> read(const std::string& path, size_t most) const;
  // Durable when it returns. A file that is there is never changed.
  std::expected<void, FolderError> write_new(const std::string& path, std::string_view bytes) const;
  // The absolute path of a file in it, as other programs are told it.
  std::string absolute(const std::string& path) const { return (root_ / path).string(); }

 private:
  std::expected<std::string, FolderError> relative(const std::string& path) const;

  std::filesystem::path root_;
  std::filesystem::path given_;  // absolute
};

}  // namespace tabella::outbox

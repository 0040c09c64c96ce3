#include "engine/faulty_file_system.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <rocksdb/file_system.h>

namespace tabella::engine {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// As POSIX's file system words it.
IOStatus status_of(int error, const std::string& file) {
  if (error == 0) return IOStatus::OK();
  if (error != ENOSPC) return IOStatus::IOError("While faking an error: " + file, std::strerror(error));
  auto status = IOStatus::NoSpace("While faking an error: " + file, std::strerror(error));
  status.SetRetryable(true);
  return status;
}

class FaultyFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<FSWritableFile> file, std::string name, const FileFaults& faults)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), faults_(faults) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const auto status = ask(FileOperation::write);
    return status.ok() ? target()->Append(data, options, debug) : status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    const auto status = ask(FileOperation::write);
    return status.ok() ? target()->Append(data, options, info, debug) : status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const auto status = ask(FileOperation::sync);
    return status.ok() ? target()->Sync(options, debug) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const auto status = ask(FileOperation::sync);
    return status.ok() ? target()->Fsync(options, debug) : status;
  }

 private:
  IOStatus ask(FileOperation operation) const { return status_of(faults_(operation, name_), name_); }

  const std::string name_;
  const FileFaults& faults_;
};

class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(FileFaults faults)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(std::move(faults)) {}

  const char* Name() const override { return "FaultyFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext* debug) override {
    auto status = status_of(faults_(FileOperation::open, name), name);
    if (status.ok()) status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok()) *result = std::make_unique<FaultyFile>(std::move(*result), name, faults_);
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    const auto status = status_of(faults_(FileOperation::rename, to), to);
    return status.ok() ? target()->RenameFile(from, to, options, debug) : status;
  }

 private:
  const FileFaults faults_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_faulty_env(FileFaults faults) {
  return rocksdb::NewCompositeEnv(std::make_shared<FaultyFileSystem>(std::move(faults)));
}

}  // namespace tabella::engine

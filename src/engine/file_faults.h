// Faults of the disk, made up for tests: what RocksDB asks of its files fails as the test says.
#pragma once

#include <functional>
#include <string_view>

namespace tabella::engine {

enum class FileOperation { open, write, sync, rename };

// Whether (errno) the operation on the file fails; 0: it is carried out. Called on any thread.
using FileFaults = std::function<int(FileOperation operation, std::string_view file)>;

}  // namespace tabella::engine

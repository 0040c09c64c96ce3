// RocksDB's file system with FileFaults in it. For database.cpp only: it shows RocksDB's headers.
#pragma once

#include <memory>

#include <rocksdb/env.h>

#include "engine/file_faults.h"

namespace tabella::engine {

std::unique_ptr<rocksdb::Env> make_faulty_env(FileFaults faults);

}  // namespace tabella::engine

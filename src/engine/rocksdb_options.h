// How RocksDB is set up. For database.cpp only: it shows RocksDB's headers.
#pragma once

#include <rocksdb/options.h>

namespace tabella::engine {

rocksdb::Options make_options();

}  // namespace tabella::engine

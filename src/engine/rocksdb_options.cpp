#include "engine/rocksdb_options.h"

#include <array>
#include <cstdarg>
#include <cstdio>

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include "base/log.h"
#include "engine/keys.h"

namespace tabella::engine {
namespace {

// RocksDB's complaints go where ours go. A file of its own would end in an assertion on a full disk.
class RocksdbLogger : public rocksdb::Logger {
 public:
  RocksdbLogger() : Logger(rocksdb::ERROR_LEVEL) {}
  using Logger::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level >= rocksdb::ERROR_LEVEL) Logv(format, arguments);
  }
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    log::warning("RocksDB: {}", text.data());
  }
};

}  // namespace

rocksdb::Options make_options() {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.block_cache = rocksdb::NewLRUCache(256u << 20, 4);
  table.block_size = 8 << 10;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;

  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(keys::kPartitionPrefix));
  options.write_buffer_size = 32u << 20;
  options.arena_block_size = 256u << 10;  // an idle store stays small
  options.max_write_buffer_number = 4;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression_per_level = {rocksdb::kNoCompression, rocksdb::kNoCompression,
                                   rocksdb::kLZ4Compression};
  // Large items are written to files of their own once, instead of each time that their level is compacted.
  options.enable_blob_files = true;
  options.min_blob_size = 4096;
  options.blob_compression_type = rocksdb::kLZ4Compression;
  options.enable_blob_garbage_collection = true;
  options.max_background_jobs = 3;  // one may be reclaiming for long
  options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  options.bytes_per_sync = 1u << 20;
  options.max_total_wal_size = 256u << 20;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.allow_concurrent_memtable_write = false;  // there is one writer
  options.avoid_unnecessary_blocking_io = true;
  options.info_log = std::make_shared<RocksdbLogger>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

}  // namespace tabella::engine

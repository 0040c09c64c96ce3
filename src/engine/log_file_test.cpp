// Logs as kills, power cuts and damage leave them.
#include "engine/log_file.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "base/ids.h"
#include "support/folder.h"

namespace tabella::engine {
namespace {

constexpr size_t kBlock = 32 * 1024;

std::string filler(size_t size) {
  std::string text;
  while (text.size() < size) text.append(make_uuid());
  text.resize(size);
  return text;
}

class LogFile : public testing::Test {
 protected:
  LogFile() {
    for (const size_t size : {10u, 100u, 40'000u, 7u, 200'000u}) records_.push_back(filler(size));
    for (const auto& record : records_) {
      append_log_record(log_, record);
      ends_.push_back(log_.size());
    }
  }

  // The sizes of the records that were read, and how the scan ended.
  LogScan scan(const std::string& bytes) {
    const auto path = folder_.path() / "000001.log";
    std::ofstream(path, std::ios::binary) << bytes;
    read_.clear();
    return scan_log(path, [&](std::string_view record) { read_.emplace_back(record); });
  }

  const test::Folder folder_;
  std::vector<std::string> records_;
  std::vector<size_t> ends_;
  std::string log_;
  std::vector<std::string> read_;
};

TEST_F(LogFile, IsReadWhole) {
  const auto found = scan(log_);
  EXPECT_TRUE(found.ends_well());
  EXPECT_FALSE(found.damaged);
  EXPECT_EQ(read_, records_);
}

TEST_F(LogFile, MayEndInZerosThatWereNeverWritten) {
  for (const size_t zeros : {1u, 7u, 5'000u, 100'000u}) {
    const auto found = scan(log_ + std::string(zeros, '\0'));
    EXPECT_TRUE(found.ends_well()) << zeros;
    EXPECT_EQ(read_, records_) << zeros;
  }
}

TEST_F(LogFile, CutAnywhereEndsWithTheLastWholeRecord) {
  for (size_t size = 0; size < log_.size(); size += 997) {
    const auto found = scan(log_.substr(0, size));
    EXPECT_FALSE(found.damaged) << size;
    EXPECT_EQ(read_.size(),
              static_cast<size_t>(std::ranges::count_if(ends_, [&](size_t e) { return e <= size; })))
        << size;
  }
}

TEST_F(LogFile, IsDamagedWhereAByteIsWrongAndRecordsFollow) {
  for (size_t at = 0; at < ends_[3]; at += 61) {
    auto bytes = log_;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const auto found = scan(bytes);
    EXPECT_TRUE(found.damaged) << at;
    EXPECT_LE(found.whole, at) << at;
  }
}

TEST_F(LogFile, TakesAHoleInTheLastRecordForOneThatWasNotFinished) {
  // The pages of a large record reach the disk in any order.
  auto bytes = log_;
  const auto hole = (ends_[3] / kBlock + 2) * kBlock;
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(hole),
            bytes.begin() + static_cast<ptrdiff_t>(hole + kBlock), '\0');
  const auto found = scan(bytes);
  EXPECT_FALSE(found.damaged);
  EXPECT_FALSE(found.ends_well());
  EXPECT_EQ(found.whole, ends_[3]);
  EXPECT_EQ(read_.size(), 4u);
}

TEST_F(LogFile, DoesNotPassOverZerosBetweenRecords) {
  auto bytes = log_;
  append_log_record(bytes, filler(50));
  const auto hole = (ends_[3] / kBlock + 2) * kBlock;
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(hole),
            bytes.begin() + static_cast<ptrdiff_t>(hole + kBlock), '\0');
  EXPECT_TRUE(scan(bytes).damaged);
  // From the end of a record to the end of its block, and a block more.
  bytes = log_.substr(0, ends_[1]);
  bytes.append(2 * kBlock - bytes.size(), '\0');
  append_log_record(bytes, filler(50));
  EXPECT_TRUE(scan(bytes).damaged);
}

TEST_F(LogFile, TellsTheSequenceNumbersOfABatch) {
  const std::string batch("\x05\0\0\0\0\0\0\0\x03\0\0\0rest", 16);
  const auto record = wal_record(batch);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->first, 5u);
  EXPECT_EQ(record->count, 3u);
  EXPECT_FALSE(wal_record("short"));
}

}  // namespace
}  // namespace tabella::engine

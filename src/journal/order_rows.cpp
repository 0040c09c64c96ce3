#include "journal/order_rows.h"

#include <optional>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/text.h"
#include "store/rows.h"

namespace tabella::journal {

using store::Row;

namespace {

constexpr char kRunsVersion = 1;
constexpr uint64_t kHighestPosition = INT64_MAX;

// Nothing where it is cut off, or more than 64 bits.
std::optional<uint64_t> take_whole_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) return std::nullopt;
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

class RunDecoder {
 public:
  RunDecoder(std::string_view bytes, Positions positions, uint64_t first)
      : left_(bytes), positions_(positions), position_(first) {}

  bool at_end() const { return left_.empty(); }
  // Nothing: the bytes are no run.
  std::optional<Run> next() {
    const auto gap = positions_ == Positions::sparse ? take_whole_varint(left_) : 0;
    auto pid = next_pid();
    const auto number = take_whole_varint(left_);
    const auto count = take_whole_varint(left_);
    if (!gap || !pid || !number || !count || *number == 0 || *count == 0) return std::nullopt;
    if (*number > kHighestPosition || *count > kHighestPosition - *number + 1) return std::nullopt;
    if (position_ > kHighestPosition || *gap > kHighestPosition - position_) return std::nullopt;
    position_ += *gap;
    if (*count > kHighestPosition - position_ + 1) return std::nullopt;
    Run run{.position = position_, .pid = std::move(*pid), .number = *number, .count = *count};
    position_ += *count;
    return run;
  }

 private:
  // 0 and the id itself; later the id's place among those of the row, from 1 on.
  std::optional<std::string> next_pid() {
    const auto place = take_whole_varint(left_);
    if (!place || *place > pids_.size()) return std::nullopt;
    if (*place > 0) return std::string(pids_[*place - 1]);
    const auto size = take_whole_varint(left_);
    if (!size || *size == 0 || *size > left_.size()) return std::nullopt;
    return std::string(pids_.emplace_back(take(left_, *size)));
  }

  std::string_view left_;
  const Positions positions_;
  uint64_t position_;
  std::vector<std::string_view> pids_;
};

}  // namespace

item::Item order_key(const std::string& journal) {
  return Row().set(kOrderPartition, journal + "#order").set(kOrderNumber, 0);
}

std::string all_partition(const std::string& journal, uint64_t position) {
  return fmt::format("{}#all#{}", journal, block_of(position));
}

std::string tag_partition(const std::string& journal, const std::string& tag) {
  return fmt::format("{}#tag#{}", journal, tag);
}

void RunEncoder::add(Run run) {
  if (last_.count > 0 && last_.pid == run.pid && last_.position + last_.count == run.position &&
      last_.number + last_.count == run.number) {
    last_.count += run.count;
    return;
  }
  flush();
  if (first_ == 0) first_ = end_ = run.position;
  last_ = std::move(run);
}

void RunEncoder::flush() {
  if (last_.count == 0) return;
  if (bytes_.empty()) bytes_.push_back(kRunsVersion);
  if (positions_ == Positions::sparse) put_varint(bytes_, last_.position - end_);
  const auto [known, is_new] = pids_.try_emplace(last_.pid, pids_.size() + 1);
  put_varint(bytes_, is_new ? 0 : known->second);
  if (is_new) put_sized(bytes_, last_.pid);
  put_varint(bytes_, last_.number);
  put_varint(bytes_, last_.count);
  end_ = last_.position + last_.count;
}

std::string RunEncoder::finish() && {
  flush();
  return std::move(bytes_);
}

store::Result<std::vector<Run>> decode_runs(std::string_view bytes, Positions positions, uint64_t first) {
  const auto damaged = [] { return store::fail(store::ErrorCode::internal, "its bytes are damaged"); };
  if (bytes.size() < 2 || first == 0) return damaged();
  if (bytes.front() != kRunsVersion)
    return store::fail(store::ErrorCode::internal,
                       fmt::format("it has version {}, which is not known", static_cast<uint8_t>(bytes[0])));
  std::vector<Run> runs;
  for (RunDecoder decoder(bytes.substr(1), positions, first); !decoder.at_end();) {
    auto run = decoder.next();
    if (!run) return damaged();
    runs.push_back(std::move(*run));
  }
  if (positions == Positions::dense && runs.back().last_position() > last_of_block(first)) return damaged();
  return runs;
}

store::Result<std::vector<Run>> runs_of(item::ItemView row, Positions positions) {
  const auto first = store::number_of(row, kOrderNumber);
  auto runs = first > 0
                  ? decode_runs(store::binary_of(row, kOrderRuns), positions, static_cast<uint64_t>(first))
                  : store::fail(store::ErrorCode::internal, "it has no position");
  if (!runs)
    runs.error().message =
        fmt::format("the row of {} at position {} cannot be read: {}",
                    printable(store::text_of(row, kOrderPartition)), first, runs.error().message);
  return runs;
}

}  // namespace tabella::journal

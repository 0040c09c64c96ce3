#include "engine/log_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/crc32c.h"

namespace tabella::engine {
namespace {

constexpr size_t kBlock = 32 * 1024;
constexpr size_t kHead = 7;

enum Type : uint8_t { full = 1, first = 2, middle = 3, last = 4 };

uint64_t little_endian(std::string_view bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint32_t unmasked(uint32_t stored) { return std::rotl(stored - 0xa282ead8, 15); }

struct Piece {
  uint8_t type = 0;
  std::string_view payload;
};

// The piece of a record at the front of `bytes`, which end with their block.
std::optional<Piece> whole_piece(std::string_view bytes) {
  if (bytes.size() < kHead) return std::nullopt;
  const auto length = little_endian(bytes.substr(4), 2);
  const auto type = static_cast<uint8_t>(bytes[6]);
  if (type < full || type > last || length > bytes.size() - kHead) return std::nullopt;
  const auto covered = bytes.substr(6, length + 1);
  if (crc32c(covered) != unmasked(static_cast<uint32_t>(little_endian(bytes, 4)))) return std::nullopt;
  return Piece{type, covered.substr(1)};
}

bool is_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

class Scanner {
 public:
  Scanner(const std::filesystem::path& file, const std::function<void(std::string_view)>& each)
      : path_(file), each_(each), in_(file, std::ios::binary), buffer_(kBlock) {
    if (!in_) throw std::runtime_error(fmt::format("{} cannot be read", file.string()));
    scan_.size = std::filesystem::file_size(file);
  }

  LogScan run() {
    for (uint64_t start = 0; start < scan_.size && !scan_.damaged; start += kBlock) {
      const auto block = read_block();
      if (state_ == State::sound)
        take_pieces(block, start);
      else if (state_ == State::zeros)
        take_zeros(block);
      else
        scan_.damaged = begins_a_record(block);
    }
    // Nothing but zeros is room that was made and not used.
    if (state_ != State::broken && !in_record_) scan_.whole = scan_.size;
    return scan_;
  }

 private:
  enum class State { sound, zeros, broken };

  std::string_view read_block() {
    in_.read(buffer_.data(), kBlock);
    if (in_.bad()) throw std::runtime_error(fmt::format("{} cannot be read", path_.string()));
    return {buffer_.data(), static_cast<size_t>(in_.gcount())};
  }

  void take_pieces(std::string_view block, uint64_t start) {
    size_t at = 0;
    while (at < block.size()) {
      const auto rest = block.substr(at);
      if (is_zero(rest)) {
        if (rest.size() >= kHead) state_ = in_record_ ? State::broken : State::zeros;
        return;
      }
      const auto piece = whole_piece(rest);
      if (!piece || !take(*piece)) {
        state_ = State::broken;
        scan_.damaged = has_record_beyond(rest);
        return;
      }
      at += kHead + piece->payload.size();
      if (!in_record_) scan_.whole = start + at;
    }
  }

  void take_zeros(std::string_view block) {
    if (is_zero(block)) return;
    state_ = State::broken;
    scan_.damaged = begins_a_record(block) || has_record_beyond(block);
  }

  // Pieces that go on with the record that is broken are not others' writes.
  static bool begins(const Piece& piece) { return piece.type == full || piece.type == first; }

  static bool begins_a_record(std::string_view block) {
    while (const auto piece = whole_piece(block)) {
      if (begins(*piece)) return true;
      block.remove_prefix(kHead + piece->payload.size());
    }
    return false;
  }

  // False if it does not follow what was before it.
  bool take(const Piece& piece) {
    if (begins(piece) == in_record_) return false;
    unfinished_.append(piece.payload);
    in_record_ = piece.type == first || piece.type == middle;
    if (in_record_) return true;
    each_(unfinished_);
    unfinished_.clear();
    return true;
  }

  // A damaged length hides where the next piece begins.
  static bool has_record_beyond(std::string_view rest) {
    for (size_t at = 1; at + kHead < rest.size(); ++at)
      if (const auto piece = whole_piece(rest.substr(at)); piece && !piece->payload.empty() && begins(*piece))
        return true;
    return false;
  }

  const std::filesystem::path& path_;
  const std::function<void(std::string_view)>& each_;
  std::ifstream in_;
  std::vector<char> buffer_;
  LogScan scan_;
  State state_ = State::sound;
  std::string unfinished_;
  bool in_record_ = false;
};

}  // namespace

LogScan scan_log(const std::filesystem::path& file, const std::function<void(std::string_view)>& each) {
  return Scanner(file, each).run();
}

void append_log_record(std::string& log, std::string_view record) {
  bool begun = false;
  do {
    size_t room = kBlock - log.size() % kBlock;
    if (room < kHead) {
      log.append(room, '\0');
      room = kBlock;
    }
    const auto payload = record.substr(0, room - kHead);
    record.remove_prefix(payload.size());
    const auto type = record.empty() ? (begun ? last : full) : (begun ? middle : first);
    begun = true;
    std::string covered(1, static_cast<char>(type));
    covered.append(payload);
    const auto masked = std::rotr(crc32c(covered), 15) + 0xa282ead8;
    for (int shift = 0; shift < 32; shift += 8) log.push_back(static_cast<char>(masked >> shift));
    for (int shift = 0; shift < 16; shift += 8) log.push_back(static_cast<char>(payload.size() >> shift));
    log.append(covered);
  } while (!record.empty());
}

std::optional<WalRecord> wal_record(std::string_view record) {
  constexpr size_t kBatchHead = 12;
  if (record.size() < kBatchHead) return std::nullopt;
  return WalRecord{.first = little_endian(record, 8),
                   .count = static_cast<uint32_t>(little_endian(record.substr(8), 4))};
}

}  // namespace tabella::engine

#include "journal/persistent_message.h"

#include "base/bytes.h"
#include "base/utf8.h"

namespace tabella::journal {
namespace {

// The fields of one message, in the order in which they stand there.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view bytes) : rest_(bytes) {}

  // False at the end, and where the bytes make no sense: broken() tells which.
  bool next() {
    if (broken_ || rest_.empty()) return false;
    const auto tag = take_number();
    number_ = tag >> 3;
    wire_type_ = static_cast<WireType>(tag & 7);
    if (number_ == 0 || number_ > kHighestField) broken_ = true;
    if (!broken_) take_value();
    return !broken_;
  }
  bool broken() const { return broken_; }

  bool is_integer(uint64_t field) const { return field == number_ && wire_type_ == WireType::varint; }
  bool is_bytes(uint64_t field) const { return field == number_ && wire_type_ == WireType::sized; }
  uint64_t integer() const { return integer_; }
  std::string_view bytes() const { return bytes_; }

 private:
  enum class WireType : uint8_t { varint = 0, eight_bytes = 1, sized = 2, four_bytes = 5 };
  static constexpr uint64_t kHighestField = (1u << 29) - 1;

  void take_value() {
    switch (wire_type_) {
      case WireType::varint: integer_ = take_number(); return;
      case WireType::sized: bytes_ = take_bytes(take_number()); return;
      case WireType::eight_bytes: take_bytes(8); return;
      case WireType::four_bytes: take_bytes(4); return;
    }
    broken_ = true;  // a group, which these messages never had, or nothing that there is
  }

  // base/bytes.h has the like for bytes of our own, which are never cut off.
  uint64_t take_number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    broken_ = true;
    return 0;
  }

  std::string_view take_bytes(uint64_t count) {
    if (count > rest_.size()) broken_ = true;
    return broken_ ? std::string_view() : take(rest_, count);
  }

  std::string_view rest_;
  bool broken_ = false;
  uint64_t number_ = 0;
  WireType wire_type_ = WireType::varint;
  uint64_t integer_ = 0;
  std::string_view bytes_;
};

std::string_view text_or_none(std::string_view bytes) {
  return is_valid_utf8(bytes) ? bytes : std::string_view();
}

// Small negative numbers take few bytes, too: 0, -1, 1, -2, … are 0, 1, 2, 3, ….
int64_t from_zigzag(uint64_t number) { return static_cast<int64_t>(number >> 1 ^ (~(number & 1) + 1)); }

// PersistentPayload. False where a field is missing that has to be there.
bool read_payload(std::string_view bytes, PersistentMessage& message) {
  bool has_serializer = false;
  bool has_payload = false;
  ProtobufFields fields(bytes);
  while (fields.next()) {
    if (fields.is_integer(1)) {
      message.serializer = static_cast<int32_t>(fields.integer());
      has_serializer = true;
    } else if (fields.is_bytes(2)) {
      message.payload = fields.bytes();
      has_payload = true;
    } else if (fields.is_bytes(3)) {
      message.serializer_manifest = text_or_none(fields.bytes());
    }
  }
  return !fields.broken() && has_serializer && has_payload;
}

// Four bytes, of which the caller knows that they are there.
uint32_t take_lowest_first(std::string_view& bytes) {
  uint32_t number = 0;
  for (int shift = 0; const char byte : take(bytes, 4)) {
    number |= static_cast<uint32_t>(static_cast<uint8_t>(byte)) << shift;
    shift += 8;
  }
  return number;
}

}  // namespace

std::optional<PersistentMessage> read_persistent_message(std::string_view bytes) {
  PersistentMessage message;
  bool has_payload = false;
  ProtobufFields fields(bytes);
  while (fields.next()) {
    if (fields.is_bytes(1))
      has_payload = read_payload(fields.bytes(), message);
    else if (fields.is_integer(4))
      message.deleted = fields.integer() != 0;
    else if (fields.is_bytes(13))
      message.writer = text_or_none(fields.bytes());
    else if (fields.is_integer(14))
      message.timestamp = from_zigzag(fields.integer());
  }
  if (fields.broken() || !has_payload) return std::nullopt;
  return message;
}

std::optional<WrappedSnapshot> read_wrapped_snapshot(std::string_view bytes) {
  if (bytes.size() < 8) return std::nullopt;
  const auto header_size = take_lowest_first(bytes);
  if (header_size < 4 || header_size > bytes.size()) return std::nullopt;
  auto header = take(bytes, header_size);
  const auto serializer = static_cast<int32_t>(take_lowest_first(header));
  return WrappedSnapshot{
      .serializer = serializer, .serializer_manifest = text_or_none(header), .payload = bytes};
}

}  // namespace tabella::journal

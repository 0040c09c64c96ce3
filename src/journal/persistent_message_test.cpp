#include "journal/persistent_message.h"

#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace tabella::journal {
namespace {

std::string varint_field(uint64_t field, uint64_t value) {
  return encode_number(field << 3) + encode_number(value);
}

std::string bytes_field(uint64_t field, std::string_view bytes) {
  std::string out = encode_number(field << 3 | 2);
  put_sized(out, bytes);
  return out;
}

std::string payload_message(uint64_t serializer, std::string_view payload) {
  return varint_field(1, serializer) + bytes_field(2, payload);
}

// As Akka writes it, with all that it ever had.
std::string full_message() {
  return bytes_field(1, payload_message(17, "the event") + bytes_field(3, "note/1")) + varint_field(2, 5) +
         bytes_field(3, "cart|1") + varint_field(4, 0) + bytes_field(7, "confirmed") +
         bytes_field(11, "akka://x") + bytes_field(12, "adapted") + bytes_field(13, "writer-1") +
         varint_field(14, uint64_t{1'700'000'000'000} << 1) + bytes_field(15, payload_message(4, "metadata"));
}

std::string lowest_first(uint32_t number) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
  return out;
}

TEST(PersistentMessage, IsReadWithWhatIsNeededOfIt) {
  const auto bytes = full_message();
  const auto message = read_persistent_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->serializer, 17);
  EXPECT_EQ(message->payload, "the event");
  EXPECT_EQ(message->serializer_manifest, "note/1");
  EXPECT_EQ(message->writer, "writer-1");
  EXPECT_EQ(message->timestamp, 1'700'000'000'000);
  EXPECT_FALSE(message->deleted);
}

TEST(PersistentMessage, IsReadAsAkkaSoldPluginsHaveLeftIt) {
  // A message of Akka's old form, as MessageFormats.proto has it.
  const std::string java(
      "\xac\xed\x00\x05t\x00\x06"
      "a-0001",
      13);
  const auto bytes = std::string("\x0a\x11\x08\x01\x12\x0d", 6) + java + "\x10\x01\x1a\x0f" +
                     "OldFormatEvents" + "\x6a\x24" + "295fa116-fa3f-4b3f-a3f9-e8e3a8d2e8c5";
  const auto message = read_persistent_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->serializer, 1);
  EXPECT_EQ(message->payload, java);
  EXPECT_EQ(message->writer, "295fa116-fa3f-4b3f-a3f9-e8e3a8d2e8c5");
  EXPECT_EQ(message->timestamp, 0);
}

TEST(PersistentMessage, MayBeDeletedAndHaveNegativeNumbers) {
  const auto bytes = bytes_field(1, payload_message(static_cast<uint64_t>(-7), "")) + varint_field(4, 1) +
                     varint_field(14, 3);
  const auto message = read_persistent_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->serializer, -7);
  EXPECT_EQ(message->payload, "");
  EXPECT_EQ(message->timestamp, -2);
  EXPECT_TRUE(message->deleted);
}

TEST(PersistentMessage, FieldsOfOtherKindsArePassedOver) {
  const auto bytes = encode_number(20 << 3 | 1) + "12345678" + encode_number(21 << 3 | 5) + "1234" +
                     varint_field(1, 5) + bytes_field(1, payload_message(4, "x")) + bytes_field(14, "no") +
                     varint_field(13, 9);
  const auto message = read_persistent_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, "x");
  EXPECT_EQ(message->writer, "");
  EXPECT_EQ(message->timestamp, 0);
}

TEST(PersistentMessage, TextsThatAreNoUtf8AreEmpty) {
  const auto bytes =
      bytes_field(1, payload_message(4, "x") + bytes_field(3, "\xff\xfe")) + bytes_field(13, "\xc3");
  const auto message = read_persistent_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->serializer_manifest, "");
  EXPECT_EQ(message->writer, "");
}

TEST(PersistentMessage, NeedsAPayloadAndItsSerializer) {
  EXPECT_FALSE(read_persistent_message(""));
  EXPECT_FALSE(read_persistent_message(varint_field(2, 5)));
  EXPECT_FALSE(read_persistent_message(bytes_field(1, "")));
  EXPECT_FALSE(read_persistent_message(bytes_field(1, varint_field(1, 4))));
  EXPECT_FALSE(read_persistent_message(bytes_field(1, bytes_field(2, "x"))));
}

TEST(PersistentMessage, BytesThatMakeNoSenseAreNone) {
  const auto good = bytes_field(1, payload_message(4, "x"));
  ASSERT_TRUE(read_persistent_message(good));
  EXPECT_FALSE(read_persistent_message(good + std::string(1, '\0')));              // field 0
  EXPECT_FALSE(read_persistent_message(good + "\x0b"));                            // a group
  EXPECT_FALSE(read_persistent_message(good + "\x0f"));                            // no wire type
  EXPECT_FALSE(read_persistent_message(good + "\x12\x05" + "1234"));               // shorter than it says
  EXPECT_FALSE(read_persistent_message(good + "\x11" + "1234567"));                // likewise
  EXPECT_FALSE(read_persistent_message(good + "\x15" + "123"));                    // likewise
  EXPECT_FALSE(read_persistent_message(good + "\x10" + std::string(11, '\x81')));  // never ends
  EXPECT_FALSE(read_persistent_message(good + "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_FALSE(read_persistent_message(bytes_field(1, payload_message(4, "x") + "\x12\x7f")));
}

// Each in memory of its own size, so that the address sanitizer sees the first byte too many.
template <class Read>
void with_exact_memory(std::string_view bytes, Read read) {
  const auto memory = std::make_unique<char[]>(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  read(std::string_view(memory.get(), bytes.size()));
}

TEST(PersistentMessage, WhateverIsCutOffOrChangedNothingOutsideIsRead) {
  const auto good = full_message();
  const auto check = [](std::string_view bytes) {
    const auto message = read_persistent_message(bytes);
    if (!message || message->payload.empty()) return;
    EXPECT_GE(message->payload.data(), bytes.data());
    EXPECT_LE(message->payload.data() + message->payload.size(), bytes.data() + bytes.size());
  };
  for (size_t length = 0; length < good.size(); ++length)
    with_exact_memory(std::string_view(good).substr(0, length), check);
  for (size_t at = 0; at < good.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      auto changed = good;
      changed[at] = static_cast<char>(byte);
      with_exact_memory(changed, check);
    }
}

TEST(WrappedSnapshot, IsReadAsAkkaSoldPluginsHaveLeftIt) {
  const std::string bytes("\x04\0\0\0\x04\0\0\0x", 9);
  const auto plain = read_wrapped_snapshot(bytes);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->serializer, 4);
  EXPECT_EQ(plain->serializer_manifest, "");
  EXPECT_EQ(plain->payload, "x");
  const auto named_bytes = lowest_first(4 + 6) + lowest_first(4711) + "note/1" + "state";
  const auto named = read_wrapped_snapshot(named_bytes);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->serializer, 4711);
  EXPECT_EQ(named->serializer_manifest, "note/1");
  EXPECT_EQ(named->payload, "state");
}

TEST(WrappedSnapshot, HeadersThatDoNotFitAreNone) {
  EXPECT_FALSE(read_wrapped_snapshot(""));
  EXPECT_FALSE(read_wrapped_snapshot(lowest_first(4)));
  EXPECT_FALSE(read_wrapped_snapshot(lowest_first(4) + "abc"));
  EXPECT_FALSE(read_wrapped_snapshot(lowest_first(3) + "abcd"));
  EXPECT_FALSE(read_wrapped_snapshot(lowest_first(5) + "abcd"));
  EXPECT_FALSE(read_wrapped_snapshot(lowest_first(0xffffffff) + "abcd"));
  EXPECT_TRUE(read_wrapped_snapshot(lowest_first(4) + "abcd"));
}

}  // namespace
}  // namespace tabella::journal

#include "journal/event.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "journal/event_attributes.h"
#include "store/rows.h"

namespace tabella::journal {
namespace {

using store::Binary;
using store::Row;

constexpr EventAttributes kBlockNames{.payload = "event", .message = "pay"};
constexpr EventAttributes kKeyNames{.payload = "payload", .message = "payload"};

// A PersistentMessage: serializer 1, payload "old", manifest "m", writer "w", time 1 s, and deleted.
const std::string kOldMessage("\x0a\x0a\x08\x01\x12\x03old\x1a\x01m\x20\x01\x6a\x01w\x70\xd0\x0f", 20);

TEST(Names, OfJournalsAreSuchThatKeysCanBeTakenApart) {
  for (const auto* name :
       {"journal", "a", "7", "orders.v2", "my_shop-1", "P", "P-x", "a-S", "a-Pp", "a-PP-b"})
    EXPECT_EQ(problem_with_journal(name), "") << name;
  for (const auto* name : {"", "a b", "a#b", "a/b", "ä", "-a", "a-", ".a", "a.", "_a", "a-P", "a-SH", "a-SL",
                           "a-P-b", "a-SH-b", "a-SL-b", "a\nb"})
    EXPECT_NE(problem_with_journal(name), "") << name;
  EXPECT_EQ(problem_with_journal(std::string(64, 'j')), "");
  EXPECT_EQ(problem_with_journal(std::string(65, 'j')),
            "the name of a journal may have 64 bytes at most, and this one has 65");
}

TEST(Names, OfEntitiesMayHaveNearlyEverything) {
  for (const auto* pid : {"a", "cart|1", "a-P-b-0", "#", "日本語", "😀", " ", "a/b?c"})
    EXPECT_EQ(problem_with_pid(pid), "") << pid;
  EXPECT_EQ(problem_with_pid(""), "a persistence id must not be empty");
  EXPECT_EQ(problem_with_pid("a\xff"), "a persistence id must be valid UTF-8");
  EXPECT_EQ(problem_with_pid("a\tb"), "a persistence id must not have control characters");
  EXPECT_EQ(problem_with_pid("a\xc2\x85"), "a persistence id must not have control characters");
  EXPECT_EQ(problem_with_pid(std::string(900, 'p')), "");
  EXPECT_NE(problem_with_pid(std::string(901, 'p')), "");
  EXPECT_EQ(problem_with_tag(std::string(128, 't')), "");
  EXPECT_NE(problem_with_tag(std::string(129, 't')), "");
  EXPECT_NE(problem_with_tag(""), "");
}

// By Java: Math.abs(pid.hashCode() % 1024).
TEST(Slices, AreThoseOfAkkaAndPekko) {
  EXPECT_EQ(slice_of(""), 0);
  EXPECT_EQ(slice_of("a"), 97);
  EXPECT_EQ(slice_of("cart|1"), 427);
  EXPECT_EQ(slice_of("bank-account-42"), 433);
  EXPECT_EQ(slice_of("ünïcödé"), 267);
  EXPECT_EQ(slice_of("日本語"), 407);
  EXPECT_EQ(slice_of("😀"), 355);
  EXPECT_EQ(slice_of("order|😀-1"), 459);
  EXPECT_EQ(slice_of("polygenelubricants"), 0);  // its hash is the lowest there is
  EXPECT_EQ(slice_of("order-P-1-0"), 856);
  EXPECT_EQ(slice_of("zzzzzzzzzzzzzzzzzzzzzz"), 64);
  EXPECT_EQ(slice_of("\xff"), 1021);  // as U+FFFD
}

TEST(Event, OfAnotherProgramHasWhatItWrote) {
  const Event event(Row()
                        .set("par", "j-P-a-0")
                        .set("num", 3)
                        .set("event", Binary{"three"})
                        .set("ev_ser_id", 4711)
                        .set("ev_ser_manifest", "note/1")
                        .set("writer_uuid", "w")
                        .set("idx", 1)
                        .set("cnt", 2),
                    3, kBlockNames);
  EXPECT_EQ(event.number(), 3u);
  EXPECT_EQ(event.payload(), "three");
  EXPECT_EQ(event.serializer(), 4711);
  EXPECT_EQ(event.manifest(), "note/1");
  EXPECT_EQ(event.writer(), "w");
  EXPECT_EQ(event.append_id(), "");
  EXPECT_EQ(event.id(), "w-3");
  EXPECT_FALSE(event.time());
  EXPECT_FALSE(event.expires());
  EXPECT_FALSE(event.is_json());
  EXPECT_FALSE(event.is_deleted());
  ASSERT_TRUE(event.batch_place());
  EXPECT_EQ(event.batch_place()->index, 1u);
  EXPECT_EQ(event.batch_place()->last, 2u);
}

TEST(Event, OfTheOldFormIsReadFromItsMessage) {
  for (const auto* names : {&kBlockNames, &kKeyNames}) {
    const Event event(Row().set(names->message, Binary{kOldMessage}), 7, *names);
    EXPECT_EQ(event.payload(), "old");
    EXPECT_EQ(event.serializer(), 1);
    EXPECT_EQ(event.manifest(), "m");
    EXPECT_EQ(event.writer(), "w");
    EXPECT_EQ(event.append_id(), "");
    EXPECT_EQ(event.id(), "w-7");
    EXPECT_EQ(event.time(), time_at(1000));
    EXPECT_TRUE(event.is_deleted());
  }
}

TEST(Event, OfOursIsNoMessageEvenIfItLooksLikeOne) {
  const Event keys(Row().set("payload", Binary{kOldMessage}).set("at", 5), 1, kKeyNames);
  EXPECT_EQ(keys.payload(), kOldMessage);
  EXPECT_EQ(keys.serializer(), kByteArraySerializer);
  EXPECT_FALSE(keys.is_deleted());
  const Event blocks(Row().set("event", Binary{"new"}).set("pay", Binary{kOldMessage}), 1, kBlockNames);
  EXPECT_EQ(blocks.payload(), "new");
  EXPECT_EQ(blocks.serializer(), kByteArraySerializer);
}

TEST(Event, WithBytesThatAreNoMessageHasNoPayloadOrTheBytes) {
  const Event blocks(Row().set("pay", Binary{"\xff\xff"}), 1, kBlockNames);
  EXPECT_EQ(blocks.payload(), "");
  EXPECT_EQ(blocks.serializer(), kByteArraySerializer);
  const Event keys(Row().set("payload", Binary{"\xff\xff"}), 1, kKeyNames);
  EXPECT_EQ(keys.payload(), "\xff\xff");
}

TEST(Event, WhoseAttributesAreOfOtherTypesIsEmpty) {
  Row row;
  for (const auto* name : {"event", "payload", "pay", "ev_ser_id", "at", "json", "tags", "confirmations",
                           "ep", "expires", "idx", "cnt"})
    row.set(name, "text");
  for (const auto* name : {"ev_ser_manifest", "writer_uuid", "eid", "type", "meta", "deleted"})
    row.set(name, 5);
  for (const auto* names : {&kBlockNames, &kKeyNames}) {
    const Event event(row, 9, *names);
    EXPECT_EQ(event.payload(), "");
    EXPECT_FALSE(event.is_json());
    EXPECT_EQ(event.type(), "");
    EXPECT_EQ(event.metadata(), "");
    EXPECT_EQ(event.id(), "9");
    EXPECT_TRUE(event.tags().empty());
    EXPECT_TRUE(event.confirmations().empty());
    EXPECT_EQ(event.serializer(), kByteArraySerializer);
    EXPECT_EQ(event.manifest(), "");
    EXPECT_EQ(event.writer(), "");
    EXPECT_FALSE(event.time());
    EXPECT_EQ(event.epoch(), 0u);
    EXPECT_FALSE(event.expires());
    EXPECT_EQ(event.append_id(), "");
    EXPECT_FALSE(event.is_deleted());
    EXPECT_FALSE(event.batch_place());
  }
}

TEST(Event, WithNumbersThatMakeNoSenseIsStillOne) {
  const Event event(Row()
                        .set("event", Binary{"x"})
                        .set("ep", -1)
                        .set("idx", 3)
                        .set("cnt", 2)
                        .set("at", INT64_MAX)
                        .set("expires", INT64_MAX)
                        .set("ev_ser_id", item::Value::number(item::parse_number("1.5").value())),
                    1, kBlockNames);
  EXPECT_EQ(event.epoch(), 0u);
  EXPECT_FALSE(event.batch_place());
  EXPECT_EQ(event.serializer(), kByteArraySerializer);
  EXPECT_EQ(event.time(), time_at(INT64_MAX));
  EXPECT_EQ(event.expires(), time_at(INT64_MAX));
}

}  // namespace
}  // namespace tabella::journal

#include "outbox/mysql_changes.h"

#include <gtest/gtest.h>

namespace tabella::outbox {
namespace {

std::string gaps_of(const MysqlPosition& position) {
  std::string out;
  for (const auto& gap : position.gaps)
    out.append(out.empty() ? "" : " ")
        .append(std::to_string(gap.first))
        .append("-")
        .append(std::to_string(gap.last));
  return out;
}

TEST(MysqlPosition, RemembersIdsThatWerePassedOver) {
  MysqlPosition position{.last = 10};
  position.pass(11, 0);
  position.pass(15, 0);
  position.pass(17, 0);
  EXPECT_EQ(gaps_of(position), "12-14 16-16");
  EXPECT_EQ(position.last, 17);
}

TEST(MysqlPosition, ForgetsIdsThatTurnedUp) {
  MysqlPosition position{.last = 10};
  position.pass(20, 0);
  position.fill(15);
  EXPECT_EQ(gaps_of(position), "11-14 16-19");
  position.fill(11);
  position.fill(19);
  EXPECT_EQ(gaps_of(position), "12-14 16-18");
  position.fill(5);
  for (const auto id : {12, 13, 14, 17}) position.fill(id);
  EXPECT_EQ(gaps_of(position), "16-16 18-18");
}

TEST(MysqlPosition, JoinsTheNearestOfTooManyGaps) {
  MysqlPosition position;
  for (int64_t id = 100; id <= 6400; id += 100) position.pass(id, 0);
  position.pass(6402, 7);
  ASSERT_EQ(position.gaps.size(), 64u);
  EXPECT_EQ(position.gaps.back().last, 6401) << "nothing is lost of it";
  position.pass(9000, 7);
  EXPECT_EQ(position.gaps.size(), 64u);
  EXPECT_EQ(position.gaps.back().last, 8999);
}

TEST(MysqlPosition, IsReadAsItWasWritten) {
  MysqlPosition position{.last = 10, .swept = 1'700'000'000};
  position.pass(13, 5);
  position.pass(20, 6);
  position.places[2] = {.at = 1'700'000'001, .id = "strange|id:%"};
  const auto text = position.text();
  EXPECT_EQ(MysqlPosition::parse(text).value().text(), text);
  EXPECT_EQ(MysqlPosition::parse(text)->places[2].id, "strange|id:%");
}

TEST(MysqlPosition, IsNothingElse) {
  for (const auto* text :
       {"", "1", "1|2|3|4", "2|10||0|0:|0:|0:|0:", "1|x||0|0:|0:|0:|0:", "1|10|5|0|0:|0:|0:|0:",
        "1|10|9-5@0|0|0:|0:|0:|0:", "1|10||0|0:|0:|0:|0", "1|10||0|0:|0:|0:|0:%"})
    EXPECT_FALSE(MysqlPosition::parse(text)) << text;
  EXPECT_TRUE(MysqlPosition::parse("1|10||0|0:|0:|0:|0:"));
}

}  // namespace
}  // namespace tabella::outbox

#include "base/time_text.h"

#include <gtest/gtest.h>

namespace tabella {
namespace {

TEST(TimeText, IsReadBackToTheMillisecond) {
  const TimePoint time{std::chrono::milliseconds{1'700'000'000'125}};
  EXPECT_EQ(time_text(time), "2023-11-14T22:13:20.125Z");
  EXPECT_EQ(parse_time(time_text(time)), time);
}

TEST(TimeText, TakesOffsetsAndAnyFraction) {
  const auto utc = parse_time("2023-11-14T22:13:20Z");
  ASSERT_TRUE(utc);
  EXPECT_EQ(parse_time("2023-11-14T23:13:20+01:00"), utc);
  EXPECT_EQ(parse_time("2023-11-14T17:43:20-04:30"), utc);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.000999Z"), utc);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.5Z"), *utc + std::chrono::milliseconds{500});
}

TEST(TimeText, RefusesWhatIsNoMoment) {
  for (const auto* text : {"", "yesterday", "2023-11-14", "2023-11-14T22:13:20", "2023-02-30T00:00:00Z",
                           "2023-11-14T24:00:00Z", "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx",
                           "-023-11-14T22:13:20Z", "2023-11-14T22:13:20+25:00", "9999-12-31T00:00:00Z"})
    EXPECT_FALSE(parse_time(text)) << text;
}

}  // namespace
}  // namespace tabella

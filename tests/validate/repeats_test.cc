#include "validate/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace windtunnel::validate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Repeats, GiveMinimumAverageP99AndMaximum) {
  std::vector<double> repeats;
  for (int i = 1; i <= 200; ++i) repeats.push_back(i);
  const auto spread = SpreadOf(repeats);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->min, 1);
  EXPECT_EQ(spread->average, 100.5);
  EXPECT_EQ(spread->p99, 198);
  EXPECT_EQ(spread->max, 200);
  EXPECT_EQ(spread->median, 100);
  EXPECT_FALSE(spread->stalled());
  EXPECT_FALSE(SpreadOf({7.0}));
}

// Case A17 (here and next).
TEST(Repeats, ALostLastPacketIsAsLateAsItsTimeout) {
  EXPECT_EQ(TimeoutExponentOf(67'108.9), 14);
  EXPECT_EQ(TimeoutExponentOf(4'294'967.3), 20);
  EXPECT_EQ(TimeoutExponentOf(17'179'869.2), 22);
  EXPECT_EQ(TimeoutExponentOf(50'000), std::nullopt);
  EXPECT_EQ(TimeoutExponentOf(0), std::nullopt);
}

TEST(Repeats, AShortEpisodeIsCalledGoodputAndNotBandwidth) {
  MeasuredRun run;
  run.id = "spiky";
  MeasuredRow row{.bytes = 1 << 20, .out_of_place_us = 700};
  row.repeats_us = {700, 690, 710, 705, 695, 700 + 67'109};
  run.rows.push_back(row);
  const std::string text = TextRepeats({run}, true);
  EXPECT_THAT(text, HasSubstr("1 rows stalled"));
  EXPECT_THAT(text, HasSubstr("goodput"));
  EXPECT_THAT(text, HasSubstr("time-out of exponent 14"));
  EXPECT_THAT(text, HasSubstr("p99 us"));
  EXPECT_THAT(text, Not(HasSubstr("bandwidth")));
}

TEST(Repeats, RunsWithoutThemSayNothing) { EXPECT_EQ(TextRepeats({MeasuredRun{}}, true), ""); }

}  // namespace
}  // namespace windtunnel::validate

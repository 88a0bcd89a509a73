#include "validate/value_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace windtunnel::validate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kFloatUnit = 1.0 / (1 << 23);

/// One row of 64 MiB floats over 8 ranks whose check printed `wrong`, decided as `algorithm`.
ValueCheck CheckOf(double wrong, timing::Algorithm algorithm, double ulp = 4,
                   const std::string& type = "float") {
  CollectiveTable table;
  CollectiveRow row{.line = 12, .bytes = 64 << 20, .type = type};
  row.out_of_place.wrong = wrong;
  table.rows.push_back(row);
  ScoredRun scored;
  scored.platform.facts.ranks = 8;
  Point point{.bytes = 64 << 20, .measured_us = 1};
  point.facts.algorithm = algorithm;
  scored.points.push_back(point);
  return CheckValues(table, scored, ulp);
}

// Case C19.
TEST(ValueCheck, WrongValuesOfARingAreAFaultAndOfNvlsANote) {
  const ValueCheck ring = CheckOf(3, timing::Algorithm::kRing);
  EXPECT_EQ(ring.wrong, 1u);
  EXPECT_THAT(TextValueCheck(ring), HasSubstr("line 12, 64 MiB, out of place: 3 wrong values"));
  const ValueCheck nvls = CheckOf(3, timing::Algorithm::kNvls);
  EXPECT_EQ(nvls.wrong, 0u);
  EXPECT_THAT(TextValueCheck(nvls), HasSubstr("within 4 units in the last place"));
}

TEST(ValueCheck, IntegersAreExactInASwitchToo) {
  EXPECT_EQ(CheckOf(3, timing::Algorithm::kNvls, 4, "int32").wrong, 1u);
}

TEST(ValueCheck, OldErrorColumnsAreHeldToRoundingsAndNvlsToSomeUnitsMore) {
  // Seven additions of half a unit each.
  EXPECT_EQ(CheckOf(3.4 * kFloatUnit, timing::Algorithm::kTree).wrong, 0u);
  EXPECT_EQ(CheckOf(3.6 * kFloatUnit, timing::Algorithm::kTree).wrong, 1u);
  EXPECT_EQ(CheckOf(7.4 * kFloatUnit, timing::Algorithm::kNvls).wrong, 0u);
  EXPECT_EQ(CheckOf(7.6 * kFloatUnit, timing::Algorithm::kNvls).wrong, 1u);
  EXPECT_EQ(CheckOf(7.6 * kFloatUnit, timing::Algorithm::kNvls, 8).wrong, 0u);
}

TEST(ValueCheck, RightRowsAreCountedAndALogWithoutChecksSaysNothing) {
  const ValueCheck right = CheckOf(0, timing::Algorithm::kRing);
  EXPECT_EQ(right.checked, 1u);
  EXPECT_THAT(right.notes, IsEmpty());
  EXPECT_THAT(TextValueCheck(right), HasSubstr("none wrong"));
  EXPECT_EQ(TextValueCheck({}), "");
}

}  // namespace
}  // namespace windtunnel::validate

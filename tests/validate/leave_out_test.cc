#include "validate/leave_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "validate/board_decisions.h"

namespace windtunnel::validate {
namespace {

using ::testing::HasSubstr;

const std::vector<ScoredRun>& ShippedScores() {
  static const std::vector<ScoredRun> scored =
      Score(ReadShippedRuns(), BoardDecisions(), timing::TimingConstants::Shipped());
  return scored;
}

const std::vector<LeftOut>& ShippedLeftOut() {
  static const std::vector<LeftOut> results =
      LeaveEachOut(ShippedScores(), timing::TimingConstants::Shipped(), 0);
  return results;
}

const LeftOut& Find(const std::vector<LeftOut>& results, LeaveLevel level,
                    const std::string& name) {
  const auto it = std::find_if(results.begin(), results.end(), [&](const LeftOut& result) {
    return result.level == level && result.left_out == name;
  });
  EXPECT_NE(it, results.end()) << name;
  return *it;
}

std::vector<double> Times(const LeftOut& result) {
  std::vector<double> times;
  for (const ScoredRun& run : result.scored)
    for (const Point& point : run.points) times.push_back(point.predicted_us[0]);
  return times;
}

TEST(LeaveOut, EveryCountedRunIsLeftOutOnceWithItsClass) {
  std::size_t counted = 0, left_out = 0;
  for (const ScoredRun& run : ShippedScores())
    if (run.counted && run.group != Group::kOtherHarness) ++counted;
  for (const LeftOut& result : ShippedLeftOut())
    if (result.level == LeaveLevel::kClass) left_out += result.runs;
  EXPECT_EQ(left_out, counted);
}

TEST(LeaveOut, TheAnswerForAClassLeftOutDoesNotDependOnItsOwnConstants) {
  const auto& shipped = timing::TimingConstants::Shipped();
  timing::GpuConstants gpu = shipped.Gpu("h100");
  for (const timing::NamedConstant& constant : timing::NamedConstants(gpu))
    if (constant.name != "link_raw_gbps") *constant.value *= 3;
  timing::FabricConstants fabric = shipped.Fabric("tcpxo");
  fabric.ll_hop_us *= 3;
  fabric.nic_share /= 2;
  std::vector<ScoredRun> one_node, several;
  for (const ScoredRun& run : ShippedScores())
    (run.platform.facts.nodes > 1 ? several : one_node).push_back(run);
  EXPECT_EQ(Times(Find(LeaveEachOut(one_node, shipped.With(gpu), 0), LeaveLevel::kClass, "h100")),
            Times(Find(ShippedLeftOut(), LeaveLevel::kClass, "h100")));
  EXPECT_EQ(
      Times(Find(LeaveEachOut(several, shipped.With(fabric), 0), LeaveLevel::kClass, "tcpxo")),
      Times(Find(ShippedLeftOut(), LeaveLevel::kClass, "tcpxo")));
}

TEST(LeaveOut, TheSearchNeverMakesTheRunsLeftInWorse) {
  for (const LeftOut& result : ShippedLeftOut())
    EXPECT_LE(result.fit_after, result.fit_before) << result.left_out;
}

TEST(LeaveOut, BoardsOfKnownGenerationsMeetTheGoalsForUnseenPlatforms) {
  std::vector<ScoredRun> runs;
  for (const LeftOut& result : ShippedLeftOut())
    if (result.level == LeaveLevel::kPlatform && !result.network)
      runs.insert(runs.end(), result.scored.begin(), result.scored.end());
  const Bands bands =
      Summarise(runs, Predictor::kWindtunnel, [](const ScoredRun&) { return true; });
  for (std::size_t band = 0; band < kBandCount; ++band) {
    EXPECT_LE(bands[band].median, UnseenGoalsOf(false)[band].median) << kBandNames[band];
    EXPECT_LE(bands[band].p90, UnseenGoalsOf(false)[band].p90) << kBandNames[band];
  }
}

TEST(LeaveOut, TheNumberOfThreadsChangesNothing) {
  std::vector<ScoredRun> few;
  for (const ScoredRun& run : ShippedScores())
    if (run.platform.facts.nodes > 1) few.push_back(run);
  const auto& constants = timing::TimingConstants::Shipped();
  EXPECT_EQ(JsonLeaveOut(LeaveEachOut(few, constants, 1)),
            JsonLeaveOut(LeaveEachOut(few, constants, 4)));
}

TEST(LeaveOut, TextStatesTheMethodAndTheGoals) {
  const std::string text = TextLeaveOut(ShippedLeftOut());
  EXPECT_THAT(text, HasSubstr("searched again on the runs left in"));
  EXPECT_THAT(text, HasSubstr("goal for unseen platforms"));
  EXPECT_THAT(text, HasSubstr("b200 without it"));
}

}  // namespace
}  // namespace windtunnel::validate

#include "collectives/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/functional.h"
#include "collectives/goal_run.h"
#include "interconnect/foreign/foreign_topology.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

std::string Fault(std::string_view text) {
  try {
    ReadGoal(text, "file.goal");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Cluster Pair() {
  return Cluster(ReadForeignTopology(
      "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 1 ]\nlatency: [ 500 ]\n",
      ForeignFormat::kAstraSim, "test"));
}

Picoseconds Time(const GoalSchedule& schedule, const GoalRunOptions& options = {}) {
  return RunGoal(schedule, Pair(), options).time;
}

constexpr std::string_view kPingPong =
    "num_ranks 2\n\nrank 0 {\nl1: calc 1000 cpu 0\nl2: send 1024b to 1 tag 7 cpu 0\n"
    "l3: recv 2048b from 1 tag 8\nl2 requires l1\nl3 requires l2\n}\n"
    "rank 1 {\nl1: recv 1024b from 0 tag 7\nl2: send 2048b to 0 tag 8\nl2 requires l1\n}\n";

TEST(GoalTest, APingPongTakesItsCalculationItsBytesAndItsLatencies) {
  EXPECT_TRUE(LooksLikeGoal(kPingPong));
  const GoalSchedule schedule = ReadGoal(kPingPong, "file.goal");
  EXPECT_EQ(schedule.plan.request.rank_count, 2u);
  EXPECT_EQ(schedule.plan.blocks.size(), 5u);
  // 1 us, 3 KiB at 2^30 bytes/s, two ways of two hops of 500 ns.
  const double wire_us = 3072.0 / (1 << 30) * 1e6;
  EXPECT_NEAR(ToMicroseconds(Time(schedule)), 1 + wire_us + 2, 1e-3);
}

TEST(GoalTest, StartDependenciesDoNotWaitForTheEnd) {
  const std::string tail = "}\nrank 1 {\nl1: recv 1024b from 0 tag 1\n}\n";
  const std::string head = "num_ranks 2\nrank 0 {\nl1: calc 5000\nl2: send 1024b to 1 tag 1\n";
  const GoalSchedule after = ReadGoal(head + "l2 requires l1\n" + tail, "f");
  const GoalSchedule beside = ReadGoal(head + "l2 irequires l1\n" + tail, "f");
  EXPECT_GT(Time(after), Microseconds(6));
  EXPECT_EQ(Time(beside), Microseconds(5));
}

TEST(GoalTest, LevelsAgreeAndHostTimeIsPaidPerMessage) {
  const GoalSchedule schedule = ReadGoal(kPingPong, "file.goal");
  const Picoseconds flow = Time(schedule);
  EXPECT_NEAR(ToMicroseconds(Time(schedule, {.fidelity = Fidelity::kPacket})), ToMicroseconds(flow),
              0.02 * ToMicroseconds(flow));
  // Two sends and two receives, one after the other.
  EXPECT_EQ(Time(schedule, {.overhead = Microseconds(2)}), flow + Microseconds(8));
  const GoalOutcome outcome = RunGoal(schedule, Pair(), {});
  EXPECT_EQ(outcome.messages, 2u);
  EXPECT_EQ(outcome.payload, Bytes(3072));
  EXPECT_EQ(outcome.rank_end[0].since_start(), outcome.time);
  EXPECT_LT(outcome.rank_end[1], outcome.rank_end[0]);
}

/// `senders` ranks send a MiB each to rank 0.
GoalSchedule Incast(int senders) {
  std::string text = "num_ranks " + std::to_string(senders + 1) + "\nrank 0 {\n";
  for (int i = 1; i <= senders; ++i) text += "recv 1048576b from " + std::to_string(i) + "\n";
  text += "}\n";
  for (int i = 1; i <= senders; ++i)
    text += "rank " + std::to_string(i) + " {\nsend 1048576b to 0\n}\n";
  return ReadGoal(text, "incast.goal");
}

Cluster StarOf(int npus) {
  return Cluster(ReadForeignTopology("topology: [ Switch ]\nnpus_count: [ " + std::to_string(npus) +
                                         " ]\nbandwidth: [ 1 ]\nlatency: [ 500 ]\n",
                                     ForeignFormat::kAstraSim, "test"));
}

TEST(GoalTest, AtAnalyticLevelAnIncastTakesTheTimeOfItsBusiestLink) {
  const GoalSchedule schedule = Incast(10);
  const Cluster star = StarOf(11);
  const GoalOutcome outcome = RunGoal(schedule, star, {.fidelity = Fidelity::kAnalytic});
  // 10 MiB at 2^30 bytes/s.
  const double wire_us = 10.0 / 1024 * 1e6;
  EXPECT_NEAR(ToMicroseconds(outcome.time), wire_us, 1e-3 * wire_us);
  EXPECT_EQ(outcome.links.rows.front().utilisation, 1);
  EXPECT_LE(outcome.time, RunGoal(schedule, star, {}).time) << "a bound of the flow level";
}

TEST(GoalTest, BackgroundThatOutlivesTheScheduleCountsUpToItsEnd) {
  const std::string twice = "background=npu3->npu0@1,background=npu3->npu0@1";
  const GoalOutcome outcome = RunGoal(
      Incast(2), StarOf(4), {.fidelity = Fidelity::kPacket, .gpus = {0, 1, 2}, .network = twice});
  for (const LinkLoadReport::Row& row : outcome.links.rows) EXPECT_LE(row.utilisation, 1);
}

TEST(GoalTest, RanksThatAreNotAsManyAsGpusAreRefusedWithBothNumbers) {
  const GoalSchedule schedule =
      ReadGoal("num_ranks 3\nrank 0 {\ncalc 1\n}\nrank 1 {\ncalc 1\n}\nrank 2 {\ncalc 1\n}\n", "f");
  try {
    RunGoal(schedule, Pair(), {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("3"), ::testing::HasSubstr("2 GPUs")));
  }
}

TEST(GoalTest, MistakesAreNamedByLine) {
  EXPECT_THAT(Fault("rank 0 {\n}\n"), ::testing::HasSubstr("before num_ranks"));
  EXPECT_THAT(Fault("num_ranks 1\nrank 0 {\nl1: sned 8b to 0\n}\n"),
              ::testing::AllOf(::testing::HasSubstr("file.goal:3"),
                               ::testing::HasSubstr("is no operation")));
  EXPECT_THAT(Fault("num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\n"),
              ::testing::HasSubstr("1 sends meet 0 receives"));
  EXPECT_THAT(Fault("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n"),
              ::testing::HasSubstr("another size"));
  EXPECT_THAT(Fault("num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l2\n}\n"),
              ::testing::HasSubstr("no operation above has the label"));
  EXPECT_THAT(Fault("num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l1\n}\n"),
              ::testing::HasSubstr("waits for itself"));
  EXPECT_THAT(Fault("num_ranks 4000000000\n"), ::testing::HasSubstr("4000000000"));
  EXPECT_THAT(Fault("num_ranks 1\nrank 0 {\n"), ::testing::HasSubstr("missing at the end"));
}

}  // namespace
}  // namespace windtunnel

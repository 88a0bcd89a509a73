#include "collectives/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/functional.h"
#include "interconnect/flow_network.h"
#include "interconnect/foreign/foreign_topology.h"
#include "sim/error.h"
#include "tests/support/plain_setting.h"

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

// The `calc` times of a schedule as overheads of its blocks.
class GoalSetting final : public ExecutionSetting {
 public:
  GoalSetting(const GoalSchedule& schedule, ExecutionSetting& base)
      : schedule_(schedule), base_(base) {
    for (const Picoseconds work : schedule.work) times_.push_back({.empty_slice_overhead = work});
  }
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    return base_.PathOf(sender, to);
  }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override { return {}; }
  const BlockTimes& TimesOf(Rank, const Block& block) override {
    return times_[static_cast<std::size_t>(&block - schedule_.plan.blocks.data())];
  }
  SimTime StartOf(Rank) override { return SimTime(); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }

 private:
  const GoalSchedule& schedule_;
  ExecutionSetting& base_;
  std::vector<BlockTimes> times_;
};

Picoseconds Time(const GoalSchedule& schedule) {
  const Cluster cluster(ReadForeignTopology(
      "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 1 ]\nlatency: [ 500 ]\n",
      ForeignFormat::kAstraSim, "test"));
  FlowNetwork network(cluster);
  testing::PlainSetting base(cluster, network);
  GoalSetting setting(schedule, base);
  return RunTimed(schedule.plan, network, setting).time;
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

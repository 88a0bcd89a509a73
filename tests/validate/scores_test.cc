#include "validate/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "collectives/timing/time_model.h"
#include "sim/data_files.h"
#include "sim/error.h"
#include "tests/support/test_support.h"
#include "validate/board_decisions.h"
#include "validate/report.h"
#include "validate/topology_decisions.h"

namespace windtunnel::validate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A source that always decides for one ring in Simple: tests of scores need no more.
class OneRing final : public DecisionSource {
 public:
  std::string name() const override { return "one ring"; }
  Decision Decide(const Platform& platform, const MeasuredRun&, Bytes size) const override {
    Decision decision{.facts = platform.facts, .nccl_estimate_us = 1};
    decision.facts.size = size;
    decision.facts.chunk = MiB(2);
    decision.facts.channels = 24;
    decision.facts.channel_bytes = Bytes(std::max<std::uint64_t>(1, size.count() / 24));
    return decision;
  }
};

MeasuredRun HealthyRun(const std::string& id) {
  MeasuredRun run;
  run.id = id;
  run.set = "test";
  run.gpu = "H100 80GB HBM3";
  run.gpus_per_node = 8;
  run.interconnect = "NVSwitch";
  run.links_per_gpu = 18;
  run.collective = "all_reduce";
  run.dtype = "float";
  run.ranks = 8;
  run.nccl = "2.28.9";
  for (std::uint64_t bytes = 8; bytes <= 1u << 30; bytes *= 2) {
    MeasuredRow row;
    row.bytes = bytes;
    row.out_of_place_us = 1;
    run.rows.push_back(row);
  }
  return run;
}

std::vector<ScoredRun> ScoreAll(const std::vector<MeasuredRun>& runs) {
  return Score(runs, OneRing(), timing::TimingConstants::Shipped());
}

/// A run whose measured times are the model's own, divided by `factor(bytes)`.
template <class Factor>
MeasuredRun RunOffBy(const std::string& id, Factor factor) {
  MeasuredRun run = HealthyRun(id);
  const auto scored = ScoreAll({run});
  for (std::size_t i = 0; i < run.rows.size(); ++i)
    run.rows[i].out_of_place_us = scored[0].points[i].predicted_us[0] / factor(run.rows[i].bytes);
  return run;
}

const auto kAll = [](const ScoredRun&) { return true; };

// Cases A03 (here and next).
TEST(Scores, ATenPercentBiasIsReportedAsTenPercentInEveryBand) {
  const auto scored = ScoreAll({RunOffBy("ten", [](std::uint64_t) { return 1.1; })});
  for (const Summary& band : Summarise(scored, Predictor::kWindtunnel, kAll)) {
    EXPECT_NEAR(band.median, 0.10, 1e-9);
    EXPECT_NEAR(band.p90, 0.10, 1e-9);
    EXPECT_NEAR(band.worst, 0.10, 1e-9);
    EXPECT_NEAR(band.bias, 0.10, 1e-9);
  }
}

TEST(Scores, AnErrorBelow64KibShowsInItsBandsAndNotInTheOthers) {
  const auto scored =
      ScoreAll({RunOffBy("small", [](std::uint64_t bytes) { return bytes < 65536 ? 1.5 : 1.0; })});
  const Bands bands = Summarise(scored, Predictor::kWindtunnel, kAll);
  EXPECT_NEAR(bands[0].bias, 0.5, 1e-9);
  EXPECT_NEAR(bands[1].p90, 0.5, 1e-9);
  for (std::size_t band = 2; band < kBandCount; ++band) EXPECT_NEAR(bands[band].worst, 0, 1e-9);
}

TEST(Scores, EveryRunHasTheSameWeightHoweverManyRowsItHas) {
  MeasuredRun few = RunOffBy("few", [](std::uint64_t) { return 2.0; });
  few.rows.resize(1);
  MeasuredRun many = RunOffBy("many", [](std::uint64_t) { return 1.0; });
  MeasuredRun third = few;
  third.id = "third";
  const Bands bands = Summarise(ScoreAll({few, many, third}), Predictor::kWindtunnel, kAll);
  EXPECT_EQ(bands[0].runs, 3u);
  EXPECT_NEAR(bands[0].median, 1.0, 1e-9);
}

TEST(Scores, BandsEndAtTheirInclusiveUpperSizes) {
  EXPECT_EQ(BandOf(8), 0u);
  EXPECT_EQ(BandOf(4096), 0u);
  EXPECT_EQ(BandOf(4097), 1u);
  EXPECT_EQ(BandOf(256 << 10), 1u);
  EXPECT_EQ(BandOf(8 << 20), 2u);
  EXPECT_EQ(BandOf(256 << 20), 3u);
  EXPECT_EQ(BandOf((256 << 20) + 1), 4u);
}

TEST(Scores, MisconfiguredRunsAreListedAndNotCounted) {
  MeasuredRun wrong = RunOffBy("wrong", [](std::uint64_t) { return 3.0; });
  wrong.quality = Quality::kMisconfigured;
  wrong.fault = "far-nic";
  const auto scored = ScoreAll({wrong});
  EXPECT_FALSE(scored[0].counted);
  EXPECT_TRUE(MissedGoals(scored).empty());
  EXPECT_THAT(TextReport(scored, "x", {}), HasSubstr("misconfigured: far-nic (1): wrong"));
}

TEST(Scores, ARunFartherOffThanThreeTimesTheGoalIsNamed) {
  std::vector<MeasuredRun> runs;
  for (int i = 0; i < 30; ++i)
    runs.push_back(RunOffBy("good" + std::to_string(i), [](std::uint64_t) { return 1.0; }));
  EXPECT_TRUE(MissedGoals(ScoreAll(runs)).empty());
  runs.push_back(RunOffBy("far", [](std::uint64_t) { return 2.0; }));
  const auto misses = MissedGoals(ScoreAll(runs));
  ASSERT_FALSE(misses.empty());
  for (const Miss& miss : misses)  // Medians and p90 are met: 30 of 31 runs agree.
    EXPECT_THAT(miss.what, AllOf(HasSubstr("1 of 31 runs above 3 times"), HasSubstr("far (")));
}

TEST(Scores, ARunOnUnknownHardwareIsListedWithItsReason) {
  MeasuredRun run = HealthyRun("strange");
  run.gpu = "Radeon";
  EXPECT_THAT(TextReport(ScoreAll({run}), "x", {}),
              HasSubstr("not mapped: unknown GPU 'Radeon' (1): strange"));
}

TEST(Platforms, ARateInGibibytesIsNoSignOfGooglesRoce) {
  MeasuredRun run = HealthyRun("two nodes");
  run.gpu = "B200";
  run.nodes = 2;
  run.ranks = 16;
  run.nic = "8 x ConnectX-7 NDR 400 Gb/s InfiniBand (ib_write_bw 45 GiB/s)";
  EXPECT_EQ(MapRun(run).platform.facts.fabric_class, "ib-ndr");
  run.nic = "RoCE (gIB), 8 x 400 Gb/s";
  EXPECT_EQ(MapRun(run).platform.facts.fabric_class, "roce");
}

TEST(Platforms, EightGpusOfWhichALogSaysNoMoreHangAtNvswitches) {
  MeasuredRun run = HealthyRun("log");
  run.interconnect.clear();
  run.links_per_gpu = 0;
  EXPECT_TRUE(MapRun(run).platform.switched);
  run.gpus_per_node = run.ranks = 4;
  EXPECT_FALSE(MapRun(run).platform.switched) << "boards of four are meshes as well";
}

TEST(Platforms, AnNvswitchBoardWhoseNicsAreNotCountedHasOnePerGpu) {
  MeasuredRun run = HealthyRun("two nodes");
  run.nodes = 2;
  run.ranks = 16;
  run.nic = "not stated";
  const Platform platform = MapRun(run).platform;
  EXPECT_EQ(platform.facts.nics_per_node, 8u);
  EXPECT_TRUE(platform.nics_assumed);
}

TEST(TopologyDecisions, AnswerForTheWholeSetAndNameThePlatformsTheyCannotSearch) {
  const TopologyDecisions decisions;
  const auto scored = Score(ReadShippedRuns(), decisions, timing::TimingConstants::Shipped());
  const auto counted = [](const std::vector<ScoredRun>& runs) {
    return std::count_if(runs.begin(), runs.end(),
                         [](const ScoredRun& run) { return run.counted; });
  };
  EXPECT_EQ(counted(scored), counted(Score(ReadShippedRuns(), BoardDecisions(),
                                           timing::TimingConstants::Shipped())));
  const auto notes = decisions.notes();
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("no such topology")));
  EXPECT_LT(notes.size(), 10u);
}

TEST(Scores, AStepTheModelLacksIsReportedWithSizeAndHeight) {
  const auto scored = ScoreAll(
      {RunOffBy("cliff", [](std::uint64_t bytes) { return bytes >= (64u << 20) ? 0.5 : 1.0; })});
  const auto steps = UnexplainedSteps(scored);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].bytes, 64u << 20);
  EXPECT_NEAR(steps[0].measured / steps[0].predicted, 2.0, 0.05);
}

TEST(Scores, LargeAllReducesHaveAGeometricMeanErrorOfTheirClass) {
  const auto alternating = [](std::uint64_t bytes) {
    if (bytes < (1U << 20)) return 3.0;  // Too small to count.
    return std::countr_zero(bytes) % 2 == 0 ? 1.1 : 1 / 1.1;
  };
  const auto exact = [](std::uint64_t) { return 1.0; };
  const auto one = ScoreAll({RunOffBy("one", alternating)});
  EXPECT_NEAR(LargeAllReduceError(one, "h100").error, 0.1, 1e-9);
  EXPECT_EQ(LargeAllReduceError(one, "a100").runs, 0U);
  EXPECT_THAT(TextReport(one, "x", {}), HasSubstr("error 10.0 % over 1 runs (goal 5 %, missed)"));
  const auto two = ScoreAll({RunOffBy("one", alternating), RunOffBy("two", exact)});
  EXPECT_NEAR(LargeAllReduceError(two, "h100").error, std::sqrt(1.1) - 1, 1e-9);
}

TEST(Scores, PairsInTheWrongOrderAreCounted) {
  const auto scored = ScoreAll({RunOffBy("slow", [](std::uint64_t) { return 0.5; }),
                                RunOffBy("fast", [](std::uint64_t) { return 1.0; })});
  const PairOrder order = OrderOfPairs(scored);
  EXPECT_EQ(order.pairs, scored[0].points.size());
  EXPECT_EQ(order.right, 0u);
}

TEST(Scores, TwoRealRunsOfOnePlatformGiveTheNoiseFloor) {
  const Bands noise = NoiseFloor(ScoreAll({RunOffBy("a", [](std::uint64_t) { return 1.0; }),
                                           RunOffBy("b", [](std::uint64_t) { return 0.8; })}),
                                 kAll);
  EXPECT_NEAR(noise[4].median, 0.25, 1e-9);
}

TEST(Scores, UnlikeBoardsAndUnlikeCallsGiveNoNoise) {
  const auto noise_of = [](const std::vector<MeasuredRun>& runs) {
    std::size_t points = 0;
    for (const Summary& band : NoiseFloor(ScoreAll(runs), kAll)) points += band.points;
    return points;
  };
  const MeasuredRun first = RunOffBy("a", [](std::uint64_t) { return 1.0; });
  MeasuredRun second = RunOffBy("b", [](std::uint64_t) { return 0.8; });
  EXPECT_GT(noise_of({first, second}), 0u);
  second.gpu = "NVIDIA H200";
  EXPECT_EQ(noise_of({first, second}), 0u) << "another board of the class";
  second = first;
  second.links_per_gpu = 12;
  EXPECT_EQ(noise_of({first, second}), 0u) << "fewer links";
  second = first;
  second.collective = "all_gather";
  EXPECT_EQ(noise_of({first, second}), 0u) << "another collective";
}

TEST(Scores, AnotherChoiceOfNcclIsNoNoise) {
  MeasuredRun first = HealthyRun("first");
  MeasuredRun forced = HealthyRun("forced");
  forced.environment["NCCL_PROTO"] = "Simple";
  const auto scored = Score({first, forced}, BoardDecisions(), timing::TimingConstants::Shipped());
  // Small sizes are LL in one run and Simple in the other; the largest are Simple in both.
  EXPECT_EQ(NoiseFloor(scored, kAll)[0].points, 0u);
}

// Case A20.
TEST(Cliffs, AFallThatStaysIsReportedWithSizeAndHeightAndTheModelStaysSmooth) {
  // 13 % lower from 512 MiB on, as in threads without a cause.
  const auto scored = ScoreAll(
      {RunOffBy("cliff", [](std::uint64_t bytes) { return bytes >= (512u << 20) ? 0.87 : 1.0; })});
  const auto cliffs = Cliffs(scored);
  ASSERT_EQ(cliffs.size(), 1u);
  EXPECT_EQ(cliffs[0].bytes, 512u << 20);
  EXPECT_NEAR(cliffs[0].height, -0.13, 0.01);
  const auto& points = scored[0].points;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i - 1].bytes < (64u << 20)) continue;
    const double before = static_cast<double>(points[i - 1].bytes) / points[i - 1].predicted_us[0];
    const double behind = static_cast<double>(points[i].bytes) / points[i].predicted_us[0];
    EXPECT_GT(behind, 0.99 * before) << points[i].bytes;
  }
  EXPECT_THAT(TextReport(scored, "x", {}), HasSubstr("not fitted"));
}

TEST(Cliffs, ASingleSlowSizeIsNoCliff) {
  EXPECT_TRUE(
      Cliffs(ScoreAll({RunOffBy(
                 "dip", [](std::uint64_t bytes) { return bytes == (256u << 20) ? 0.7 : 1.0; })}))
          .empty());
}

TEST(MeasuredRow, AStalledOutOfPlaceValueGivesWayToTheInPlaceOne) {
  MeasuredRow row{.bytes = 8, .out_of_place_us = 30, .in_place_us = 10};
  EXPECT_EQ(row.scored_us(), 10);
  row.out_of_place_us = 14;
  EXPECT_EQ(row.scored_us(), 14);
}

TEST(RunFiles, ShippedSetIsReadWholeAndEveryRunHasASource) {
  const auto runs = ReadShippedRuns();
  EXPECT_EQ(runs.size(), 340u);
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(),
                          [](const MeasuredRun& run) { return !run.source.empty(); }));
  EXPECT_EQ(std::count_if(runs.begin(), runs.end(),
                          [](const MeasuredRun& run) {
                            return run.quality == Quality::kMisconfigured && run.fault.empty();
                          }),
            0);
}

TEST(RunFiles, ShippedFiguresEqualTheRunFilesTheyCameFrom) {
  WT_REFERENCE_OR_SKIP(reference);
  std::map<std::string, MeasuredRun> shipped;
  for (MeasuredRun& run : ReadShippedRuns()) shipped[run.id] = std::move(run);
  std::size_t rows = 0;
  for (const char* folder : {"nccl", "nccl-nvidia"}) {
    for (const MeasuredRun& run : ReadRunFolder(reference / "data" / folder)) {
      const MeasuredRun& ours = shipped.at(run.id);
      ASSERT_EQ(ours.rows.size(), run.rows.size()) << run.id;
      for (std::size_t i = 0; i < run.rows.size(); ++i) {
        EXPECT_EQ(ours.rows[i].bytes, run.rows[i].bytes);
        EXPECT_NEAR(*ours.rows[i].scored_us(), *run.rows[i].scored_us(), 1e-3) << run.id;
        ++rows;
      }
      // Both forms map to the same machine.
      const Mapping a = MapRun(run), b = MapRun(ours);
      ASSERT_EQ(a.mapped, b.mapped) << run.id;
      EXPECT_EQ(a.platform.name, b.platform.name) << run.id;
      EXPECT_EQ(a.platform.facts.launch, b.platform.facts.launch) << run.id;
      EXPECT_EQ(a.platform.topology, b.platform.topology) << run.id;
    }
  }
  EXPECT_GT(rows, 4000u);
}

TEST(RunFiles, AWrongLaunchIsRefusedByName) {
  const auto file = testing::TemporaryDir() / "run.json";
  std::ofstream(file) << R"({"collective": "all_reduce", "launch": "threads", "rows": []})";
  try {
    ReadRunFile(file);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("process_per_gpu or single_process"));
  }
}

double BandMedian(const std::vector<ScoredRun>& scored, std::size_t band) {
  return Summarise(scored, Predictor::kWindtunnel,
                   [](const ScoredRun& run) {
                     return run.counted && run.run.set == "nvidia" && run.group == Group::kOneNode;
                   })[band]
      .median;
}

TEST(Canary, LinksATenthSlowerMissTheGoalsThatAreMetWithTheRightOnes) {
  std::vector<MeasuredRun> runs;
  for (MeasuredRun& run : ReadShippedRuns())
    if (run.set == "nvidia") runs.push_back(std::move(run));
  const BoardDecisions decisions;
  const auto& constants = timing::TimingConstants::Shipped();
  const auto right = Score(runs, decisions, constants);
  for (std::size_t band = 0; band < kBandCount - 1; ++band)
    EXPECT_LT(BandMedian(right, band), GoalsOf(Group::kOneNode)[band].median) << band;

  class SlowLinks final : public DecisionSource {
   public:
    std::string name() const override { return "links 10 % slower"; }
    Decision Decide(const Platform& platform, const MeasuredRun& run, Bytes size) const override {
      Decision decision = BoardDecisions().Decide(platform, run, size);
      const auto rate = decision.facts.link_rate.count();
      decision.facts.link_rate = BitsPerSecond(rate / 10 * 9);
      return decision;
    }
  };
  const auto slow = Score(runs, SlowLinks(), constants);
  EXPECT_GT(BandMedian(slow, 4), 2 * BandMedian(right, 4));
  EXPECT_FALSE(MissedGoals(slow).empty());
}

TEST(Baselines, AreBeatenInEveryBand) {
  const auto scored =
      Score(ReadShippedRuns(), BoardDecisions(), timing::TimingConstants::Shipped());
  for (const Group group : {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport}) {
    const auto select = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const Bands ours = Summarise(scored, Predictor::kWindtunnel, select);
    const Bands nccl = Summarise(scored, Predictor::kNccl, select);
    const Bands sheet = Summarise(scored, Predictor::kDataSheet, select);
    for (std::size_t band = 0; band < kBandCount; ++band) {
      EXPECT_LT(ours[band].median, nccl[band].median) << ToString(group) << kBandNames[band];
      EXPECT_LT(ours[band].median, sheet[band].median) << ToString(group) << kBandNames[band];
    }
  }
}

/// 8 GiB all-reduce of nodes with 8 H100 and one NIC of 50 GB/s, NCCL's algorithm forced.
double OneNicTimeUs(std::uint32_t nodes, const char* algorithm) {
  MeasuredRun run = HealthyRun("one NIC");
  run.nodes = nodes;
  run.ranks = 8 * nodes;
  run.nic = "1 x ConnectX-7 NDR 400 Gb/s";
  run.environment = {{"NCCL_ALGO", algorithm}, {"NCCL_PROTO", "Simple"}};
  run.rows = {{.bytes = std::uint64_t{8} << 30, .out_of_place_us = 1}};
  return Score({run}, BoardDecisions(), timing::TimingConstants::Shipped())[0]
      .points[0]
      .predicted_us[0];
}

// Case C23.
TEST(Physics, ATreeOfTwoNodesBeatsTheNicAndThreeNodesNoLongerDo) {
  const double bytes = std::exp2(33);
  const double nic = 50;
  const double tree = bytes / OneNicTimeUs(2, "Tree") / 1000;
  const double ring = bytes / OneNicTimeUs(2, "Ring") / 1000;
  const double factor = BusBandwidthFactor(Function::kAllReduce, 16);
  EXPECT_EQ(factor, 1.875);
  EXPECT_LE(tree, nic);
  EXPECT_GT(tree, 0.95 * nic);
  EXPECT_GT(tree * factor, 1.7 * nic) << "the bus bandwidth of a tree may exceed the NIC";
  EXPECT_LE(ring * factor, nic) << "that of a ring may not";
  EXPECT_NEAR(tree / ring, 2.0, 0.15);
  for (const std::uint32_t nodes : {3u, 4u, 8u})
    EXPECT_LT(OneNicTimeUs(nodes, "Ring") / OneNicTimeUs(nodes, "Tree"), 1.15) << nodes;
}

// Case A04.
TEST(Physics, NoPredictionIsFasterThanTheWire) {
  const auto scored =
      Score(ReadShippedRuns(), BoardDecisions(), timing::TimingConstants::Shipped());
  for (const ScoredRun& run : scored) {
    for (const Point& point : run.points) {
      const timing::CallFacts& facts = point.facts;
      // A tree over two nodes and in-switch sums move less than a ring; see docs/timing-model.md.
      if (facts.algorithm != timing::Algorithm::kRing) continue;
      const double busbw = static_cast<double>(point.bytes) *
                           BusBandwidthFactor(facts.function, facts.ranks) / point.predicted_us[0] /
                           1000;
      double limit = ToGigabytesPerSecond(facts.link_rate);
      if (facts.nodes > 1) limit = ToGigabytesPerSecond(facts.nic_rate) * facts.nics_per_node;
      EXPECT_LE(busbw, limit) << run.run.id << " " << point.bytes;
    }
  }
}

}  // namespace
}  // namespace windtunnel::validate

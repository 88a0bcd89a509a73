#include "validate/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "validate/board_decisions.h"
#include "validate/faults.h"
#include "validate/parallel.h"

namespace windtunnel::validate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<MeasuredRun> ShippedWith(Quality quality) {
  std::vector<MeasuredRun> runs;
  for (MeasuredRun& run : ReadShippedRuns())
    if (run.quality == quality && run.harness.empty()) runs.push_back(std::move(run));
  return runs;
}

std::vector<Diagnosis> DiagnoseShipped(Quality quality) {
  return DiagnoseAll(ShippedWith(quality), BoardDecisions(), timing::TimingConstants::Shipped(), 0);
}

/// Two nodes of 8 H100 over InfiniBand, all sizes.
MeasuredRun TwoNodes() {
  MeasuredRun run;
  run.id = "two-nodes";
  run.gpu = "H100 80GB HBM3";
  run.gpus_per_node = 8;
  run.nodes = 2;
  run.interconnect = "NVSwitch";
  run.links_per_gpu = 18;
  run.nic = "8 x ConnectX-7 NDR 400 Gb/s";
  run.collective = "all_reduce";
  run.dtype = "float";
  run.ranks = 16;
  run.nccl = "2.28.9";
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t{8} << 30; bytes *= 2) {
    MeasuredRow row;
    row.bytes = bytes;
    row.out_of_place_us = 1;
    run.rows.push_back(row);
  }
  return run;
}

/// A run whose measured times are those the model gives a fault, at its first setting.
MeasuredRun WithFault(MeasuredRun run, const std::string& fault) {
  const Diagnosis healthy = Diagnose(run, BoardDecisions(), timing::TimingConstants::Shipped());
  for (const Explanation& cause : healthy.causes) {
    if (cause.fault != fault) continue;
    for (std::size_t i = 0; i < run.rows.size(); ++i)
      run.rows[i].out_of_place_us = cause.predicted_us[i];
  }
  return run;
}

TEST(Diagnosis, TheLabelledCauseOfEveryFaultyRunIsFirstOrSecond) {
  const auto diagnoses = DiagnoseShipped(Quality::kMisconfigured);
  std::size_t first = 0;
  for (const Diagnosis& diagnosis : diagnoses) {
    EXPECT_GE(diagnosis.place_of_label(), 1u) << diagnosis.run << " " << diagnosis.label;
    EXPECT_LE(diagnosis.place_of_label(), 2u) << diagnosis.run << " " << diagnosis.label;
    if (diagnosis.place_of_label() == 1) ++first;
  }
  EXPECT_EQ(diagnoses.size(), 34u);
  EXPECT_GE(first, 29u);
}

TEST(Diagnosis, AtMostOneHealthyRunInFifteenRaisesAnAlarm) {
  const auto diagnoses = DiagnoseShipped(Quality::kHealthy);
  std::size_t runs = 0, alarms = 0;
  for (const Diagnosis& diagnosis : diagnoses) {
    if (diagnosis.causes.empty()) continue;
    ++runs;
    if (diagnosis.causes.front().fault != "healthy") ++alarms;
  }
  EXPECT_GE(runs, 230u);
  EXPECT_LE(alarms * 15, runs);
}

TEST(Diagnosis, AFaultThatTheModelMadeIsFoundAgain) {
  for (const char* fault :
       {"healthy", "tcp-fallback", "no-net-plugin", "slow-nic", "missing-nic", "gdr-off", "far-nic",
        "small-mtu", "no-topology-hints", "nvls-off", "one-thread-launch", "wrong-nic"}) {
    const Diagnosis diagnosis = Diagnose(WithFault(TwoNodes(), fault), BoardDecisions(),
                                         timing::TimingConstants::Shipped());
    const Explanation& best = diagnosis.causes.front();
    std::vector<std::string> told = best.same_curve;
    told.push_back(best.fault);
    EXPECT_THAT(told, Contains(fault)) << "told: " << best.fault << " " << best.setting;
  }
}

TEST(Diagnosis, AFaultOfOneNodeThatTheModelMadeIsFoundAgain) {
  MeasuredRun node = TwoNodes();
  node.gpu = "NVIDIA A100-SXM4-80GB";
  node.links_per_gpu = 12;
  node.nodes = 1;
  node.ranks = 8;
  for (const char* fault :
       {"healthy", "p2p-off", "fewer-nvlinks", "few-channels", "one-thread-launch"}) {
    const Explanation best =
        Diagnose(WithFault(node, fault), BoardDecisions(), timing::TimingConstants::Shipped())
            .causes.front();
    EXPECT_EQ(best.fault, fault) << best.setting;
  }
}

TEST(Diagnosis, StallsAreToldByTheScatterBetweenTwoRightEnds) {
  MeasuredRun run = WithFault(TwoNodes(), "healthy");
  // Delays of 1.5 to 40 times the time, in no order.
  const double delays[] = {7, 1.5, 22, 3, 40, 1, 12, 2.2, 30, 5};
  for (std::size_t i = 12; i < 22; ++i) *run.rows[i].out_of_place_us *= delays[i - 12];
  const Diagnosis diagnosis = Diagnose(run, BoardDecisions(), timing::TimingConstants::Shipped());
  EXPECT_EQ(diagnosis.causes.front().fault, "stalls");
  EXPECT_NEAR(diagnosis.evidence.latency_factor, 1, 1e-9);
  EXPECT_NEAR(diagnosis.evidence.plateau_factor, 1, 1e-9);
  EXPECT_THAT(diagnosis.evidence.text, HasSubstr("both ends are right"));
}

TEST(Diagnosis, EvidenceTellsRateFromTransport) {
  const Diagnosis rate = Diagnose(WithFault(TwoNodes(), "slow-nic"), BoardDecisions(),
                                  timing::TimingConstants::Shipped());
  EXPECT_THAT(rate.evidence.text, HasSubstr("only the plateau"));
  const Diagnosis transport = Diagnose(WithFault(TwoNodes(), "tcp-fallback"), BoardDecisions(),
                                       timing::TimingConstants::Shipped());
  EXPECT_THAT(transport.evidence.text, HasSubstr("transport or path"));
  EXPECT_GT(transport.evidence.latency_factor, 1.5);
}

TEST(Diagnosis, WeightsAddUpAndTheBestComesFirst) {
  const Diagnosis diagnosis = Diagnose(WithFault(TwoNodes(), "gdr-off"), BoardDecisions(),
                                       timing::TimingConstants::Shipped());
  double sum = 0;
  for (std::size_t i = 0; i < diagnosis.causes.size(); ++i) {
    sum += diagnosis.causes[i].weight;
    if (i > 0) {
      EXPECT_GE(diagnosis.causes[i - 1].weight, diagnosis.causes[i].weight);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(Diagnosis, TreesForPowersOfTwoOnlyAreToldOfOtherNodeCounts) {
  const auto told = [](std::uint32_t nodes) {
    MeasuredRun run = TwoNodes();
    run.nodes = nodes;
    run.ranks = 8 * nodes;
    const Diagnosis diagnosis =
        Diagnose(WithFault(run, "no-trees"), BoardDecisions(), timing::TimingConstants::Shipped());
    return std::any_of(diagnosis.causes.begin(), diagnosis.causes.end(),
                       [](const Explanation& cause) { return cause.fault == "no-trees"; });
  };
  EXPECT_FALSE(told(4));
  EXPECT_TRUE(told(6));
}

TEST(Diagnosis, ANodeAloneHasNoFaultsOfANetwork) {
  MeasuredRun run = TwoNodes();
  run.nodes = 1;
  run.ranks = 8;
  const Diagnosis diagnosis = Diagnose(run, BoardDecisions(), timing::TimingConstants::Shipped());
  for (const Explanation& cause : diagnosis.causes) {
    EXPECT_NE(cause.fault, "tcp-fallback");
    EXPECT_NE(cause.fault, "far-nic");
  }
}

TEST(Diagnosis, TextNamesEvidenceRankingCurveAndWhatToCheck) {
  const Diagnosis diagnosis = Diagnose(WithFault(TwoNodes(), "tcp-fallback"), BoardDecisions(),
                                       timing::TimingConstants::Shipped());
  const std::string text = TextDiagnosis(diagnosis);
  for (const char* part :
       {"evidence: ", "median error", "healthy us", "check: NCCL_DEBUG=INFO", "NET/Socket"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Diagnosis, ASetNamesRunsThatCannotBeMapped) {
  MeasuredRun strange = TwoNodes();
  strange.gpu = "Radeon";
  strange.id = "strange";
  const auto diagnoses =
      DiagnoseAll({strange}, BoardDecisions(), timing::TimingConstants::Shipped(), 1);
  EXPECT_THAT(TextDiagnoses(diagnoses, {strange}), HasSubstr("unknown GPU 'Radeon' (1): strange"));
}

TEST(Diagnosis, TheNumberOfThreadsChangesNothing) {
  const auto runs = ShippedWith(Quality::kMisconfigured);
  const auto& constants = timing::TimingConstants::Shipped();
  EXPECT_EQ(JsonDiagnoses(DiagnoseAll(runs, BoardDecisions(), constants, 1)),
            JsonDiagnoses(DiagnoseAll(runs, BoardDecisions(), constants, 3)));
}

TEST(ForEachIndex, VisitsEveryIndexOnceAndThrowsTheFirstFault) {
  std::vector<int> visits(100);
  ForEachIndex(visits.size(), 4, [&](std::size_t i) { ++visits[i]; });
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 100);
  try {
    ForEachIndex(50, 3, [](std::size_t i) {
      if (i == 7 || i == 30) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
}

}  // namespace
}  // namespace windtunnel::validate

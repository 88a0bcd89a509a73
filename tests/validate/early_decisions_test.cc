#include "validate/early_decisions.h"

#include <gtest/gtest.h>

#include "collectives/timing/time_model.h"
#include "validate/board_decisions.h"
#include "validate/platform.h"

namespace windtunnel::validate {
namespace {

timing::CallFacts Call(Function function, std::uint64_t bytes, nccl::NcclVersion version) {
  timing::CallFacts facts;
  facts.function = function;
  facts.size = Bytes(bytes);
  facts.ranks = 8;
  facts.version = version;
  return facts;
}

TEST(EarlyDecisions, LlEndsAtBytesPerThreadOfAllChannels) {
  // 4 channels x 256 threads x 8 chunks x 32 bytes, before Volta; twice that since.
  auto facts = Call(Function::kAllReduce, 256 << 10, {2, 4, 2});
  DecideEarly(facts, 4, true);
  EXPECT_EQ(facts.protocol, Protocol::kLl);
  EXPECT_EQ(facts.channels, 4u);
  EXPECT_EQ(facts.threads, 256u);
  facts = Call(Function::kAllReduce, (256 << 10) + 1, {2, 4, 2});
  DecideEarly(facts, 4, true);
  EXPECT_EQ(facts.protocol, Protocol::kSimple);
  DecideEarly(facts, 4, false);
  EXPECT_EQ(facts.protocol, Protocol::kLl);
}

TEST(EarlyDecisions, ThreadsGrowBeforeChannels) {
  // 8 bytes for each thread and chunk: 64 threads carry 4 KiB of 8 ranks.
  auto facts = Call(Function::kAllReduce, 4 << 10, {2, 4, 2});
  DecideEarly(facts, 12, false);
  EXPECT_EQ(facts.threads, 64u);
  EXPECT_EQ(facts.channels, 1u);
  facts.size = KiB(16);
  DecideEarly(facts, 12, false);
  EXPECT_EQ(facts.threads, 256u);
  EXPECT_EQ(facts.channels, 1u);
  facts.size = KiB(32);
  DecideEarly(facts, 12, false);
  EXPECT_EQ(facts.channels, 2u);
}

TEST(EarlyDecisions, TheFirstGenerationHasOneRingAndNoLl) {
  auto facts = Call(Function::kReduce, 64, {1, 3, 4});
  DecideEarly(facts, 4, true);
  EXPECT_EQ(facts.protocol, Protocol::kSimple);
  EXPECT_EQ(facts.channels, 1u);
  EXPECT_EQ(facts.chain_piece, KiB(512));
}

MeasuredRun HopperRun(std::string nic, std::string source) {
  MeasuredRun run;
  run.id = "run";
  run.source = std::move(source);
  run.gpu = "H100 SXM";
  run.gpus_per_node = 8;
  run.nodes = nic.empty() ? 1 : 2;
  run.interconnect = "NVSwitch";
  run.nic = std::move(nic);
  run.collective = "all_reduce";
  run.dtype = "float";
  run.ranks = 8 * run.nodes;
  run.rows.push_back({.bytes = 1024, .out_of_place_us = 20, .in_place_us = {}, .repeats_us = {}});
  return run;
}

TEST(Platform, GibIsATransportAndAGibPerSecondIsARate) {
  const auto fabric = [](const char* nic) {
    return MapRun(HopperRun(nic, "")).platform.facts.fabric_class;
  };
  EXPECT_EQ(fabric("8 x ConnectX-7 NDR 400 Gb/s InfiniBand (39.5-45.1 GiB/s measured)"), "ib-ndr");
  EXPECT_EQ(fabric("8 x ConnectX-7 400 Gb/s, gIB plugin"), "roce");
}

TEST(Platform, ACollectionWhoseScriptDrivesAllGpusByOneThreadIsLaunchedSo) {
  const auto launch = [](const char* source) {
    return MapRun(HopperRun("", source)).platform.facts.launch;
  };
  EXPECT_EQ(launch("https://github.com/Azure/AI-benchmarking-guide : results.md"),
            timing::Launch::kOneThread);
  EXPECT_EQ(launch("somebody's page"), timing::Launch::kThreadPerGpu);
}

TEST(BoardDecisions, AnNvlinkDomainOfSixtyFourGpusHasThirtyTwoHeads) {
  MeasuredRun run = HopperRun("Quantum-X800 InfiniBand", "");
  run.gpu = "GB200";
  run.gpus_per_node = 4;
  run.nodes = 32;
  run.ranks = 128;
  run.interconnect = "2 NVL72 domains (64 GPUs used in each)";
  run.nccl = "2.26.2";
  const Mapping mapping = MapRun(run);
  ASSERT_TRUE(mapping.mapped) << mapping.reason;
  EXPECT_EQ(mapping.platform.facts.nodes, 2u);
  const BoardDecisions decisions;
  const Decision decision = decisions.Decide(mapping.platform, run, MiB(1024));
  EXPECT_EQ(decision.facts.algorithm, timing::Algorithm::kNvlsTree);
  EXPECT_EQ(decision.facts.nvls_heads, 32u);
  // 32 channels x 32 heads x 128 KiB a stage; measured 3574 us.
  EXPECT_NEAR(timing::PredictTime(decision.facts).us(), 3574, 0.1 * 3574);
}

}  // namespace
}  // namespace windtunnel::validate

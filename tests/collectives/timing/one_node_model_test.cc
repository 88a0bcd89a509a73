#include "collectives/timing/one_node_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collectives/timing/time_model.h"
#include "tests/support/test_support.h"

namespace windtunnel::timing {
namespace {

/// Calls of six runs with the times that the closed forms gave when the constants were fitted (two
/// decimals): they hold formulas, units and constants together.
struct Vector {
  const char* gpu;
  Function function;
  bool eight_bit;
  std::uint32_t ranks;
  std::uint64_t bytes;
  Algorithm algorithm;
  Protocol protocol;
  std::uint32_t channels, threads;
  std::uint64_t chunk, channel_bytes;
  std::uint32_t heads, parts;
  double us;
};

constexpr Vector kVectors[] = {
    {"a100", Function::kAllReduce, false, 8, 1024, Algorithm::kRing, Protocol::kLl, 1, 96, 32768,
     1024, 0, 1, 21.92},
    {"a100", Function::kAllReduce, false, 8, 32768, Algorithm::kRing, Protocol::kLl, 1, 512, 32768,
     32768, 0, 1, 26.78},
    {"a100", Function::kAllReduce, false, 8, 1048576, Algorithm::kRing, Protocol::kLl, 24, 512,
     32768, 45056, 0, 1, 40.38},
    {"a100", Function::kAllReduce, false, 8, 4194304, Algorithm::kRing, Protocol::kLl128, 24, 640,
     576000, 180224, 0, 1, 84.09},
    {"a100", Function::kAllReduce, false, 8, 67108864, Algorithm::kRing, Protocol::kSimple, 24, 544,
     2097152, 2801664, 0, 1, 634.85},
    {"a100", Function::kAllReduce, false, 8, 536870912, Algorithm::kRing, Protocol::kSimple, 24,
     544, 2097152, 22372352, 0, 1, 4245.38},
    {"h100", Function::kAllReduce, false, 8, 1024, Algorithm::kRing, Protocol::kLl, 1, 96, 32768,
     1024, 0, 1, 16.72},
    {"h100", Function::kAllReduce, false, 8, 32768, Algorithm::kRing, Protocol::kLl, 1, 512, 32768,
     32768, 0, 1, 20.41},
    {"h100", Function::kAllReduce, false, 8, 1048576, Algorithm::kRing, Protocol::kLl, 24, 512,
     32768, 45056, 0, 1, 27.79},
    {"h100", Function::kAllReduce, false, 8, 4194304, Algorithm::kNvls, Protocol::kSimple, 16, 640,
     16384, 262144, 8, 1, 51.96},
    {"h100", Function::kAllReduce, false, 8, 67108864, Algorithm::kNvls, Protocol::kSimple, 16, 640,
     65536, 4194304, 8, 1, 321.10},
    {"h100", Function::kAllReduce, false, 8, 536870912, Algorithm::kNvls, Protocol::kSimple, 16,
     640, 65536, 33554432, 8, 1, 2134.34},
    {"h100", Function::kReduceScatter, true, 8, 1024, Algorithm::kRing, Protocol::kLl, 1, 96, 32768,
     128, 0, 1, 10.73},
    {"h100", Function::kReduceScatter, true, 8, 32768, Algorithm::kRing, Protocol::kLl, 1, 512,
     32768, 4096, 0, 1, 12.12},
    {"h100", Function::kReduceScatter, true, 8, 1048576, Algorithm::kRing, Protocol::kLl, 22, 512,
     32768, 6144, 0, 1, 16.58},
    {"h100", Function::kReduceScatter, true, 8, 4194304, Algorithm::kRing, Protocol::kLl, 24, 512,
     32768, 22528, 0, 1, 33.30},
    {"h100", Function::kReduceScatter, true, 8, 67108864, Algorithm::kRing, Protocol::kSimple, 24,
     544, 2097152, 352256, 0, 1, 208.84},
    {"h100", Function::kReduceScatter, true, 8, 536870912, Algorithm::kRing, Protocol::kSimple, 24,
     544, 2097152, 2797568, 0, 1, 1413.81},
    {"b200", Function::kAllReduce, true, 8, 1024, Algorithm::kRing, Protocol::kLl, 1, 96, 32768,
     1024, 0, 1, 26.33},
    {"b200", Function::kAllReduce, true, 8, 32768, Algorithm::kRing, Protocol::kLl, 1, 512, 32768,
     32768, 0, 1, 29.11},
    {"b200", Function::kAllReduce, true, 8, 1048576, Algorithm::kRing, Protocol::kLl, 32, 512,
     32768, 32768, 0, 1, 30.27},
    {"b200", Function::kAllReduce, true, 8, 4194304, Algorithm::kRing, Protocol::kLl, 32, 512,
     32768, 131072, 0, 1, 49.50},
    {"b200", Function::kAllReduce, true, 8, 67108864, Algorithm::kRing, Protocol::kLl128, 32, 640,
     576000, 2097152, 0, 1, 279.72},
    {"b200", Function::kAllReduce, true, 8, 536870912, Algorithm::kRing, Protocol::kSimple, 32, 544,
     2097152, 16777216, 0, 1, 1482.92},
    {"b200", Function::kAllGather, false, 4, 1024, Algorithm::kRing, Protocol::kLl, 1, 96, 32768,
     256, 0, 1, 11.29},
    {"b200", Function::kAllGather, false, 4, 32768, Algorithm::kRing, Protocol::kLl, 2, 512, 32768,
     4096, 0, 1, 12.48},
    {"b200", Function::kAllGather, false, 4, 1048576, Algorithm::kRing, Protocol::kLl, 32, 512,
     32768, 8192, 0, 1, 14.62},
    {"b200", Function::kAllGather, false, 4, 4194304, Algorithm::kRing, Protocol::kLl, 32, 512,
     32768, 32768, 0, 1, 25.47},
    {"b200", Function::kAllGather, false, 4, 67108864, Algorithm::kRing, Protocol::kSimple, 32, 544,
     2097152, 524288, 0, 1, 110.94},
    {"b200", Function::kAllGather, false, 4, 536870912, Algorithm::kRing, Protocol::kSimple, 32,
     544, 2097152, 4194304, 0, 1, 719.52},
    {"b200", Function::kAllToAll, false, 8, 1024, Algorithm::kPointToPoint, Protocol::kLl, 1, 512,
     524288, 0, 0, 1, 11.31},
    {"b200", Function::kAllToAll, false, 8, 32768, Algorithm::kPointToPoint, Protocol::kLl, 1, 512,
     524288, 0, 0, 1, 12.06},
    {"b200", Function::kAllToAll, false, 8, 1048576, Algorithm::kPointToPoint, Protocol::kLl, 1,
     512, 524288, 0, 0, 4, 17.30},
    {"b200", Function::kAllToAll, false, 8, 4194304, Algorithm::kPointToPoint, Protocol::kLl, 1,
     512, 524288, 0, 0, 4, 35.25},
    {"b200", Function::kAllToAll, false, 8, 67108864, Algorithm::kPointToPoint, Protocol::kSimple,
     1, 512, 524288, 0, 0, 4, 133.31},
    {"b200", Function::kAllToAll, false, 8, 536870912, Algorithm::kPointToPoint, Protocol::kSimple,
     1, 512, 524288, 0, 0, 4, 882.11},
};

CallFacts FactsOf(const Vector& vector) {
  CallFacts facts;
  facts.function = vector.function;
  facts.eight_bit_integer = vector.eight_bit;
  facts.size = Bytes(vector.bytes);
  facts.ranks = vector.ranks;
  facts.algorithm = vector.algorithm;
  facts.protocol = vector.protocol;
  facts.channels = vector.channels;
  facts.threads = vector.threads;
  facts.chunk = Bytes(vector.chunk);
  facts.channel_bytes = Bytes(vector.channel_bytes);
  facts.nvls_heads = vector.heads;
  facts.peer_parts = vector.parts;
  facts.gpu_class = vector.gpu;
  return facts;
}

TEST(OneNodeModel, GivesTheTimesOfTheFitToThePrintedDigits) {
  const auto reference = testing::SourceDir() / "tests/collectives/timing/reference";
  const TimingConstants constants(reference / "gpu.yaml", reference / "fabric.yaml");
  for (const Vector& vector : kVectors) {
    EXPECT_NEAR(PredictTime(FactsOf(vector), constants).us(), vector.us, 0.0051)
        << vector.gpu << " " << Name(vector.function) << " " << vector.bytes;
  }
}

TEST(OneNodeModel, HopsOfAFirstSectorAreShorterInASmallAllReduceOnly) {
  CallFacts facts = FactsOf(kVectors[6]);  // 8 H100, all-reduce, LL.
  const auto at = [&](std::uint64_t bytes) {
    facts.size = Bytes(bytes);
    facts.channel_bytes = Bytes(bytes);
    return PredictTime(facts).us();
  };
  const double saved = TimingConstants::Shipped().Gpu("h100").ll_first_sector_us;
  EXPECT_DOUBLE_EQ(at(8), at(32));
  // 14 hops; half of the saving is gone at twice the sector.
  EXPECT_NEAR(at(64) - at(32), 14 * saved / 2, 1e-9);
  EXPECT_NEAR(at(128) - at(64), 14 * saved / 4, 1e-9);
  facts.function = Function::kAllGather;
  EXPECT_DOUBLE_EQ(at(8), at(512));
}

TEST(OneNodeModel, AChainIsFilledPieceByPiece) {
  CallFacts facts = FactsOf(kVectors[0]);
  facts.gpu_class = "p100";
  facts.path = InNodePath::kPcieSockets;
  facts.link_rate = FromGigabytesPerSecond(15.75);
  facts.function = Function::kReduce;
  facts.protocol = Protocol::kSimple;
  facts.size = facts.channel_bytes = MiB(8);
  facts.chunk = KiB(512);
  const double short_fill = PredictTime(facts).us(Cause::kPipelineFill);
  facts.chain_piece = KiB(512);
  const double long_fill = PredictTime(facts).us(Cause::kPipelineFill);
  // Six more hops wait for 480 KiB more.
  const double link = TimingConstants::Shipped().shared().pcie_sockets_share * 15.75;
  EXPECT_NEAR(long_fill - short_fill, 6 * 480 * 1024 / (link * 1000), 0.01);
}

TEST(OneNodeModel, SharesAddUpToTheTotalAndNameTheBound) {
  for (const Vector& vector : kVectors) {
    const TimeBreakdown time = PredictTime(FactsOf(vector));
    double sum = 0;
    for (const auto& share : time.shares) {
      EXPECT_GE(share.us, 0) << ToString(share.cause);
      sum += share.us;
    }
    EXPECT_DOUBLE_EQ(sum, time.us());
  }
  // A gigabyte on a ring is bound by the link, a kilobyte by hops.
  EXPECT_EQ(PredictTime(FactsOf(kVectors[17])).bound(), Cause::kLink);
  EXPECT_EQ(PredictTime(FactsOf(kVectors[18])).bound(), Cause::kHop);
}

TEST(OneNodeModel, ATenthLessLinkCostsATenthOnALargeRing) {
  CallFacts facts = FactsOf(kVectors[23]);
  facts.size = GiB(8);
  facts.channel_bytes = MiB(256);
  const double full = PredictTime(facts).us();
  facts.link_rate = GigabytesPerSecond(810);
  EXPECT_NEAR(PredictTime(facts).us() / full, 1 / 0.9, 0.03);
}

TEST(OneNodeModel, TimeNeverFallsWhenTheBufferGrowsWithinOneProtocol) {
  CallFacts facts = FactsOf(kVectors[5]);
  double last = 0;
  for (std::uint64_t per = 1 << 16; per < 1u << 28; per *= 2) {
    facts.channel_bytes = Bytes(per);
    facts.size = Bytes(per * facts.channels);
    const double us = PredictTime(facts).us();
    EXPECT_GT(us, last) << per;
    last = us;
  }
}

TEST(OneNodeModel, OneHostThreadGivesTheLongerOfHostAndDeviceNotTheirSum) {
  CallFacts facts = FactsOf(kVectors[0]);
  const double device = PredictTime(facts).us();
  facts.launch = Launch::kOneThread;
  facts.gpus_per_thread = 8;
  const TimeBreakdown bound = PredictTime(facts);
  EXPECT_NEAR(bound.us(), 8 * (4.3 + 0.04), 1e-9);
  EXPECT_EQ(bound.bound(), Cause::kHostLaunch);
  facts.gpus_per_thread = 1;
  EXPECT_DOUBLE_EQ(PredictTime(facts).us(), device);
}

TEST(OneNodeModel, OldReleasesPayMoreForEachChannelOfALaunch) {
  CallFacts facts = FactsOf(kVectors[2]);
  facts.launch = Launch::kOneThread;
  facts.gpus_per_thread = 8;
  facts.version = {2, 10, 3};
  EXPECT_NEAR(PredictTime(facts).us(), 8 * (4.3 + 0.2 * 24), 1e-9);
}

TEST(OneNodeModel, AClassWithoutRunsSaysSo) {
  CallFacts facts = FactsOf(kVectors[0]);
  EXPECT_FALSE(PredictTime(facts).extrapolated);
  facts.gpu_class = "p100";
  EXPECT_TRUE(PredictTime(facts).extrapolated);
}

TEST(OneNodeModel, APcieRingEndsAtItsShareOfTheSlotRate) {
  CallFacts facts;
  facts.gpu_class = "pcie";
  facts.path = InNodePath::kPciePeer;
  facts.link_rate = FromGigabytesPerSecond(15.75);
  facts.ranks = 4;
  facts.channels = 2;
  facts.chunk = MiB(2);
  facts.size = MiB(512);
  facts.channel_bytes = MiB(256);
  const double busbw = 512.0 * 1.048576 * 1.5 / PredictTime(facts).us() * 1000;
  EXPECT_NEAR(busbw, 0.79 * 15.75, 0.08 * 15.75);
  EXPECT_LT(busbw, 15.75);
}

TEST(OneNodeModel, ABroadcastPipelinesSoThatRanksOnlyAddHops) {
  CallFacts facts;
  facts.function = Function::kBroadcast;
  facts.gpu_class = "a100";
  facts.channels = 24;
  facts.chunk = KiB(512);
  facts.size = GiB(1);
  facts.channel_bytes = Bytes((1u << 30) / 24);
  facts.ranks = 2;
  const double two = PredictTime(facts).us();
  facts.ranks = 8;
  EXPECT_LT(PredictTime(facts).us() / two, 1.1);
  EXPECT_GT(PredictTime(facts).us(), two);
}

TEST(RoundedMaximum, LiesBetweenTheMaximumAndTheSum) {
  EXPECT_DOUBLE_EQ(RoundedMaximum(3, 0), 3);
  EXPECT_DOUBLE_EQ(RoundedMaximum(2, 2), 2 * std::pow(2.0, 1.0 / 6));
  EXPECT_DOUBLE_EQ(RoundedMaximum(0, 0), 0);
}

}  // namespace
}  // namespace windtunnel::timing

// Plans that users bring (MSCCL++ execution plans, ASTRA-sim's ring) against the clock.

#include <gtest/gtest.h>

#include "collectives/msccl/msccl_xml.h"
#include "collectives/msccl/mscclpp_json.h"
#include "interconnect/flow_network.h"
#include "interconnect/foreign/foreign_topology.h"
#include "tests/support/plain_setting.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

// GiB/s and ns of a star; endpoints cost nothing.
constexpr double kRate = 100;
constexpr double kLatency = 500;

Cluster Star(std::uint32_t ranks) {
  return Cluster(ReadForeignTopology(
      "topology: [ Switch ]\nnpus_count: [ " + std::to_string(ranks) + " ]\nbandwidth: [ " +
          std::to_string(kRate) + " ]\nlatency: [ " + std::to_string(kLatency) + " ]\n",
      ForeignFormat::kAstraSim, "test"));
}

// What a rank hands itself stays in its memory; the switch of the star combines.
class StarSetting final : public ExecutionSetting {
 public:
  StarSetting(const Cluster& cluster, Network& network)
      : cluster_(cluster), network_(network), plain_(cluster, network) {}
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    if (sender.rank != to.rank) return plain_.PathOf(sender, to);
    ConnectionPath path;
    path.local = true;
    return path;
  }
  GroupPath GroupOf(GroupKind kind, Rank owner, std::span<const Peer> members,
                    std::uint32_t) override {
    std::vector<DeviceId> devices;
    for (const Peer& member : members) devices.push_back(cluster_.gpus()[member.rank]);
    const DeviceId gpu = cluster_.gpus()[owner];
    const DeviceId hub = cluster_.topology().links[cluster_.links_out(gpu).front()].to;
    return {.group = network_.AddGroup(kind, hub, gpu, devices)};
  }
  const BlockTimes& TimesOf(Rank, const Block&) override { return times_; }
  SimTime StartOf(Rank) override { return SimTime(); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }

 private:
  const Cluster& cluster_;
  Network& network_;
  testing::PlainSetting plain_;
  BlockTimes times_;
};

double Microseconds(const Plan& plan) {
  const Cluster cluster = Star(plan.request.rank_count);
  FlowNetwork network(cluster);
  StarSetting setting(cluster, network);
  return ToMicroseconds(RunTimed(plan, network, setting).time);
}
double WireMicroseconds(double bytes) { return bytes / (kRate * (1 << 30)) * 1e6; }

TEST(UserPlansTimedTest, PacketsOfTwoRanksTakeTheirBytesAndTwoTrips) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto plan = mscclpp::ReadJson(reference / "facts" / "topofiles" / "msccl" /
                                      "mscclpp-allreduce_packet.json");
  constexpr std::uint64_t kCount = 16 << 20;
  const double time = Microseconds(mscclpp::MakePlan(plan, kCount));
  // Each rank sends half of the message, then the sums of the other half.
  const double wire = WireMicroseconds(4.0 * kCount);
  EXPECT_GE(time, wire + 2 * kLatency / 1000);
  EXPECT_LE(time, 1.1 * wire + 8 * kLatency / 1000);
}

TEST(UserPlansTimedTest, AReductionInTheSwitchRunsOnItsGroups) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto plan =
      mscclpp::ReadJson(reference / "facts" / "topofiles" / "msccl" / "mscclpp-reduce_nvls.json");
  constexpr std::uint64_t kCount = 16 << 20;
  const double time = Microseconds(mscclpp::MakePlan(plan, kCount));
  // A rank gives both halves to the switch and takes its sum, then stores it to both.
  const double wire = WireMicroseconds(4.0 * kCount);
  std::printf("%.1f us, whole message on the wire %.1f us\n", time, wire);
  EXPECT_GE(time, wire);
  EXPECT_LE(time, 2.2 * wire + 10 * kLatency / 1000);
}

TEST(UserPlansTimedTest, AstraSimsRingTakesTheTimeOfARing) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto program = msccl::ReadXml(reference / "facts" / "topofiles" / "msccl" /
                                      "astrasim-ring-allreduce-8npus-v1-attrs.xml");
  constexpr std::uint64_t kCount = 16 << 20;
  const double time = Microseconds(msccl::MakePlan(program, kCount));
  const double wire = WireMicroseconds(4.0 * kCount * 2 * 7 / 8);
  EXPECT_GE(time, wire);
  EXPECT_LE(time, 1.05 * wire + 14 * 2 * kLatency / 1000);
}

}  // namespace
}  // namespace windtunnel

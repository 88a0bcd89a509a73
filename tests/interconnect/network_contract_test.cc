#include "tests/support/network_contract.h"

#include <gtest/gtest.h>

#include <memory>

#include "interconnect/cluster.h"
#include "interconnect/flow_network.h"
#include "interconnect/packet_network.h"

namespace windtunnel {
namespace {

using testing::ContractTrace;
using testing::RunNetworkContract;
using testing::StarTopology;

struct Level {
  std::string name;
  std::function<std::unique_ptr<Network>(const Cluster&)> make;
};

std::unique_ptr<Network> Packet(const Cluster& cluster, std::uint32_t bursts, Bytes buffer) {
  PacketNetwork::Options options;
  options.burst.bursts_per_message = bursts;
  options.link_buffer = buffer;
  return std::make_unique<PacketNetwork>(cluster.topology(), options);
}

class NetworkContractTest : public ::testing::TestWithParam<Level> {};

TEST_P(NetworkContractTest, RandomTrafficKeepsTheCommonRules) {
  for (const LinkKind kind : {LinkKind::kNvlink, LinkKind::kPcie, LinkKind::kNetwork}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(Name(kind)));
      const Cluster cluster(StarTopology(6, kind, GigabytesPerSecond(25), Nanoseconds(400)));
      const auto network = GetParam().make(cluster);
      RunNetworkContract(*network, cluster.topology(), 6, 200, seed);
    }
  }
}

TEST_P(NetworkContractTest, SecondRunAndSecondNetworkGiveTheSameBytes) {
  const Cluster cluster(
      StarTopology(5, LinkKind::kNetwork, GigabytesPerSecond(25), Nanoseconds(400)));
  const auto first = GetParam().make(cluster);
  const auto second = GetParam().make(cluster);
  const ContractTrace once = RunNetworkContract(*first, cluster.topology(), 5, 100, 9);
  const ContractTrace again = RunNetworkContract(*first, cluster.topology(), 5, 100, 9);
  const ContractTrace other = RunNetworkContract(*second, cluster.topology(), 5, 100, 9);
  EXPECT_EQ(once.lines, again.lines);
  EXPECT_EQ(once.lines, other.lines);
}

INSTANTIATE_TEST_SUITE_P(
    All, NetworkContractTest,
    ::testing::Values(
        Level{"Flow", [](const Cluster& c) { return std::make_unique<FlowNetwork>(c); }},
        Level{"Packet", [](const Cluster& c) { return Packet(c, 32, Bytes(0)); }},
        Level{"PacketFrameByFrame", [](const Cluster& c) { return Packet(c, 0, Bytes(0)); }},
        Level{"PacketWithSmallBuffers", [](const Cluster& c) { return Packet(c, 32, KiB(16)); }}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace windtunnel

#include "interconnect/foreign/foreign_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "interconnect/cluster.h"
#include "interconnect/flow_network.h"
#include "interconnect/packet_options.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

Topology Read(std::string_view text) {
  const auto format = DetectForeignFormat(text);
  if (!format) throw ConfigError({.problem = "not detected"});
  return ReadForeignTopology(text, *format, "file");
}
std::string Fault(std::string_view text) {
  try {
    Read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

class LastDelivery final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { at = now.since_start(); }
  Picoseconds at;
};
Picoseconds SendOne(const Topology& topology, DeviceId from, DeviceId to, Bytes size) {
  const Cluster cluster(topology);
  FlowNetwork network(cluster);
  LastDelivery client;
  network.set_client(&client);
  network.Send(network.AddRoute(*cluster.FindRoute(from, to)), size, 0);
  network.RunToIdle();
  return client.at;
}

constexpr std::string_view kSwitch =
    "topology: [ Switch ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]\n";

// The times that ASTRA-sim's own tests expect for 1 MiB: 20,531, 21,031 and 20,031 ns.
TEST(AstraSimTest, TimesAreThoseOfItsOwnTests) {
  EXPECT_NEAR(ToMicroseconds(SendOne(Read(kSwitch), 1, 4, MiB(1))), 20.531, 0.001);
  EXPECT_NEAR(ToMicroseconds(SendOne(Read("topology: [ Ring ]\nnpus_count: [ 16 ]\n"
                                          "bandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"),
                                     1, 4, MiB(1))),
              21.031, 0.001);
  EXPECT_NEAR(ToMicroseconds(SendOne(Read("topology: [ FullyConnected ]\nnpus_count: [ 16 ]\n"
                                          "bandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"),
                                     1, 4, MiB(1))),
              20.031, 0.001);
}

TEST(AstraSimTest, ItsGigabyteIsStated) {
  const Topology topology = Read(kSwitch);
  EXPECT_EQ(topology.links[0].rate, BitsPerSecond(50ULL * 8 << 30));
  EXPECT_THAT(topology.notes, ::testing::Contains(::testing::HasSubstr("2^30 bytes/s")));
}

TEST(AstraSimTest, DimensionsAreInnerFirst) {
  const Topology topology = Read(
      "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 2, 8, 4 ]\n"
      "bandwidth: [ 200.0, 100.0, 50.0 ]\nlatency: [ 50.0, 500.0, 2000.0 ]\n");
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 64u);
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kNetworkSwitch).size(), 16u);
  EXPECT_NEAR(ToMicroseconds(SendOne(topology, 0, 1, MiB(1))), 4.932, 0.001);
  EXPECT_NEAR(ToMicroseconds(SendOne(topology, 37, 41, MiB(1))), 10.265, 0.001);
  EXPECT_NEAR(ToMicroseconds(SendOne(topology, 26, 42, MiB(1))), 23.531, 0.001);
}

TEST(AstraSimTest, ARingOfTwoHasOneCable) {
  const Topology topology =
      Read("topology: [ Ring ]\nnpus_count: [ 2 ]\nbandwidth: [ 1 ]\nlatency: [ 0 ]\n");
  EXPECT_EQ(topology.links.size(), 2u);
}

TEST(AstraSimTest, MistakesAreNamed) {
  EXPECT_THAT(Fault("topology: [ Ring, Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 1, 1 ]\n"
                    "latency: [ 1, 1 ]\n"),
              ::testing::HasSubstr("another number of dimensions"));
  EXPECT_THAT(Fault("topology: [ Rng ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\nlatency: [ 1 ]\n"),
              ::testing::HasSubstr("did you mean 'Ring'"));
  EXPECT_THAT(Fault("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 0 ]\nlatency: [ 1 ]\n"),
              ::testing::HasSubstr("bandwidth"));
  EXPECT_THAT(Fault("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwith: [ 1 ]\nlatency: [ 1 ]\n"),
              ::testing::HasSubstr("did you mean 'bandwidth'"));
  EXPECT_THAT(Fault("topology: [ Ring ]\nnpus_count: [ 2147483648 ]\nbandwidth: [ 1 ]\n"
                    "latency: [ 1 ]\n"),
              ::testing::HasSubstr("npus_count"));
}

TEST(ForeignSizeTest, TooLargeNetworksAreRefusedBeforeTheyAreBuilt) {
  // 100,000 fully joined endpoints are 10^10 links: building up to the limit took seconds.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(Fault("topology: [ FullyConnected ]\nnpus_count: [ 100000 ]\nbandwidth: [ 1 ]\n"
                    "latency: [ 1 ]\n"),
              ::testing::AllOf(::testing::HasSubstr("file:2"), ::testing::HasSubstr("npus_count"),
                               ::testing::HasSubstr("too many links")));
  EXPECT_THAT(Fault("topology: [ Ring, Switch ]\nnpus_count: [ 2, 500000 ]\n"
                    "bandwidth: [ 1, 1 ]\nlatency: [ 1, 1 ]\n"),
              ::testing::HasSubstr("too many devices"));
  EXPECT_THAT(Fault("Nodes 100000\nTiers 2\nTier 0\nDownlink_speed_Gbps 1\nRadix_Down 1\n"
                    "Radix_Up 100000\nTier 1\nDownlink_speed_Gbps 1\nRadix_Down 100000\n"),
              ::testing::HasSubstr("too many links"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 0.5) << "4 million links take longer";
}

TEST(Ns3Test, SwitchesAreNoRanks) {
  const Topology topology = Read("3 1 2\n2\n2 0 400Gbps 0.0005ms 0\n2 1 400Gbps 0.0005ms 0\n");
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 2u);
  EXPECT_EQ(topology.node_count, 2u);
  // 1 GB over 400 Gb/s: 20 ms; two hops of 500 ns.
  EXPECT_EQ(SendOne(topology, 0, 1, Bytes(1'000'000'000)), Milliseconds(20) + Nanoseconds(1000));
}

TEST(Ns3Test, ARingWithoutSwitchesPassesTrafficOn) {
  const Topology topology = Read(
      "4 0 4\n\n0 1 25Gbps 0.005ms 0\n1 2 25Gbps 0.005ms 0\n2 3 25Gbps 0.005ms 0\n"
      "3 0 25Gbps 0.005ms 0\n");
  EXPECT_EQ(Cluster(topology).FindRoute(0, 2)->size(), 2u);
}

TEST(Ns3Test, ErrorRatesReachThePacketLevel) {
  const auto rates = [](std::string_view links) {
    const Topology topology = Read("4 1 3\n3\n" + std::string(links));
    EXPECT_TRUE(topology.warnings.empty());
    return PacketOptionsOf(topology).error_rates;
  };
  EXPECT_TRUE(rates("3 0 1Gbps 1us 0\n3 1 1Gbps 1us 0.0\n3 2 1Gbps 1us 0\n").empty());
  // Links come in pairs of directions, in the order of the file.
  EXPECT_THAT(rates("3 0 1Gbps 1us 0\n3 1 1Gbps 1us 0.01\n3 2 1Gbps 1us 0\n"),
              ::testing::ElementsAre(::testing::Pair(2, 0.01), ::testing::Pair(3, 0.01)));
  const auto most = rates("3 0 1Gbps 1us 0.001\n3 1 1Gbps 1us 0.001\n3 2 1Gbps 1us 0\n");
  for (LinkId id = 0; id < 4; ++id) EXPECT_EQ(most.at(id), 0.001);
  for (LinkId id = 4; id < 6; ++id) EXPECT_EQ(most.at(id), 0);
}

TEST(Ns3Test, MistakesAreNamed) {
  EXPECT_THAT(Fault("3 1 2\n2\n2 0 400Gbps 0.0005ms 0\n"),
              ::testing::HasSubstr("links announced, 1 listed"));
  EXPECT_THAT(Fault("3 1 1\n2\n2 7 400Gbps 0.0005ms 0\n"), ::testing::HasSubstr("file:3"));
  EXPECT_THAT(Fault("3 1 1\n2\n2 0 400G 0.0005ms 0\n"), ::testing::HasSubstr("is not a rate"));
  EXPECT_THAT(Fault("3 2 1\n2\n2 0 400Gbps 0.0005ms 0\n"), ::testing::HasSubstr("switch"));
}

TEST(SimAiTest, ServersAndTheirNvSwitchesAreKeptApart) {
  // Two servers of two GPUs (0-3), NVSwitches 4 and 5, one leaf 6.
  const Topology topology = Read(
      "7 2 2 1 8 H100\n4 5 6\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n"
      "2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n"
      "1 6 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 6 400Gbps 0.0005ms 0\n");
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 4u);
  EXPECT_EQ(topology.node_count, 2u);
  EXPECT_EQ(topology.devices[3].index, 1u);
  const Cluster cluster(topology);
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(0, 1)), GigabitsPerSecond(2880));
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(0, 2)), GigabitsPerSecond(400));
}

TEST(HtsimTest, ThreeTiersOfEightNodes) {
  const Topology topology = Read(
      "Nodes 8\nTiers 3\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\n"
      "Downlink_Latency_ns 1000\n\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\n"
      "Downlink_Latency_ns 1000\nBundle 1\n\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\n"
      "Downlink_Latency_ns 1000\nBundle 2\n");
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 8u);
  const Cluster cluster(topology);
  EXPECT_EQ(cluster.FindRoute(0, 1)->size(), 2u);
  EXPECT_EQ(cluster.FindRoute(0, 2)->size(), 4u);
  EXPECT_EQ(cluster.FindRoute(0, 7)->size(), 6u);
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(0, 7)), GigabitsPerSecond(200));
}

constexpr std::string_view kHead = "<?xml version='1.0'?>\n<platform version=\"4.1\">\n";

TEST(SimGridTest, AFlatClusterIsUpAndDown) {
  const Topology topology = Read(
      std::string(kHead) +
      "<cluster id='c' prefix='n' radical='0-3,8' suffix='' speed='1Gf' bw='125MBps' lat='50us'/>"
      "</platform>");
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 5u);
  EXPECT_EQ(SendOne(topology, 0, 4, Bytes(125'000'000)), Seconds(1) + Microseconds(100));
}

TEST(SimGridTest, ABackboneIsSharedByAllAndBothDirections) {
  const Topology topology =
      Read(std::string(kHead) +
           "<cluster id='c' prefix='n' radical='0-3' suffix='' speed='1Gf' bw='125MBps' lat='50us'"
           " bb_bw='200MBps' bb_lat='500us'/></platform>");
  const Cluster cluster(topology);
  FlowNetwork network(cluster);
  LastDelivery client;
  network.set_client(&client);
  network.Send(network.AddRoute(*cluster.FindRoute(0, 1)), Bytes(100'000'000), 0);
  network.Send(network.AddRoute(*cluster.FindRoute(3, 2)), Bytes(100'000'000), 1);
  network.RunToIdle();
  EXPECT_NEAR(ToMicroseconds(client.at), 1e6 + 600, 1);
}

TEST(SimGridTest, ShapesHaveTheirHosts) {
  const auto cluster = [](std::string_view shape, std::string_view parameters, int last) {
    return Read(std::string(kHead) +
                "<zone id='w' routing='Full'><cluster id='c' prefix='n'"
                " radical='0-" +
                std::to_string(last) +
                "' suffix='' speed='1Gf' bw='125MBps'"
                " lat='50us' topology='" +
                std::string(shape) + "' topo_parameters='" + std::string(parameters) +
                "'/></zone></platform>");
  };
  const Topology torus = cluster("TORUS", "3,2,2", 11);
  // Side 3: 12 cables; sides 2: 6 each.
  EXPECT_EQ(torus.links.size(), 2u * 24);
  const Topology tree = cluster("FAT_TREE", "2;4,4;1,2;1,2", 15);
  EXPECT_EQ(tree.DevicesOf(DeviceKind::kNetworkSwitch).size(), 6u);
  EXPECT_EQ(Cluster(tree).Bottleneck(*Cluster(tree).FindRoute(0, 15)),
            BitsPerSecond(1'000'000'000));
  const Topology fly = cluster("DRAGONFLY", "3,4;4,3;5,1;2", 119);
  EXPECT_EQ(fly.DevicesOf(DeviceKind::kNetworkSwitch).size(), 60u);
  EXPECT_TRUE(Cluster(fly).FindRoute(0, 119).has_value());
}

TEST(SimGridTest, RoutesNameSharedLinks) {
  const Topology topology =
      Read(std::string(kHead) +
           "<zone id='z' routing='Full'><host id='a' speed='1Gf'/><host id='b' speed='1Gf'/>"
           "<link id='l' bandwidth='100MBps' latency='10us'/>"
           "<route src='a' dst='b'><link_ctn id='l'/></route></zone></platform>");
  EXPECT_EQ(SendOne(topology, 0, 1, Bytes(100'000'000)), Seconds(1) + Microseconds(10));
  EXPECT_EQ(SendOne(topology, 1, 0, Bytes(100'000'000)), Seconds(1) + Microseconds(10));
}

TEST(SimGridTest, HostileAndWrongFilesAreRefused) {
  EXPECT_THAT(Fault("<!DOCTYPE p [<!ENTITY a 'b'>]><platform version='4.1'/>"),
              ::testing::HasSubstr("entities"));
  EXPECT_THAT(Fault("<platform version='4.1'><zone"), ::testing::HasSubstr("is no XML"));
  EXPECT_THAT(Fault("<platform version='3'/>"), ::testing::HasSubstr("4 or 4.1"));
  EXPECT_THAT(Fault(std::string(kHead) + "<cluster id='c' prefix='n' radical='0-4000000000'"
                                         " suffix='' speed='1' bw='1MBps' lat='0'/></platform>"),
              ::testing::HasSubstr("too many hosts"));
  EXPECT_THAT(Fault(std::string(kHead) + "<gizmo/></platform>"),
              ::testing::HasSubstr("not supported"));
}

// Case H21.
TEST(SimGridTest, AnUnknownAttributeIsAnErrorWithLineAndNearestName) {
  const auto in_zone = [](std::string_view body) {
    return Fault(std::string(kHead) +
                 "<zone id='z' routing='Full'><host id='a'/><host id='b'/>\n"
                 "<link id='l' bandwidth='1MBps' latency='0'/>\n" +
                 std::string(body) + "</zone></platform>");
  };
  EXPECT_THAT(in_zone("<link id='m' bandwidth='1MBps' latency='0' bandwith='2MBps'/>"),
              ::testing::AllOf(::testing::HasSubstr("file:5"), ::testing::HasSubstr("'bandwith'"),
                               ::testing::HasSubstr("sharing_policy"),
                               ::testing::HasSubstr("did you mean 'bandwidth'")));
  EXPECT_THAT(in_zone("<link id='m' bandwith='1MBps' latency='0'/>"),
              ::testing::HasSubstr("did you mean 'bandwidth'"))
      << "before the right name is missed";
  EXPECT_THAT(in_zone("<route src='a' dst='b' symetrical='NO'><link_ctn id='l'/></route>"),
              ::testing::HasSubstr("did you mean 'symmetrical'"));
  EXPECT_THAT(in_zone("<route src='a' dst='b'><link_ctn id='l' dir='UP'/></route>"),
              ::testing::HasSubstr("unknown attribute"));
  EXPECT_THAT(in_zone("<route src='a' dst='b'><link_ctn id='l'/><link_ctm id='l'/></route>"),
              ::testing::HasSubstr("did you mean 'link_ctn'"));
  EXPECT_THAT(in_zone("<route src='a' dst='b' symmetrical='nein'><link_ctn id='l'/></route>"),
              ::testing::HasSubstr("YES, NO"));
  EXPECT_THAT(in_zone("<route src='a' dst='b'><link_ctn id='l' direction='down'/></route>"),
              ::testing::HasSubstr("UP, DOWN"));
  EXPECT_THAT(Fault(std::string(kHead) + "<cluster id='c' prefix='n' radical='0-3' suffix=''"
                                         " bw='1MBps' lat='0' bb_bandwidth='1MBps'/></platform>"),
              ::testing::HasSubstr("unknown attribute"));
  EXPECT_THAT(Fault("<platform version='4.1' verison='4'/>"),
              ::testing::HasSubstr("did you mean 'version'"));
}

TEST(SimGridTest, ARouteThatIsNotSymmetricalHasOneDirection) {
  for (const char* no : {"NO", "no"}) {
    const Topology topology =
        Read(std::string(kHead) +
             "<zone id='z' routing='Full'><host id='a'/><host id='b'/>"
             "<link id='l' bandwidth='1MBps' latency='0'/><route src='a' dst='b' symmetrical='" +
             no + "'><link_ctn id='l'/></route></zone></platform>");
    const Cluster cluster(topology);
    EXPECT_TRUE(cluster.FindRoute(0, 1).has_value());
    EXPECT_FALSE(cluster.FindRoute(1, 0).has_value()) << no;
  }
}

TEST(SimGridTest, ProfilesOverTimeAreLeftOutWithAWarning) {
  const Topology topology =
      Read(std::string(kHead) +
           "<zone id='z' routing='Full'><host id='a' state_file='a.txt'/>"
           "<link id='l' bandwidth='1MBps' latency='0' bandwidth_file='l.bw'/></zone></platform>");
  EXPECT_THAT(topology.warnings, ::testing::Contains(::testing::HasSubstr("2 profiles")));
}

TEST(ForeignFilesTest, AllReferenceFilesLoad) {
  WT_REFERENCE_OR_SKIP(reference);
  std::size_t read = 0;
  for (const char* folder : {"astrasim", "simgrid"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(reference / "facts/topofiles" / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".et" || extension == ".json") continue;
      const std::string text = ::windtunnel::testing::ReadFile(entry.path());
      const auto format = DetectForeignFormat(text);
      if (entry.path().filename() == "ns3_config.txt") {
        EXPECT_FALSE(format.has_value());  // Settings, not a network.
        continue;
      }
      ASSERT_TRUE(format.has_value()) << entry.path();
      const Topology topology = ReadForeignTopology(text, *format, entry.path().string());
      EXPECT_FALSE(topology.notes.empty()) << entry.path();
      const Cluster cluster(topology);
      EXPECT_GE(cluster.gpus().size(), 6u) << entry.path();
      EXPECT_TRUE(cluster.FindRoute(cluster.gpus()[0], cluster.gpus().back()).has_value())
          << entry.path();
      ++read;
    }
  }
  EXPECT_GE(read, 15u);
}

}  // namespace
}  // namespace windtunnel

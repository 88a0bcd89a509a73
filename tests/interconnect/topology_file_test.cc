#include "interconnect/topology_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "interconnect/catalogue.h"
#include "interconnect/cluster.h"
#include "interconnect/path_view.h"
#include "interconnect/topology_drawing.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

Topology FromYaml(std::string_view text) {
  return ReadTopologyText(text, TopologyFormat::kYaml, "test.yaml");
}
std::string MessageOf(std::string_view text) {
  try {
    FromYaml(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}
// Two GPUs and one link with the given further fields.
std::string Pair(std::string_view fields) {
  return fmt::format(
      "devices: [{{name: \"gpu[0-1]\", kind: gpu, sm: 80}}]\nlinks: [{{from: gpu0, to: gpu1, kind: "
      "nvlink, {}}}]\n",
      fields);
}

TEST(TopologyFile, CatalogueGivesTheRatesOfTheDataSheets) {
  const Catalogue& catalogue = Catalogue::Shipped();
  const auto rate = [&](LinkKind kind, std::uint32_t generation, std::uint32_t width) {
    return ToGigabytesPerSecond(catalogue.FindLink(kind, generation)->lane_rate * width);
  };
  EXPECT_NEAR(rate(LinkKind::kNvlink, 1, 4), 80, 1e-9);
  EXPECT_NEAR(rate(LinkKind::kNvlink, 4, 18), 450, 1e-9);
  EXPECT_NEAR(rate(LinkKind::kNvlink, 5, 18), 900, 1e-9);
  EXPECT_NEAR(rate(LinkKind::kPcie, 3, 16), 15.75, 0.01);
  EXPECT_NEAR(rate(LinkKind::kPcie, 4, 16), 31.5, 0.01);
  EXPECT_NEAR(rate(LinkKind::kPcie, 5, 16), 63.0, 0.02);
  EXPECT_NEAR(rate(LinkKind::kPcie, 6, 16), 121, 0.01);
  EXPECT_EQ(catalogue.FindDevice("h200-sxm")->memory_rate, GigabytesPerSecond(4800));
  EXPECT_EQ(catalogue.FindDevice("h200-sxm")->compute_units, 132u);
  for (const DeviceModel& model : catalogue.devices())
    EXPECT_FALSE(model.sources.empty()) << model.name;
}

TEST(TopologyFile, ExplicitRateOverrulesTheCatalogue) {
  const Topology topology = FromYaml(Pair("generation: 3, width: 4, rate: 50 GB/s"));
  ASSERT_EQ(topology.links.size(), 2u);
  EXPECT_EQ(topology.links[0].rate, GigabytesPerSecond(50));
  EXPECT_EQ(topology.links[0].width, 4u);
}

TEST(TopologyFile, OneWayMakesOneLink) {
  EXPECT_EQ(FromYaml(Pair("generation: 3, one_way: true")).links.size(), 1u);
}

TEST(TopologyFile, MistakesNameLineFieldAndWhatIsAllowed) {
  EXPECT_THAT(MessageOf(Pair("generation: 9")), HasSubstr("unknown generation of nvlink"));
  EXPECT_THAT(MessageOf(Pair("generation: 3, rate: 50")), HasSubstr("links[0].rate"));
  EXPECT_THAT(MessageOf(Pair("generation: 3, rate: 50 Gb")), HasSubstr("test.yaml:2"));
  EXPECT_THAT(MessageOf(Pair("width: 2")), HasSubstr("neither generation nor rate"));
  EXPECT_THAT(MessageOf(Pair("generation: 3, latency: -1 ns")), HasSubstr("negative"));
  EXPECT_THAT(MessageOf("devices: [{name: a, kind: gpuu}]"), HasSubstr("did you mean 'gpu'"));
  EXPECT_THAT(MessageOf("devices: [{name: a, model: h200-sxn}]"),
              HasSubstr("did you mean 'h200-sxm'"));
  EXPECT_THAT(
      MessageOf("devices: [{name: gpu0, kind: gpu, sm: 80}]\nlinks: [{from: gpu0, to: gpv1, "
                "kind: nvlink, generation: 3}]"),
      HasSubstr("names no device"));
  EXPECT_THAT(MessageOf("name: empty\n"), HasSubstr("describes no device"));
}

// T12, second half.
TEST(TopologyFile, RepeatedLinksNeedParallel) {
  const auto twice = [](std::string_view extra) {
    return fmt::format(
        "devices: [{{name: \"gpu[0-1]\", kind: gpu, sm: 80}}]\nlinks:\n  - {{from: gpu0, to: gpu1, "
        "kind: nvlink, generation: 3}}\n  - {{from: gpu0, to: gpu1, kind: nvlink, generation: "
        "3{}}}\n",
        extra);
  };
  EXPECT_THAT(MessageOf(twice("")), HasSubstr("parallel: true"));
  EXPECT_EQ(FromYaml(twice(", parallel: true")).links.size(), 4u);
}

// H10, T30: zero latency is allowed, zero rate only on a link that is down.
TEST(TopologyFile, ZeroLatencyIsAllowedAndZeroRateIsNot) {
  EXPECT_EQ(FromYaml(Pair("generation: 3, latency: 0")).links[0].latency, Picoseconds(0));
  EXPECT_NE(MessageOf(Pair("generation: 3, rate: 0 GB/s")), "accepted");
  EXPECT_TRUE(FromYaml(Pair("generation: 3, down: true")).links[0].down);
  for (const char* bad : {"NaN", "inf", "-1", "0x10", "12abc", "'1,5'", "''", "1e400"})
    EXPECT_NE(MessageOf(Pair(fmt::format("generation: 3, rate: {}", bad))), "accepted") << bad;
}

// T25.
TEST(TopologyFile, UnitsOfRatesAreTheirOwn) {
  const auto rate = [](std::string_view text) {
    return FromYaml(Pair(fmt::format("generation: 3, rate: {}", text))).links[0].rate;
  };
  EXPECT_EQ(rate("50 GB/s"), rate("400 Gb/s"));
  EXPECT_EQ(rate("50 GB/s"), rate("400 Gbit/s"));
  EXPECT_EQ(rate("50 GB/s"), rate("50e9 B/s"));
  EXPECT_EQ(rate("50 GiB/s").count(), 50ull * 8 * (1ull << 30));
  EXPECT_EQ(rate("50gbps"), GigabitsPerSecond(50));
}

// H11.
TEST(TopologyFile, AbsurdCountsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_THAT(MessageOf("nodes: 2147483648\nof: hgx-h100\n"), HasSubstr("too large a cluster"));
  EXPECT_THAT(MessageOf("devices: [{name: \"gpu[0-2147483647]\", kind: gpu, sm: 80}]"),
              HasSubstr("too many names"));
  EXPECT_THAT(
      MessageOf("devices: [{name: \"gpu[0-99999]\", kind: gpu, sm: 80}]\nlinks: [{from: "
                "\"gpu[0-99999]\", to: \"gpu[0-99999]\", kind: nvlink, generation: 3, pairing: "
                "all}]"),
      HasSubstr("too many links"));
  EXPECT_THROW(LoadTopology("hgx-h100*2147483648"), ConfigError);
}

TEST(TopologyFile, ALinkTooSlowForSharesOfItsRateIsRefusedWithItsLine) {
  const auto with_rate = [](std::string_view rate) {
    return "devices: [{name: \"gpu[0-1]\", kind: gpu, sm: 80}]\nlinks:\n  - {from: gpu0, to: gpu1, "
           "kind: nvlink, rate: " +
           std::string(rate) + ", latency: 1 us}\n";
  };
  EXPECT_THAT(MessageOf(with_rate("1 b/s")),
              ::testing::AllOf(HasSubstr("test.yaml:3"), HasSubstr("rate"), HasSubstr("'1 b/s'"),
                               HasSubstr("at least 100 kb/s")));
  EXPECT_THAT(MessageOf(with_rate("99 kb/s")), HasSubstr("too low"));
  EXPECT_EQ(MessageOf(with_rate("100 kb/s")), "accepted");
}

TEST(TopologyFile, ASwitchOfAFabricIsANetworkSwitch) {
  EXPECT_THAT(
      MessageOf("nodes: 2\nof: hgx-h100\nfabric: {kind: single-switch, model: connectx-7}\n"),
      ::testing::AllOf(HasSubstr("fabric.model"), HasSubstr("is a nic"),
                       HasSubstr("one of network-switch"), HasSubstr("did you mean 'quantum-2'")));
  EXPECT_THAT(
      MessageOf("nodes: 2\nof: hgx-h100\nfabric: {kind: fat-tree, model: quantun-2}\n"),
      ::testing::AllOf(HasSubstr("unknown switch model"), HasSubstr("did you mean 'quantum-2'")));
}

TEST(TopologyFile, ASwitchThatIsListedWithMoreLinksThanPortsIsWarnedOf) {
  const Topology topology = FromYaml(
      "devices:\n  - {name: \"gpu[0-40]\", kind: gpu, sm: 80}\n"
      "  - {name: leaf, model: spectrum-3}\n"
      "links: [{from: \"gpu[0-40]\", to: leaf, kind: network, rate: 400 Gb/s}]\n");
  EXPECT_THAT(topology.warnings, ::testing::Contains(HasSubstr("41 ports, and spectrum-3 has 32")));
}

TEST(TopologyFile, GroupsOfUnequalHostsAreNumberedInOrder) {
  const Topology topology = FromYaml(
      "groups: [{nodes: 8, of: hgx-h100}, {nodes: 8, of: hgx-h200}, {nodes: 4, of: dgx-a100}]\n"
      "fabric: {kind: single-switch, model: quantum-2}\n");
  EXPECT_EQ(topology.node_count, 20u);
  EXPECT_EQ(topology.devices[*topology.Find("node8/gpu0")].model, "h200-sxm");
  EXPECT_EQ(topology.devices[*topology.Find("node19/gpu7")].node, 19u);
  EXPECT_EQ(Cluster(topology).gpus().size(), 160u);
}

TEST(TopologyFile, UnknownFabricsListTheKnownOnes) {
  const std::string message = MessageOf("nodes: 2\nof: hgx-h100\nfabric: {kind: single-swich}\n");
  EXPECT_THAT(message, HasSubstr("unknown fabric"));
  EXPECT_THAT(message, HasSubstr("single-switch"));
}

TEST(TopologyFile, IncludesGiveTemplatesAndLoopsAreRefused) {
  const auto folder = testing::TemporaryDir();
  std::ofstream(folder / "host.yaml")
      << "templates: {tiny: {devices: [{name: cpu0, kind: cpu}, {name: gpu0, kind: gpu, sm: 80}, "
         "{name: nic0, kind: nic, port_rate: 100 Gb/s}], links: [{from: cpu0, to: gpu0, kind: "
         "pcie, "
         "generation: 4}, {from: cpu0, to: nic0, kind: pcie, generation: 4}]}}\n";
  std::ofstream(folder / "main.yaml")
      << "include: [host.yaml]\nnodes: 3\nof: tiny\nfabric: {kind: single-switch}\n";
  const Topology topology = LoadTopology((folder / "main.yaml").string());
  EXPECT_EQ(topology.node_count, 3u);
  std::ofstream(folder / "a.yaml") << "include: [b.yaml]\nof: b\n";
  std::ofstream(folder / "b.yaml") << "include: [a.yaml]\nof: a\n";
  try {
    LoadTopology((folder / "a.yaml").string());
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("loop"));
  }
}

// T14.
TEST(TopologyFile, FilesThatAreNotThereAreErrorsWithTheNearestName) {
  try {
    LoadTopology("hgx-h20O");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("neither a file nor a shipped system"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'hgx-h20"));
  }
}

TEST(TopologyFile, ShortFormsMultiplyAHost) {
  const Topology topology = LoadTopology("hgx-h100*4");
  EXPECT_EQ(topology.node_count, 4u);
  EXPECT_NE(topology.digest, LoadTopology("hgx-h100*5").digest);
  EXPECT_THROW(LoadTopology("hgx-h100*0"), ConfigError);
  EXPECT_THROW(LoadTopology("hgx-h100*4:no-such-fabric"), ConfigError);
}

TEST(TopologyFile, EveryShippedSystemSurvivesEveryOwnSpelling) {
  for (const std::string& name : ShippedTopologyNames()) {
    SCOPED_TRACE(name);
    const Topology topology = LoadTopology(name);
    for (const TopologyFormat format : {TopologyFormat::kYaml, TopologyFormat::kBinaryProto}) {
      const std::string text = WriteTopologyText(topology, format);
      EXPECT_EQ(WriteTopologyText(ReadTopologyText(text, format, "copy"), format), text);
    }
  }
}

TEST(TopologyFile, NvidiaSmiMatricesGivePathsAndLinksByTheNamedModel) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto load = [&](const char* name, const char* model) {
    return Cluster(
        LoadTopology((reference / "data/logs/topo" / name).string(), {.complete_as = model}));
  };
  const Cluster h100 = load("tp-04-8h100-nv18.txt", "h100-sxm");
  const auto route = h100.FindRoute(h100.gpus()[0], h100.gpus()[7]);
  EXPECT_EQ(h100.Bottleneck(*route), GigabytesPerSecond(450));
  const Cluster mesh = load("tp-09-4a100-markdown-table.txt", "a100-sxm4");
  EXPECT_EQ(mesh.Bottleneck(*mesh.FindRoute(mesh.gpus()[0], mesh.gpus()[3])),
            GigabytesPerSecond(100));
  const auto nics = mesh.topology().DevicesOf(DeviceKind::kNic);
  EXPECT_EQ(PathTypeBetween(mesh, mesh.gpus()[3], nics[0]), nccl::PathType::kPhb);
  const Cluster pairs = load("tp-16-8gpu-pix-phb-sys-1439.txt", "rtx3090");
  EXPECT_EQ(PathTypeBetween(pairs, pairs.gpus()[0], pairs.gpus()[1]), nccl::PathType::kPix);
  EXPECT_EQ(PathTypeBetween(pairs, pairs.gpus()[0], pairs.gpus()[2]), nccl::PathType::kPhb);
  EXPECT_EQ(PathTypeBetween(pairs, pairs.gpus()[0], pairs.gpus()[7]), nccl::PathType::kSys);
}

TEST(TopologyFile, EveryNvidiaSmiSampleLoadsOrFailsCleanly) {
  WT_REFERENCE_OR_SKIP(reference);
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(reference / "data/logs/topo")) {
    SCOPED_TRACE(entry.path().filename().string());
    try {
      const Topology topology = LoadTopology(entry.path().string(), {.complete_as = "a100-sxm4"});
      EXPECT_FALSE(topology.warnings.empty());
      ++loaded;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("cut"), HasSubstr("peer-to-peer status"),
                                                 HasSubstr("no matrix")));
    }
  }
  EXPECT_GE(loaded, 16);
}

TEST(TopologyFile, DrawingsNameEveryDevice) {
  const Topology topology = LoadTopology("dgx1-v100");
  const std::string dot = TopologyToDot(topology);
  const std::string svg = TopologyToSvg(topology);
  for (const Device& device : topology.devices) {
    EXPECT_THAT(dot, HasSubstr(device.name));
    EXPECT_THAT(svg, HasSubstr(">" + device.name + "<"));
  }
  EXPECT_THROW(TopologyToSvg(LoadTopology("hgx-h100*512")), ConfigError);
}

}  // namespace
}  // namespace windtunnel

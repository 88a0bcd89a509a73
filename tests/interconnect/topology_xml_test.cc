#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interconnect/catalogue.h"
#include "interconnect/cluster.h"
#include "interconnect/nccl/xml.h"
#include "interconnect/nccl_xml_topology.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

Topology FromXml(std::string_view text, const TopologyReadOptions& options = {}) {
  return ReadTopologyText(text, TopologyFormat::kNcclXml, "test.xml", options);
}
std::string ToXml(const Topology& topology) {
  return WriteTopologyText(topology, TopologyFormat::kNcclXml);
}
std::string MessageOf(std::string_view text, const TopologyReadOptions& options = {}) {
  try {
    FromXml(text, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}
// A host with one GPU whose slot and content the test chooses.
std::string OneGpu(std::string_view slot,
                   std::string_view gpu = R"(<gpu dev="0" sm="90" rank="0" gdr="1"/>)",
                   std::string_view more = "") {
  return fmt::format(R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x030200" {}>
      {}
    </pci>
    {}
  </cpu>
</system>
)",
                     slot, gpu, more);
}
constexpr std::string_view kGen4 = R"(link_speed="16.0 GT/s PCIe" link_width="16")";

const Link& GpuSlot(const Topology& topology) {
  for (const Link& link : topology.links) {
    if (topology.devices[link.from].kind == DeviceKind::kGpu && link.kind == LinkKind::kPcie)
      return link;
  }
  throw std::runtime_error("no slot");
}

TEST(TopologyXml, EveryReferenceFileLoadsOrFailsCleanly) {
  WT_REFERENCE_OR_SKIP(reference);
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(reference / "facts/topofiles")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(name);
    try {
      const Topology topology = LoadTopology(entry.path().string());
      const Cluster cluster(topology);
      EXPECT_FALSE(cluster.gpus().empty());
      const std::string once = ToXml(topology);
      EXPECT_EQ(ToXml(FromXml(once)), once) << "not stable";
      ++loaded;
    } catch (const ConfigError& error) {
      EXPECT_TRUE(name.starts_with("rccl") || name.find("graph") != std::string::npos ||
                  name.starts_with("azure-nd") || name.starts_with("aws-") ||
                  name.starts_with("rtpllm"))
          << error.what();
      if (name.starts_with("rccl")) {
        EXPECT_THAT(error.what(), HasSubstr("RCCL"));
      }
    }
  }
  EXPECT_GE(loaded, 9);
}

// Case T32.
TEST(TopologyXml, RealDumpsComeBackByteForByte) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const char* name : {"simllm-hgx-h200-8gpu-topo.xml", "simllm-hgx-b200-8gpu-vm-topo.xml",
                           "simllm-hpe-cray-a100-4gpu-nvlink-mesh-topo.xml"}) {
    const auto path = reference / "facts/topofiles" / name;
    EXPECT_EQ(ToXml(LoadTopology(path.string())), testing::ReadFile(path)) << name;
  }
}

TEST(TopologyXml, RealH200DumpHasOneNvswitchLayerOf18LinksPerGpu) {
  WT_REFERENCE_OR_SKIP(reference);
  const Cluster cluster(
      LoadTopology((reference / "facts/topofiles/simllm-hgx-h200-8gpu-topo.xml").string()));
  const auto route = cluster.FindRoute(cluster.gpus()[0], cluster.gpus()[5]);
  EXPECT_EQ(route->size(), 2u);
  EXPECT_EQ(cluster.Bottleneck(*route), GigabytesPerSecond(450));
  EXPECT_EQ(cluster.topology().devices[cluster.gpus()[0]].model, "h200-sxm");
}

// T07.
TEST(TopologyXml, WidthZeroIsSixteenLanesWithAWarning) {
  const Topology topology = FromXml(OneGpu(R"(link_speed="16.0 GT/s PCIe" link_width="0")"));
  EXPECT_EQ(GpuSlot(topology).width, 16u);
  EXPECT_THAT(topology.warnings, ::testing::Contains(HasSubstr("link_width")));
  EXPECT_THAT(MessageOf(OneGpu(R"(link_speed="16.0 GT/s PCIe" link_width="0")"), {.strict = true}),
              HasSubstr("link_width"));
}

// T08.
TEST(TopologyXml, NicSpeedOfMinusOneIsTenGigabitWithAWarning) {
  const auto nic = [](int speed) {
    return FromXml(
        OneGpu(
            kGen4, R"(<gpu dev="0" sm="90" rank="0" gdr="1"/>)",
            fmt::format(
                R"(<pci busid="0000:02:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="a" dev="0" speed="{}" guid="0x1"/></nic></pci>)",
                speed)),
        {.nodes = 2});
  };
  const auto port = [](const Topology& topology) {
    for (const Link& link : topology.links) {
      if (link.kind == LinkKind::kNetwork) return link.rate;
    }
    return BitsPerSecond();
  };
  EXPECT_EQ(port(nic(-1)), GigabitsPerSecond(10));
  EXPECT_EQ(port(nic(200'000)), GigabytesPerSecond(25));
  EXPECT_EQ(port(nic(400'000)), GigabytesPerSecond(50));
}

// T09: the wire by the number; NCCL's own count follows its spelling and is kept in the text.
TEST(TopologyXml, SpeedTextsGiveTheGenerationAndAWarningWhereNcclReadsGen3) {
  struct Case {
    const char* text;
    std::uint32_t generation;
    bool warns;
  };
  for (const Case& c :
       {Case{"8 GT/s", 3, false}, Case{"8.0 GT/s PCIe", 3, false}, Case{"16 GT/s", 4, false},
        Case{"16.0 GT/s PCIe", 4, false}, Case{"32.0 GT/s PCIe", 5, false},
        Case{"64.0 GT/s PCIe", 6, false}, Case{"5 GT/s PCIe", 2, false}, Case{"16.0 GT/s", 4, true},
        Case{"64 GT/s", 6, true}, Case{"128.0 GT/s PCIe", 7, true}, Case{"", 3, true}}) {
    SCOPED_TRACE(c.text);
    const std::string xml = OneGpu(fmt::format(R"(link_speed="{}" link_width="16")", c.text));
    const Topology topology = FromXml(xml);
    EXPECT_EQ(GpuSlot(topology).generation, c.generation);
    const bool warned = std::any_of(topology.warnings.begin(), topology.warnings.end(),
                                    [](const auto& w) { return w.find("link_speed") != w.npos; });
    EXPECT_EQ(warned, c.warns);
    EXPECT_THAT(ToXml(topology), HasSubstr(fmt::format("link_speed=\"{}\"", c.text)));
  }
  EXPECT_THAT(MessageOf(OneGpu(R"(link_speed="" link_width="16")"), {.strict = true}),
              HasSubstr("link_speed"));
  EXPECT_THAT(ToXml(FromXml(OneGpu(R"(link_speed="16.0 GT/s" link_width="16")"), {.strict = true})),
              HasSubstr("16.0 GT/s PCIe"));
}

// T12.
TEST(TopologyXml, RepeatedNvlinkTargetsAddUp) {
  const std::string twice = OneGpu(
      kGen4,
      R"(<gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="fffffff:ff:ff.0" count="1" tclass="0x068000"/><nvlink target="fffffff:ff:ff.0" count="1" tclass="0x068000"/></gpu>)");
  const std::string once = OneGpu(
      kGen4,
      R"(<gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="fffffff:ff:ff.0" count="2" tclass="0x068000"/></gpu>)");
  EXPECT_EQ(ToXml(FromXml(twice)), ToXml(FromXml(once)));
}

// T13.
TEST(TopologyXml, ElementsWithoutPartAreCountedAndLeftOut) {
  const Topology topology = FromXml(OneGpu(kGen4, R"(<gpu dev='0' sm='90' rank='0' gdr='1'/>)",
                                           R"(<!-- a comment -->
    <strange/>
    <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90" gdr="1"/></pci>
    <nic><net name="eth0"/></nic>)"));
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 1u);
  EXPECT_TRUE(topology.DevicesOf(DeviceKind::kNic).empty());
  EXPECT_THAT(topology.notes, ::testing::UnorderedElementsAre("left out: 1 gpu without rank",
                                                              "left out: 1 net without dev",
                                                              "left out: 1 unknown <strange>"));
}

// T16.
TEST(TopologyXml, TwoRanksOnOneBusIdAreRefusedWithBoth) {
  const std::string message = MessageOf(OneGpu(
      kGen4, R"(<gpu dev="0" sm="90" rank="0" gdr="1"/>)",
      R"(<pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90" rank="1" gdr="1"/></pci>)"));
  EXPECT_THAT(message, HasSubstr("ranks 0 and 1"));
  EXPECT_THAT(message, HasSubstr("0000:01:00.0"));
}

TEST(TopologyXml, OneWayNvlinkIsAWarningAndInStrictModeAnError) {
  const std::string xml = OneGpu(
      kGen4,
      R"(<gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu>)",
      R"(<pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="80" rank="1" gdr="1"/></pci>)");
  EXPECT_THAT(FromXml(xml).warnings, ::testing::Contains(HasSubstr("and back (0)")));
  EXPECT_THAT(MessageOf(xml, {.strict = true}), HasSubstr("and back (0)"));
}

TEST(TopologyXml, SkeletonsAreCompletedOnRequestWithAWarningForEachDefault) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto path = (reference / "facts/topofiles/azure-ndv5-topo.xml").string();
  EXPECT_THROW(LoadTopology(path), ConfigError);
  const Topology topology = LoadTopology(path, {.complete_as = "h100-sxm+connectx-7"});
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kGpu).size(), 8u);
  EXPECT_EQ(topology.DevicesOf(DeviceKind::kNic).size(), 8u);
  // One line per GPU, one for its NVLinks, one per NIC.
  EXPECT_GE(topology.warnings.size(), 24u);
  const Cluster cluster(topology);
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(cluster.gpus()[0], cluster.gpus()[7])),
            GigabytesPerSecond(450));
}

TEST(TopologyXml, RcclFilesAreRefusedByName) {
  EXPECT_THAT(MessageOf("<system version=\"2\"><cpu numaid=\"0\"/></system>"), HasSubstr("RCCL"));
}

TEST(TopologyXml, EveryShippedSystemGivesXmlOfItsHosts) {
  for (const std::string& name : ShippedTopologyNames()) {
    SCOPED_TRACE(name);
    const Topology topology = LoadTopology(name);
    const Cluster cluster(topology);
    EXPECT_FALSE(cluster.gpus().empty());
    const std::string xml = NodeNcclXml(topology, 0);
    const Topology back = FromXml(xml);
    EXPECT_TRUE(back.notes.empty());
    if (topology.node_count == 1) {
      EXPECT_EQ(back.DevicesOf(DeviceKind::kGpu).size(), cluster.gpus().size());
    }
    EXPECT_EQ(NodeNcclXml(topology, topology.node_count - 1), xml) << "hosts differ";
    for (const DeviceId gpu : cluster.gpus()) EXPECT_GT(topology.devices[gpu].sm, 0u);
    const auto components = cluster.Components();
    if (topology.node_count == 1) {
      EXPECT_EQ(*std::max_element(components.begin(), components.end()), 0u);
    }
  }
}

TEST(TopologyXml, HostsOfOneNvlinkDomainAreFusedIntoOneSystem) {
  const Topology topology = LoadTopology("gb200-nvl72");
  EXPECT_EQ(topology.node_count, 18u);
  EXPECT_EQ(NvlinkDomain(topology, 3).size(), 18u);
  const Topology back = FromXml(NodeNcclXml(topology, 3));
  EXPECT_EQ(back.DevicesOf(DeviceKind::kGpu).size(), 72u);
  EXPECT_EQ(back.node_count, 18u);
}

TEST(TopologyXml, YamlKeepsEverythingTheXmlNeeds) {
  WT_REFERENCE_OR_SKIP(reference);
  const Topology topology =
      LoadTopology((reference / "facts/topofiles/simllm-hgx-h200-8gpu-topo.xml").string());
  for (const TopologyFormat format : {TopologyFormat::kYaml, TopologyFormat::kJson,
                                      TopologyFormat::kTextProto, TopologyFormat::kBinaryProto}) {
    const std::string text = WriteTopologyText(topology, format);
    const Topology back = ReadTopologyText(text, format, "copy");
    EXPECT_EQ(ToXml(back), ToXml(topology));
    EXPECT_EQ(WriteTopologyText(back, format), text);
  }
}

}  // namespace
}  // namespace windtunnel

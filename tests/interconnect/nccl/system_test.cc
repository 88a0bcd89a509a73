#include "interconnect/nccl/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const TopologyRules kRules = TopologyRulesOf(kDefaultNcclVersion);

struct Built {
  System system;
  std::vector<std::string> warnings;
};

Built Build(const std::string& text, std::vector<int> devs = {}, XmlMode mode = XmlMode::kNccl,
            const TopologyRules& rules = kRules) {
  const XmlDocument document = ParseXml(text, "file.xml");
  std::vector<RankSeat> seats;
  if (devs.empty()) {
    for (const FileGpu& gpu : ListGpus(document)) {
      if (gpu.rank) devs.push_back(gpu.dev);
    }
  }
  for (const int dev : devs) seats.push_back({static_cast<int>(seats.size()), 0, dev});
  Built out;
  out.system = BuildSystem(KeepUsedParts(document, seats, rules), document.file, rules, mode, false,
                           out.warnings);
  return out;
}

constexpr const char* kIntelCpu =
    "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"";

/// One CPU with one GPU behind a slot of the given width and speed, and what follows.
std::string OneSlot(const std::string& slot, const std::string& inside_gpu = "",
                    const std::string& more = "") {
  return std::string("<system version=\"1\"><cpu numaid=\"0\" ") + kIntelCpu +
         "><pci busid=\"0000:01:00.0\" class=\"0x030200\" " + slot +
         "><gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">" + inside_gpu + "</gpu></pci>" + more +
         "</cpu></system>";
}

float SlotRate(const Built& built) {
  for (const SystemLink& link : built.system.nodes(NodeKind::kGpu)[0].links) {
    if (link.kind == LinkKind::kPci) return link.rate;
  }
  return 0;
}

TEST(NcclSystem, TakesWidthZeroAsSixteenLanesWithAWarning) {
  const Built built = Build(OneSlot("link_width=\"0\" link_speed=\"16.0 GT/s PCIe\""));
  EXPECT_FLOAT_EQ(SlotRate(built), 24.0F);
  EXPECT_THAT(built.warnings, Contains(HasSubstr("link_width")));
  EXPECT_THROW(
      Build(OneSlot("link_width=\"0\" link_speed=\"16.0 GT/s PCIe\""), {}, XmlMode::kStrict),
      ConfigError);
}

TEST(NcclSystem, ReadsPcieSpeedsByPrefixAsNcclDoes) {
  const auto rate = [](const std::string& speed, XmlMode mode = XmlMode::kNccl) {
    return SlotRate(Build(OneSlot("link_width=\"16\" link_speed=\"" + speed + "\""), {}, mode));
  };
  EXPECT_FLOAT_EQ(rate("8 GT/s"), 12);
  EXPECT_FLOAT_EQ(rate("8.0 GT/s PCIe"), 12);
  EXPECT_FLOAT_EQ(rate("16 GT/s"), 24);
  EXPECT_FLOAT_EQ(rate("16.0 GT/s PCIe"), 24);
  EXPECT_FLOAT_EQ(rate("32.0 GT/s PCIe"), 48);
  EXPECT_FLOAT_EQ(rate("64.0 GT/s PCIe"), 96);
  EXPECT_FLOAT_EQ(rate("5 GT/s PCIe"), 6);
  for (const char* unknown : {"16.0 GT/s", "64 GT/s", "128.0 GT/s PCIe", ""}) {
    EXPECT_FLOAT_EQ(rate(unknown), 12) << unknown;
    const Built built =
        Build(OneSlot(std::string("link_width=\"16\" link_speed=\"") + unknown + "\""));
    EXPECT_THAT(built.warnings, Contains(HasSubstr("link_speed"))) << unknown;
  }
  EXPECT_FLOAT_EQ(rate("16.0 GT/s", XmlMode::kStrict), 24);
  EXPECT_FLOAT_EQ(rate("64 GT/s", XmlMode::kStrict), 96);
  EXPECT_FLOAT_EQ(rate("128.0 GT/s PCIe", XmlMode::kStrict), 192);
  EXPECT_THROW(rate("", XmlMode::kStrict), ConfigError);
}

constexpr const char* kSlot = "link_width=\"16\" link_speed=\"32.0 GT/s PCIe\"";

std::string WithNet(const std::string& net) {
  return OneSlot(kSlot, "",
                 std::string("<pci busid=\"0000:02:00.0\" class=\"0x020700\" ") + kSlot + "><nic>" +
                     net + "</nic></pci>");
}

TEST(NcclSystem, TakesAnUnknownNicSpeedAsTenGigabit) {
  const auto build = [](const std::string& speed) {
    return Build(WithNet("<net dev=\"0\" guid=\"0x1\" speed=\"" + speed + "\"/>"));
  };
  for (const char* speed : {"-1", "0"}) {
    const Built built = build(speed);
    EXPECT_FLOAT_EQ(built.system.nodes(NodeKind::kNet)[0].net.rate, 1.25F);
    EXPECT_THAT(built.warnings, Contains(HasSubstr("speed")));
  }
  EXPECT_FLOAT_EQ(build("200000").system.nodes(NodeKind::kNet)[0].net.rate, 25);
  EXPECT_FLOAT_EQ(build("400000").system.nodes(NodeKind::kNet)[0].net.rate, 50);
}

std::string Nvlink(const std::string& target, int count, const std::string& far_class) {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" +
         far_class + "\"/>";
}

TEST(NcclSystem, JoinsAllNvswitchesInOneNode) {
  const std::string links =
      Nvlink("0000:c3:00.0", 5, "0x068000") + Nvlink("0000:c4:00.0", 5, "0x068000") +
      Nvlink("0000:c5:00.0", 4, "0x068000") + Nvlink("0000:c6:00.0", 4, "0x068000");
  const Built built = Build(OneSlot(kSlot, links));
  ASSERT_EQ(built.system.count(NodeKind::kNvs), 1u);
  EXPECT_FLOAT_EQ(built.system.nodes(NodeKind::kNvs)[0].links[0].rate, 370.8F);
  const TopologyRules older = TopologyRulesOf({2, 19, 4});
  EXPECT_FLOAT_EQ(Build(OneSlot(kSlot, links), {}, XmlMode::kNccl, older)
                      .system.nodes(NodeKind::kNvs)[0]
                      .links[0]
                      .rate,
                  360.0F);
}

std::string TwoGpus(const std::string& links0, const std::string& links1) {
  return OneSlot(kSlot, links0,
                 std::string("<pci busid=\"0000:02:00.0\" class=\"0x030200\" ") + kSlot +
                     "><gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">" + links1 + "</gpu></pci>");
}

TEST(NcclSystem, AddsRepeatedLinksUp) {
  const std::string there = Nvlink("0000:02:00.0", 1, "0x030200");
  const std::string back = Nvlink("0000:01:00.0", 2, "0x030200");
  const Built built = Build(TwoGpus(there + there, back));
  EXPECT_FLOAT_EQ(built.system.nodes(NodeKind::kGpu)[0].links[0].rate,
                  built.system.nodes(NodeKind::kGpu)[1].links[0].rate);
  EXPECT_THROW(Build(TwoGpus(there, "")), ConfigError) << "named in one direction only";
}

TEST(NcclSystem, SkipsWhatTakesNoPart) {
  const std::string text = std::string("<system version='1'><!-- comment --><cpu numaid='0' ") +
                           kIntelCpu + "><pci busid='0000:01:00.0' class='0x030200' " + kSlot +
                           "><gpu dev='0' sm='90' rank='0' gdr='1'/></pci>"
                           "<pci busid='0000:02:00.0' class='0x030200' " +
                           kSlot +
                           "><gpu dev='1' sm='90' gdr='1'/></pci>"
                           "<pci busid='0000:03:00.0' class='0x020700' " +
                           kSlot +
                           "><nic><net name='a' speed='100000'/><net name='b' dev='0' guid='0x1' "
                           "speed='100000'/></nic></pci>"
                           "<strange/></cpu></system>";
  const Built built = Build(text);
  EXPECT_EQ(built.system.count(NodeKind::kGpu), 1u);
  EXPECT_EQ(built.system.count(NodeKind::kNet), 1u);
  EXPECT_THAT(built.warnings, Contains(HasSubstr("strange")));
}

TEST(NcclSystem, LimitsTheLinkBetweenCpusByModel) {
  const auto rate = [](int model, const NcclVersion& version = kDefaultNcclVersion) {
    const std::string cpu = " arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"" +
                            std::to_string(model) + "\">";
    const auto gpu = [](int dev) {
      return "<pci busid=\"0000:0" + std::to_string(dev + 1) + ":00.0\" class=\"0x030200\" " +
             kSlot + "><gpu dev=\"" + std::to_string(dev) + "\" sm=\"80\" rank=\"" +
             std::to_string(dev) + "\" gdr=\"1\"/></pci></cpu>";
    };
    const Built built = Build("<system version=\"1\"><cpu numaid=\"0\"" + cpu + gpu(0) +
                                  "<cpu numaid=\"1\"" + cpu + gpu(1) + "</system>",
                              {}, XmlMode::kNccl, TopologyRulesOf(version));
    const auto& links = built.system.nodes(NodeKind::kCpu)[0].links;
    return std::find_if(links.begin(), links.end(),
                        [](const SystemLink& link) { return link.kind == LinkKind::kSys; })
        ->rate;
  };
  EXPECT_FLOAT_EQ(rate(0x4F), 6);
  EXPECT_FLOAT_EQ(rate(0x55), 10);
  EXPECT_FLOAT_EQ(rate(0x8F), 22);
  EXPECT_FLOAT_EQ(rate(0xCF), 40);
  EXPECT_FLOAT_EQ(rate(0xCF, {2, 25, 1}), 10);
  EXPECT_FLOAT_EQ(rate(0x55, {2, 12, 12}), 9);
}

TEST(NcclSystem, NamesAGpuThatTheFileLacks) {
  try {
    Build(OneSlot(kSlot), {3});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("file.xml"));
    EXPECT_THAT(error.what(), HasSubstr("'3'"));
  }
}

TEST(NcclSystem, RefusesRcclFilesAndOtherTrees) {
  EXPECT_THROW(Build("<system version=\"2\"><cpu numaid=\"0\"/></system>"), ConfigError);
  EXPECT_THROW(Build("<graphs version=\"1\"/>"), ConfigError);
}

}  // namespace
}  // namespace windtunnel::nccl

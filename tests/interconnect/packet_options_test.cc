#include "interconnect/packet_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "tests/support/network_contract.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

PacketNetwork::Options Parsed(std::string_view text) {
  PacketNetwork::Options options;
  ApplyPacketOptions(
      text, {.field = "--network"},
      testing::StarTopology(2, LinkKind::kNetwork, GigabitsPerSecond(100), Nanoseconds(500)),
      &options);
  return options;
}

std::string Fault(std::string_view text) {
  try {
    Parsed(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PacketOptionsTest, ReadsEveryKindOfValueFromLeftToRight) {
  const PacketNetwork::Options options = Parsed(
      "pfc=off,pfc-xoff=64 KiB,ecn-pmax=0.5,dcqcn=connectx,dcqcn-gain=0.25,window=1.5x,"
      "retry=go-back-n,timeout-exponent=14,queue-pairs=4,split=off,step=11 us,"
      "step-window=1,tcp=on,tcp-cpu-rate=off,bursts=off,seed=7");
  EXPECT_FALSE(options.pfc.enabled);
  EXPECT_EQ(options.pfc.xoff, KiB(64));
  EXPECT_EQ(options.ecn.pmax, 0.5);
  EXPECT_EQ(options.dcqcn.cnp_interval, Microseconds(4));
  EXPECT_EQ(options.dcqcn.gain, 0.25);
  EXPECT_GT(options.dcqcn_below, GigabitsPerSecond(800));
  EXPECT_EQ(Parsed("dcqcn=on,dcqcn=auto").dcqcn_below, GigabitsPerSecond(400));
  EXPECT_EQ(options.window_paths, 1.5);
  EXPECT_TRUE(options.retry.go_back_n);
  EXPECT_EQ(options.retry.timeout_exponent, 14u);
  EXPECT_EQ(options.nic.queue_pairs, 4u);
  EXPECT_FALSE(options.nic.split_messages);
  EXPECT_EQ(options.nic.step, Microseconds(11));
  EXPECT_EQ(options.nic.step_window, 1u);
  EXPECT_TRUE(options.tcp.enabled);
  EXPECT_EQ(options.tcp.cpu_rate, BitsPerSecond(0));
  EXPECT_EQ(options.burst.bursts_per_message, 0u);
  EXPECT_EQ(options.retry.seed, 7u);
  EXPECT_EQ(Parsed("").retry.seed, 1u);
}

TEST(PacketOptionsTest, LinksAreNamedByTheirEnds) {
  const PacketNetwork::Options options = Parsed(
      "error-rate=0.001,error-rate=0.5@gpu0->switch,"
      "down=switch->gpu1@1 ms..2 ms,down=switch->gpu1@5 ms..");
  EXPECT_EQ(options.error_rates.size(), 4u);
  EXPECT_EQ(options.error_rates.at(0), 0.5);
  EXPECT_EQ(options.error_rates.at(3), 0.001);
  ASSERT_EQ(options.outages.at(3).size(), 2u);
  EXPECT_EQ(options.outages.at(3)[0].up, SimTime(Milliseconds(2)));
  EXPECT_EQ(options.outages.at(3)[1].up, CreditCounter::kUnknown);
}

TEST(PacketOptionsTest, FaultsNameKeyValueAndWhatIsAllowed) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(Fault("pfcx=on"), AllOf(HasSubstr("--network"), HasSubstr("pfcx"), HasSubstr("pfc")));
  EXPECT_THAT(Fault("pfc"), AllOf(HasSubstr("has no value"), HasSubstr("pfc=on|off"),
                                  ::testing::Not(HasSubstr("did you mean"))));
  EXPECT_THAT(Fault("windw"), AllOf(HasSubstr("KEY=VALUE"), HasSubstr("did you mean 'window'")));
  EXPECT_THAT(Fault("link-buffer=1"),
              AllOf(HasSubstr("--network link-buffer"), HasSubstr("'1 B'"), HasSubstr("4122 B")));
  EXPECT_EQ(Fault("link-buffer=4122"), "");
  EXPECT_THAT(Fault("pfc=yes"),
              AllOf(HasSubstr("--network pfc"), HasSubstr("'yes'"), HasSubstr("on or off")));
  EXPECT_THAT(Fault("pfc-xoff=0"), HasSubstr("above zero"));
  EXPECT_THAT(Fault("ecn-pmax=2"), HasSubstr("at most 1"));
  EXPECT_THAT(Fault("ecn-kmin=2 MB,ecn-kmax=1 MB"), HasSubstr("more than"));
  EXPECT_THAT(Fault("dcqcn=of"), HasSubstr("connectx"));
  EXPECT_THAT(Fault("timeout-exponent=32"), HasSubstr("31"));
  EXPECT_THAT(Fault("timeout-exponent=0"), HasSubstr("1"));
  EXPECT_THAT(Fault("window=x"), HasSubstr("window"));
  EXPECT_THAT(Fault("error-rate=1.5"), HasSubstr("0 to 1"));
  EXPECT_THAT(Fault("error-rate=0.1@gpu0->gpu1"), HasSubstr("without a link"));
  EXPECT_THAT(Fault("error-rate=0.1@gpu0->swich"), HasSubstr("switch"));
  EXPECT_THAT(Fault("down=gpu0->switch@2 ms..1 ms"), HasSubstr("ends before it begins"));
  EXPECT_THAT(Fault("down=gpu0->switch@1 ms"), HasSubstr("FROM->TO@TIME"));
  EXPECT_THAT(Fault("down=gpu0->switch@1 ms..,down=gpu0->switch@3 ms.."), HasSubstr("order"));
}

TEST(PacketOptionsTest, SettingsThatCannotMatterOnTheClusterAreTold) {
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  Topology star =
      testing::StarTopology(2, LinkKind::kNetwork, GigabitsPerSecond(100), Nanoseconds(500));
  const std::string_view all = "tcp=on,pfc=off,dcqcn-gain=0.5,switch-buffer=1 MB,window=1x,seed=3";
  EXPECT_THAT(SettingsWithoutEffect(all, star),
              ElementsAre(HasSubstr("--network tcp=on has no effect"), HasSubstr("pfc=off"),
                          HasSubstr("no RoCE links"), HasSubstr("switch-buffer")))
      << "InfiniBand";
  for (Device& device : star.devices) device.attributes["protocol"] = "roce";
  EXPECT_THAT(SettingsWithoutEffect(all, star), ElementsAre(HasSubstr("tcp=on")));
  for (Device& device : star.devices) device.attributes["protocol"] = "ethernet";
  EXPECT_THAT(SettingsWithoutEffect(all, star),
              ElementsAre(HasSubstr("pfc=off"), HasSubstr("dcqcn-gain")));
  for (Link& link : star.links) link.kind = LinkKind::kNvlink;
  EXPECT_THAT(SettingsWithoutEffect("window=1x", star), ElementsAre(HasSubstr("no network links")));
}

constexpr const char* kTwoHosts = R"(
nodes: 2
devices: [{name: gpu, kind: gpu, sm: 90}, {name: nic, kind: nic, model: connectx-7}]
links: [{from: gpu, to: nic, kind: pcie, generation: 5, width: 16}]
)";

Topology Read(const std::string& fabric) {
  return ReadTopologyText(kTwoHosts + fabric, TopologyFormat::kYaml, "two.yaml");
}

TEST(PacketOptionsTest, ATopologyFileNamesTheOptionsOfItsNetwork) {
  const Topology topology =
      Read("fabric: {kind: single-switch, network: \"dcqcn=off,queue-pairs=2\"}\n");
  const PacketNetwork::Options options = PacketOptionsOf(topology);
  EXPECT_FALSE(options.dcqcn.enabled);
  EXPECT_EQ(options.nic.queue_pairs, 2u);
  EXPECT_EQ(PacketNetwork(topology).options().nic.queue_pairs, 2u);
  EXPECT_TRUE(PacketOptionsOf(Read("fabric: {kind: single-switch}\n")).dcqcn.enabled);
}

TEST(PacketOptionsTest, AWrongOptionInATopologyFileIsFoundWhenItIsRead) {
  try {
    Read("fabric: {kind: single-switch, network: \"dcqn=off\"}\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("two.yaml"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("fabric.network"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean 'dcqcn'"));
  }
}

TEST(PacketOptionsTest, EveryKeyHasItsLineOfHelpAndItsPlaceInTheDocument) {
  const std::string help = PacketOptionHelp();
  const std::string document = testing::ReadFile(testing::SourceDir() / "docs/packet-level.md");
  for (const PacketOptionKey& key : PacketOptionKeys()) {
    EXPECT_NE(help.find("  " + std::string(key.key) + "="), std::string::npos) << key.key;
    EXPECT_LE(key.help.size(), 75u) << key.key;
    EXPECT_NE(document.find("`" + std::string(key.key) + "`"), std::string::npos) << key.key;
  }
}

}  // namespace
}  // namespace windtunnel

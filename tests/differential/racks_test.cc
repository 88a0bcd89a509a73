// A third host in another rack: slower only where the uplink is the reason, and the run says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collectives/simulation.h"
#include "interconnect/topology_file.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

// Three hosts of two GPUs and a 200 Gb/s NIC; two of them below one leaf.
std::string Racks(const std::string& fabric) {
  return "name: racks\n"
         "templates:\n"
         "  box:\n"
         "    devices:\n"
         "      - {name: cpu0, model: xeon-icelake}\n"
         "      - {name: \"gpu[0-1]\", model: a100-pcie-80gb}\n"
         "      - {name: nic0, model: connectx-6}\n"
         "    links:\n"
         "      - {from: cpu0, to: \"gpu[0-1]\", kind: pcie}\n"
         "      - {from: cpu0, to: nic0, kind: pcie}\n"
         "groups:\n"
         "  - {nodes: 3, of: box}\n"
         "fabric: " +
         fabric + "\n";
}

CallOutcome AllReduce(const std::string& fabric, Fidelity fidelity) {
  const auto file = testing::TemporaryDir() / "racks.yaml";
  std::ofstream(file) << Racks(fabric);
  SimulationOptions options;
  options.fidelity = fidelity;
  options.algorithm = "ring";
  options.ideal_endpoints = true;
  Simulation simulation(Cluster(LoadTopology(file.string())), options);
  return simulation.Run({.function = Function::kAllReduce, .rank_count = 6, .count = 16 << 20});
}

class RacksTest : public ::testing::TestWithParam<Fidelity> {};

// Case A11.
TEST_P(RacksTest, AThirdHostInAnotherRackCostsWhatTheUplinkTakes) {
  const CallOutcome together = AllReduce("{kind: single-switch, model: quantum-hdr}", GetParam());
  const auto racks = [&](const char* rate) {
    return AllReduce(
        std::string("{kind: leaf-spine, model: quantum-hdr, options: {hosts_per_leaf: 2, "
                    "uplinks: 1, uplink_rate: ") +
            rate + "}}",
        GetParam());
  };
  // The ring crosses the uplink once each way: as wide as a NIC, it explains nothing.
  const CallOutcome wide = racks("200 Gb/s");
  EXPECT_NEAR(ToMicroseconds(wide.time) / ToMicroseconds(together.time), 1.0, 0.01);
  // A quarter as wide: four times the time, and the uplink is what binds.
  const CallOutcome narrow = racks("50 Gb/s");
  EXPECT_NEAR(ToMicroseconds(narrow.time) / ToMicroseconds(together.time), 4.0, 0.2);
  EXPECT_THAT(narrow.bound, HasSubstr("leaf"));
  EXPECT_THAT(narrow.bound, HasSubstr("spine"));
}
INSTANTIATE_TEST_SUITE_P(Levels, RacksTest, ::testing::Values(Fidelity::kPacket, Fidelity::kFlow),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

}  // namespace
}  // namespace windtunnel

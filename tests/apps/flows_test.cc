// What a run leaves beside its table: flows, traces, their limits; and the ways data take on hosts
// with odd slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "collectives/simulation.h"
#include "interconnect/topology_file.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ReadFile;
using testing::RunProgram;
using testing::TemporaryDir;

struct FlowsOfRun {
  Picoseconds time;
  std::map<std::string, int> out_of_nic;
};

FlowsOfRun RunFlows(const std::string& topology, const std::string& algorithm = "") {
  SimulationOptions options;
  options.fidelity = Fidelity::kFlow;
  options.algorithm = algorithm;
  Simulation simulation(Cluster(LoadTopology(topology, {.nodes = 2})), options);
  std::vector<FlowUse> flows;
  FlowsOfRun result;
  result.time = simulation
                    .Run({.function = Function::kAllReduce,
                          .rank_count = simulation.rank_count(),
                          .count = 16 << 20},
                         {.flows = &flows})
                    .time;
  for (const FlowUse& flow : flows) {
    if (!flow.nic_out) continue;
    EXPECT_TRUE(flow.nic_in.has_value());
    EXPECT_GT(flow.use.last_ready, flow.use.first_send);
    ++result.out_of_nic[simulation.cluster().topology().devices[*flow.nic_out].name];
  }
  return result;
}

// Case T18: a virtual bridge may show the two NICs of a switch in either order.
TEST(NicAffinity, SwappedNicsOfASwitchAllCarryEqualShares) {
  const auto plain = TemporaryDir() / "plain.xml";
  const auto swapped = TemporaryDir() / "swapped.xml";
  ASSERT_EQ(RunProgram({"topo", "convert", "dgx-a100", "-o", plain.string()}).exit_code, 0);
  std::istringstream lines(ReadFile(plain));
  std::ofstream out(swapped);
  const std::regex device("(.*<net name=\"[^\"]*\" )dev=\"(\\d)\"(.*)");
  int nets = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, device)) {
      ++nets;
      line = match[1].str() + "dev=\"" + std::to_string(std::stoi(match[2]) ^ 1) + "\"" +
             match[3].str();
    }
    out << line << "\n";
  }
  out.close();
  ASSERT_EQ(nets, 8);
  const FlowsOfRun a = RunFlows(plain.string());
  const FlowsOfRun b = RunFlows(swapped.string());
  EXPECT_EQ(a.time, b.time);
  EXPECT_EQ(a.out_of_nic.size(), 16u);
  EXPECT_EQ(a.out_of_nic, b.out_of_nic);
  for (const auto& [nic, count] : a.out_of_nic) {
    EXPECT_EQ(count, a.out_of_nic.begin()->second) << nic;
  }
}

TEST(NicAffinity, GpusThatShareTwoNicsUseBoth) {
  const auto file = TemporaryDir() / "two.yaml";
  std::ofstream(file) << "name: two\n"
                         "devices:\n"
                         "  - {name: cpu0, model: xeon-icelake}\n"
                         "  - {name: sw0, model: pcie-switch-gen4}\n"
                         "  - {name: \"gpu[0-1]\", model: a100-pcie-80gb}\n"
                         "  - {name: \"nic[0-1]\", model: connectx-6}\n"
                         "links:\n"
                         "  - {from: cpu0, to: sw0, kind: pcie}\n"
                         "  - {from: sw0, to: \"gpu[0-1]\", kind: pcie}\n"
                         "  - {from: sw0, to: \"nic[0-1]\", kind: pcie}\n";
  const FlowsOfRun run = RunFlows(file.string(), "direct");
  EXPECT_EQ(run.out_of_nic.size(), 4u);
  for (const auto& [nic, count] : run.out_of_nic) {
    EXPECT_EQ(count, run.out_of_nic.begin()->second) << nic;
  }
}

std::string Box(const std::string& gpu_link_options) {
  return "name: box\n"
         "devices:\n"
         "  - {name: cpu0, model: xeon-icelake}\n"
         "  - {name: sw0, model: pcie-switch-gen4}\n"
         "  - {name: \"gpu[0-1]\", model: a100-pcie-80gb}\n"
         "links:\n"
         "  - {from: cpu0, to: sw0, kind: pcie}\n"
         "  - {from: sw0, to: \"gpu[0-1]\", kind: pcie" +
         gpu_link_options + "}\n";
}

// Access control on the switch: what one GPU sends to the other goes up to the host and down again.
TEST(BlockedPeerAccess, DataCrossTheHostLinkUpAndDownAndTakeLonger) {
  const auto run = [](const std::string& text) {
    const auto file = TemporaryDir() / "box.yaml";
    std::ofstream(file) << text;
    SimulationOptions options;
    options.ideal_endpoints = true;
    Simulation simulation(Cluster(LoadTopology(file.string())), options);
    return simulation.Run({.function = Function::kSendRecv, .rank_count = 2, .count = 16 << 20});
  };
  const CallOutcome direct = run(Box(""));
  const CallOutcome blocked = run(Box(", p2p: false"));
  std::map<std::string, Bytes> carried;
  for (const LinkLoadReport::Row& link : blocked.links.rows) carried[link.name] = link.use.payload;
  // Both GPUs send 64 MiB: the host link carries both, up and down.
  EXPECT_EQ(carried["sw0 -> cpu0"], MiB(128));
  EXPECT_EQ(carried["cpu0 -> sw0"], MiB(128));
  for (const LinkLoadReport::Row& link : direct.links.rows) EXPECT_NE(link.name, "sw0 -> cpu0");
  EXPECT_NEAR(ToMicroseconds(blocked.time) / ToMicroseconds(direct.time), 2.0, 0.05);
}

// Two sockets: NCCL's figures for traffic between them, by model of the CPU.
TEST(NumaCrossing, APairOnTwoSocketsIsLimitedByTheCpuModel) {
  const auto gbps = [](const std::string& cpu, const std::string& ranks) {
    const auto file = TemporaryDir() / "sockets.yaml";
    std::ofstream(file) << "name: sockets\n"
                           "devices:\n"
                           "  - {name: \"cpu[0-1]\", model: " +
                               cpu +
                               "}\n"
                               "  - {name: \"gpu[0-3]\", model: h100-pcie}\n"
                               "links:\n"
                               "  - {from: cpu0, to: cpu1, kind: numa}\n"
                               "  - {from: cpu0, to: \"gpu[0-1]\", kind: pcie}\n"
                               "  - {from: cpu1, to: \"gpu[2-3]\", kind: pcie}\n";
    SimulationOptions options;
    options.ideal_endpoints = true;
    options.gpus =
        ranks == "near" ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{0, 2};
    Simulation simulation(Cluster(LoadTopology(file.string())), options);
    const CallOutcome call =
        simulation.Run({.function = Function::kSendRecv, .rank_count = 2, .count = 64 << 20});
    return 4.0 * (64 << 20) / ToMicroseconds(call.time) / 1e3;
  };
  for (const auto& [cpu, most] : {std::pair{"xeon-skylake", 10.0},
                                  {"xeon-sapphire-rapids", 22.0},
                                  {"xeon-emerald-rapids", 40.0}}) {
    EXPECT_LE(gbps(cpu, "far"), most) << cpu;
    EXPECT_GE(gbps(cpu, "far"), 0.8 * most) << cpu;
    EXPECT_GT(gbps(cpu, "near"), gbps(cpu, "far")) << cpu;
  }
}

TEST(OutputFiles, ATraceKeepsItsLimitAndSaysWhatItLeftOut) {
  const auto trace = TemporaryDir() / "trace.json";
  const auto run = RunProgram({"collective", "all_reduce", "-t", "hgx-h100*2", "-b", "64M", "-c",
                               "0", "--trace", trace.string(), "--trace-limit", "64 KiB"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LE(std::filesystem::file_size(trace), 64u << 10);
  EXPECT_THAT(run.err, HasSubstr("left out at the limit of 64 KiB"));
}

TEST(OutputFiles, AFullDiskIsOneMessageThatNamesTheFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "skipped: no full device here";
  for (const char* flag : {"--trace", "--vcd", "--flows", "--json", "--csv"}) {
    const auto run = RunProgram(
        {"collective", "all_reduce", "-t", "hgx-h100", "-b", "16M", "-c", "0", flag, "/dev/full"});
    EXPECT_EQ(run.exit_code, 1) << flag;
    EXPECT_THAT(run.err, AllOf(HasSubstr("/dev/full"), HasSubstr(flag), HasSubstr("written")));
  }
}

TEST(OutputFiles, LinkUseOverTimeStaysBetweenNothingAndAll) {
  const auto trace = TemporaryDir() / "trace.json";
  const auto run = RunProgram({"collective", "all_reduce", "-t", "hgx-h100", "-b", "16M", "-c", "0",
                               "--trace", trace.string()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string text = ReadFile(trace);
  const std::regex counter("\"ph\":\"C\"[^}]*\"value\":([0-9.e+-]+)");
  std::size_t points = 0;
  double most = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), counter), end; at != end; ++at) {
    const double value = std::stod((*at)[1]);
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 1.0 + 1e-9);
    most = std::max(most, value);
    ++points;
  }
  EXPECT_GT(points, 20u);
  EXPECT_GT(most, 0.5);
}

}  // namespace
}  // namespace windtunnel

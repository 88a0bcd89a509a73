#include "validate/nccl_plans/log_diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "tests/collectives/nccl/machines.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What NCCL would print if it decided as `comm` does: all ranks, the table, and some calls.
std::string OwnLog(const Communicator& comm) {
  std::string log =
      fmt::format("host:1:1 [0] NCCL INFO NCCL version {}+cuda12.4\n", ToString(comm.version()));
  for (int r = 0; r < comm.rank_count(); ++r) {
    const std::string head = fmt::format("host:1:{} [{}] NCCL INFO ", 10 + r, r);
    log += fmt::format("{}ncclCommInitRank comm 0x1 rank {} nranks {} cudaDev 0 - Init START\n",
                       head, r, comm.rank_count());
    for (const std::string& line : comm.InitLines(static_cast<Rank>(r))) log += head + line + "\n";
    if (r > 0) continue;
    for (const std::string& line : comm.TuningLines()) log += head + line + "\n";
    for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{1} << 30; bytes *= 8) {
      const CallPlan plan = comm.Plan({.function = Function::kAllReduce, .count = bytes / 4});
      log += fmt::format("{}AllReduce: {} Bytes -> Algo {} proto {} time {:.6f}\n", head, bytes,
                         Index(plan.algorithm), Index(plan.protocol), plan.time_us);
    }
  }
  return log;
}

std::string Text(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The communicator of a log on `nodes` hosts with this topology.
Communicator OfLog(const LogSetting& setting, int nodes, const XmlDocument& topology) {
  NodeSearchRequest request;
  request.nodes = nodes;
  request.version = setting.version.value();
  request.environment = Environment(setting.variables);
  if (setting.multicast_off) request.multicast = false;
  request.collnet_plugin = setting.collnet_plugin;
  return Communicator(JobOfEqualHosts(SearchNode(topology, request), request), request.version,
                      request.environment);
}

Communicator Machine(const std::filesystem::path& reference, NcclVersion version) {
  return OnMachine(reference, kH100, 2, {}, version);
}

TEST(LogDiff, OfOurOwnLinesIsEmpty) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const NcclVersion version :
       {NcclVersion{2, 12, 10}, NcclVersion{2, 22, 3}, kDefaultNcclVersion}) {
    SCOPED_TRACE(ToString(version));
    const Communicator comm = Machine(reference, version);
    const std::string log = OwnLog(comm);
    const LogSetting setting = ReadLogSetting(log, "own.log");
    EXPECT_EQ(setting.version, version);
    EXPECT_EQ(setting.ranks, 16);
    const LogDiff diff = DiffLog(log, "own.log", comm);
    EXPECT_TRUE(diff.AllAgree()) << diff.ToText();
    const auto agree = [&](const char* kind) { return diff.kinds.at(kind).agree; };
    const auto channels = static_cast<std::uint64_t>(comm.connections().channel_count);
    EXPECT_EQ(agree("ring"), 16 * channels);
    EXPECT_EQ(agree("neighbours"), 16 * channels);
    EXPECT_EQ(agree("tree"), 16 * channels);
    EXPECT_EQ(agree("tuning") % (5 * 9 / 3), 0u);
    EXPECT_GT(agree("threads"), 0u);
    EXPECT_EQ(agree("threshold"), 16u * 4);
    EXPECT_EQ(agree("choice"), 7u);
  }
}

TEST(LogDiff, NamesTheLineOfAChangedRing) {
  WT_REFERENCE_OR_SKIP(reference);
  const Communicator comm = Machine(reference, kDefaultNcclVersion);
  std::string log = OwnLog(comm);
  const std::string ring = comm.InitLines(0)[3];
  std::string changed = ring;
  // The last two ranks change places.
  const auto last = changed.rfind(' ');
  const auto before = changed.find_last_not_of(' ', last);
  const auto start = changed.rfind(' ', before);
  changed = changed.substr(0, start + 1) + changed.substr(last + 1) + " " +
            changed.substr(start + 1, before - start);
  log.replace(log.find(ring), ring.size(), changed);
  const LogDiff diff = DiffLog(log, "own.log", comm);
  ASSERT_EQ(diff.differ(), 1u) << diff.ToText();
  const LogDiff::Difference& difference = diff.differences[0];
  EXPECT_EQ(difference.line, 6u);  // Version, announcement, channels 0 to 3.
  EXPECT_EQ(difference.kind, "ring");
  EXPECT_EQ(difference.where, "channel 3");
  EXPECT_NE(difference.log, difference.ours);
  EXPECT_EQ(diff.kinds.at("ring").differ, 1u);
  EXPECT_FALSE(diff.AllAgree());
  EXPECT_THAT(diff.ToText(), HasSubstr("line 6: ring, channel 3"));
}

TEST(LogDiff, LeavesOtherCommunicatorsAlone) {
  WT_REFERENCE_OR_SKIP(reference);
  const Communicator comm = OnMachine(reference, kA100, 1);
  const Communicator other = OnMachine(reference, kA100, 2);
  const LogDiff diff = DiffLog(OwnLog(comm) + OwnLog(other), "two.log", comm);
  EXPECT_TRUE(diff.AllAgree()) << diff.ToText();
  EXPECT_GT(diff.other_communicators, 100u);
}

TEST(LogDiff, RefusesALogOfAnotherNumberOfRanks) {
  WT_REFERENCE_OR_SKIP(reference);
  const std::string log = OwnLog(OnMachine(reference, kA100, 2));
  try {
    DiffLog(log, "two.log", OnMachine(reference, kA100, 1));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("two.log"), HasSubstr("8 ranks"), HasSubstr("16"),
                                    HasSubstr("--nodes")));
  }
}

TEST(LogDiff, RefusesATextThatIsNoLog) {
  EXPECT_THROW(ReadLogSetting("hello\n", "hello.txt"), ConfigError);
}

TEST(LogSetting, TakesVersionVariablesAndPluginsFromTheLog) {
  const LogSetting setting = ReadLogSetting(
      "NCCL version 2.20.5+cuda12.4\n"
      "h:1:2 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 1.\n"
      "h:1:2 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /x/topo.xml\n"
      "h:1:2 [0] NCCL INFO NET/Plugin: Loaded coll plugin SHARP (v6)\n"
      "h:1:2 [0] NCCL INFO NVLS multicast support is not available on dev 0\n",
      "a.log");
  EXPECT_EQ(setting.version, (NcclVersion{2, 20, 5}));
  EXPECT_EQ(setting.variables, (std::map<std::string, std::string>{{"NCCL_CROSS_NIC", "1"}}));
  EXPECT_TRUE(setting.multicast_off);
  EXPECT_TRUE(setting.collnet_plugin);
}

// Logs of machines whose topology file is at hand: two A100 with direct NVLink, and eight H200
// behind switches; and of boards of four H100, all linked by NVLink, as the shipped system of four
// GH200 is for NCCL inside one host.
TEST(LogDiff, OfRealRunsAgrees) {
  WT_REFERENCE_OR_SKIP(reference);
  struct Run {
    const char* log;
    const char* topology;  ///< A file of the reference, or a shipped system.
    std::uint64_t values;
  };
  for (const Run& run :
       {Run{"ni-2.23.4-all-subsys.txt", "mynccl-2xa100-direct-nvlink-topo.xml", 125},
        Run{"ni-2.23.4-2a100-nvlink.txt", "mynccl-2xa100-direct-nvlink-topo.xml", 93},
        Run{"ni-2.22.3-8h200-nvls.txt", "simllm-hgx-h200-8gpu-topo.xml", 297},
        Run{"ni-2.17.1-4h100.txt", "gh200x4", 153},
        Run{"ni-2.22.3-4h100-1node.txt", "gh200x4", 161}}) {
    SCOPED_TRACE(run.log);
    const auto file = reference / "data" / "logs" / "nccl-info" / run.log;
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "skipped: no logs";
    const std::string log = Text(file);
    const std::string topology = run.topology;
    const Communicator comm =
        OfLog(ReadLogSetting(log, run.log), 1,
              topology.ends_with(".xml")
                  ? ReadXmlFile(reference / "facts" / "topofiles" / topology)
                  : ParseXml(NodeNcclXml(LoadTopology(topology, {.nodes = 1}), 0), topology));
    const LogDiff diff = DiffLog(log, run.log, comm);
    EXPECT_TRUE(diff.AllAgree()) << diff.ToText();
    EXPECT_EQ(diff.agree(), run.values);
  }
}

// 16 A100 with a CollNet plugin: half as many channels again. The topology file is completed from a
// published part, so its order of GPUs, hence rings and trees, are not those of the run.
TEST(LogDiff, CountsTheChannelsOfARunWithCollNet) {
  WT_REFERENCE_OR_SKIP(reference);
  const char* name = "ni-2.12.10-azure-ndv4-16gpu-ibext.txt";
  const auto file = reference / "data" / "logs" / "nccl-info" / name;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "skipped: no logs";
  const std::string log = Text(file);
  const Communicator comm =
      OfLog(ReadLogSetting(log, name), 2, ReadXmlFile(reference / "facts" / "topofiles" / kA100));
  const LogDiff diff = DiffLog(log, name, comm);
  EXPECT_EQ(diff.kinds.at("channel count").agree, 1u);
  EXPECT_EQ(diff.kinds.at("channel count").differ, 0u);
  EXPECT_EQ(diff.kinds.at("ring").differ, 24u);
}

}  // namespace
}  // namespace windtunnel::nccl

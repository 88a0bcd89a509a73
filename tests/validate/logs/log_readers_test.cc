#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sim/error.h"
#include "tests/support/test_support.h"
#include "validate/logs/collective_tables.h"
#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::validate {
namespace {

using ::testing::HasSubstr;

/// Text of a real log, by folder and start of the name.
std::string LogText(const std::filesystem::path& reference, const std::string& folder,
                    const std::string& start) {
  for (const auto& entry :
       std::filesystem::directory_iterator(reference / "data" / "logs" / folder)) {
    if (entry.path().filename().string().starts_with(start)) return testing::ReadFile(entry.path());
  }
  ADD_FAILURE() << "no log " << folder << "/" << start;
  return {};
}

struct TableFacts {
  const char* folder;
  const char* name;
  std::size_t devices, rows;
  std::uint64_t first_bytes;
  double first_out, first_in;
  std::uint64_t last_bytes;
  double last_out, last_busbw, last_in;
  double average;  // 0: none printed.
};

// What the real logs hold, counted by hand; -1: N/A.
constexpr TableFacts kTables[] = {
    {"nccl-tests", "nt-01", 8, 34, 0, 35.20, 34.05, 8589934592, 63896, 235.26, 63959, 68.4048},
    {"nccl-tests", "nt-02", 8, 34, 0, 1.63, 1.38, 8589934592, 33508, 224.31, 33234, 58.6481},
    {"nccl-tests", "nt-04", 8, 34, 0, 36.90, 36.47, 8589934592, 37613, 228.38, 37539, 65.018},
    {"nccl-tests", "nt-06", 0, 29, 8, 2193.5, 132.2, 2147483648, 175667, 22.92, 176189, 7.76739},
    {"nccl-tests", "nt-07", 4, 25, 8, 13.37, 14.59, 134217728, 21410, 9.40, 21407, 4.22207},
    {"nccl-tests", "nt-09", 512, 29, 0, 5619.4, 5572.2, 1073741824, 890940, 1.20, 886793, .278186},
    {"nccl-tests", "nt-10", 0, 30, 8, 7.76, 7.86, 4294967296, 18997, 339.14, 18986, 0},
    {"nccl-tests", "nt-12", 8, 6, 22020096, 147.7, 146.4, 704643072, 2693.8, 457.77, 2688.5,
     382.449},
    {"nccl-tests", "nt-13", 8, 3, 2048, 12.96, 13.10, 8192, 12.41, 0.58, 12.79, 0.325718},
    {"nccl-tests", "nt-14", 64, 1, 1731821448, 14196, 14281, 1731821448, 14196, 240.18, 14281,
     239.462},
    {"nccl-tests", "nt-17", 0, 31, 8, 187.7, 186.7, 8589934592, 204078, 78.92, 204089, 20.2958},
    {"nccl-tests", "nt-18", 0, 29, 8, 164.3, 163.3, 2147483648, 51406, 78.33, 51406, 0},
    {"nccl-tests", "nt-21", 0, 30, 0, 0.22, 0.18, 4294967296, 92644, 45.64, 92619, 0},
    {"nccl-tests", "nt-23", 16, 24, 1024, 280.4, 233.9, 8589934592, 30970, 260.03, 31063, 59.3638},
    {"nccl-tests", "nt-24", 2, 24, 1024, 35.59, 30.61, 8589934592, 269368, 31.89, 269407, 15.5188},
    {"nccl-tests", "nt-31", 2, 8, 1048576, 339.61, 335.85, 134217728, 5871.07, 22.86, 5867.43,
     14.9966},
    {"nccl-tests", "nt-34", 0, 31, 0, 0.30, 0.26, 8589934592, 42668.7, 188.73, 42630.7, 53.8932},
    {"nccl-tests", "nt-35", 0, 32, 8, 12.90, 12.87, 17179869184, 62239, 483.05, 62200, 156.742},
    {"nccl-tests", "nt-36", 16, 24, 4, 33.50, 32.56, 33554432, 1887.3, 33.34, 1885.6, 7.41855},
    {"nccl-tests", "nt-38", 0, 11, 199680, 125.8, 125.1, 200704, 126.1, 2.99, 125.4, 0},
    {"nccl-tests", "nt-39", 1, 1, 33554432, 19.56, 0.78, 33554432, 19.56, 0, 0.78, 0},
    {"nccl-tests", "nt-40", 4, 8, 10000000, 1628, 1932, 10000000, 1619, 9.27, 1624, 0},
    {"nccl-tests", "nt-41", 2, 7, 0, 9, 10, 64, 10, 0.01, 9, 0},
    {"nccl-tests", "nt-49", 0, 9, 8, 7.76, 7.79, 2048, 7.98, 0.26, 7.97, 0},
    {"rccl-tests", "rc-01", 2, 2, 8, 58.63, 49.68, 8589934592, 41644, 360.97, 40903, 111.827},
    {"rccl-tests", "rc-02", 8, 31, 8, 58.63, 49.68, 8589934592, 41644, 360.97, 40903, 111.827},
    {"rccl-tests", "rc-03", 4, 5, 1073741824, 5753.0, 5754.5, 17179869184, 89885, 358.37, 89917, 0},
    {"rccl-tests", "rc-06", 0, 5, 1024, 53.88, 54.23, 16384, 56.65, 0.54, 56.89, 0},
    {"rccl-tests", "rc-07", 8, 1, 8388608, 91.10, 94.94, 8388608, 91.10, 161.14, 94.94, 0},
};

TEST(CollectiveTables, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const TableFacts& facts : kTables) {
    SCOPED_TRACE(facts.name);
    const std::string text = LogText(reference, facts.folder, facts.name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kNcclTests);
    const auto tables = ReadCollectiveTables(text);
    ASSERT_EQ(tables.size(), 1u);
    const CollectiveTable& table = tables.front();
    EXPECT_EQ(table.devices.size(), facts.devices);
    ASSERT_EQ(table.rows.size(), facts.rows);
    const CollectiveRow& first = table.rows.front();
    const CollectiveRow& last = table.rows.back();
    EXPECT_EQ(first.bytes, facts.first_bytes);
    EXPECT_NEAR(*first.out_of_place.time_us, facts.first_out, 1e-9);
    EXPECT_NEAR(*first.in_place.time_us, facts.first_in, 1e-9);
    EXPECT_EQ(last.bytes, facts.last_bytes);
    EXPECT_NEAR(*last.out_of_place.time_us, facts.last_out, 1e-9);
    EXPECT_NEAR(*last.out_of_place.busbw_gbps, facts.last_busbw, 1e-9);
    EXPECT_NEAR(*last.in_place.time_us, facts.last_in, 1e-9);
    if (facts.average > 0) {
      EXPECT_NEAR(table.average_busbw_gbps.value_or(0), facts.average, 1e-9);
      EXPECT_EQ(table.out_of_bounds.value_or(99), 0u);
      EXPECT_TRUE(table.out_of_bounds_ok);
    }
  }
}

TEST(CollectiveTables, FiveTablesOfOneLogKeepTheirOwnVerdicts) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", "nt-05"));
  ASSERT_EQ(tables.size(), 5u);
  const double averages[] = {30.2993, 42.5578, 41.2456, 41.3386, 20.3609};
  std::size_t rows = 0, devices = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(*tables[i].average_busbw_gbps, averages[i], 1e-9);
    EXPECT_EQ(tables[i].out_of_bounds_ok, i > 0);
    rows += tables[i].rows.size();
    devices += tables[i].devices.size();
  }
  EXPECT_EQ(rows, 155u);
  EXPECT_EQ(devices, 60u);
  EXPECT_EQ(tables[0].out_of_bounds, 4u);
  EXPECT_EQ(tables[0].collective, "all_gather");
  EXPECT_EQ(tables[1].collective, "all_reduce");
}

TEST(CollectiveTables, TwoCollectivesAndTimesInScientificFormAreRead) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", "nt-11"));
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].rows.size() + tables[1].rows.size(), 20u);
  EXPECT_EQ(tables[0].collective, "alltoall");
  EXPECT_EQ(tables[0].nccl_version, "2.28.7");
  EXPECT_EQ(tables[0].rows.back().in_place.time_us, 1.0e7);
  EXPECT_EQ(tables[1].rows.back().out_of_place.time_us, 1.8e7);
  EXPECT_FALSE(tables[0].rows.back().in_place.wrong.has_value());
}

TEST(CollectiveTables, ARetypedTableOfFewerColumnsIsRead) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", "nt-33"));
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 20u);
  EXPECT_EQ(tables[0].rows[0].bytes, 32768u);
  EXPECT_EQ(tables[0].rows[0].out_of_place.time_us, 43.83);
  EXPECT_EQ(tables[0].rows[19].bytes, 17179869184u);
}

TEST(CollectiveTables, ATornRowIsNotCompletedByATailThatDoesNotFit) {
  WT_REFERENCE_OR_SKIP(reference);
  const std::string text = LogText(reference, "nccl-tests", "nt-42");
  const auto tables = ReadCollectiveTables(text);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows.size(), 0u);
  EXPECT_EQ(tables[0].torn_lines.size(), 1u);
  EXPECT_EQ(tables[0].orphan_tails, 1u);
  const InfoLog info = ReadInfoLog(text);
  EXPECT_EQ(std::count(info.calls.begin(), info.calls.end(), "4096 B: algo 0 proto 0 25.874907 us"),
            7);
}

TEST(CollectiveTables, ATornRowIsJoinedWithItsLaterHalf) {
  const auto tables = ReadCollectiveTables(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "        8192          2048     float     sum      -1node0:12:12 [0] NCCL INFO x\n"
      "node0:12:12 [0] NCCL INFO y\n"
      "    20.10    0.41    0.77      0    20.20    0.41    0.76      0\n");
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 1u);
  EXPECT_EQ(tables[0].rows[0].bytes, 8192u);
  EXPECT_EQ(tables[0].rows[0].root, -1);
  EXPECT_EQ(tables[0].rows[0].in_place.time_us, 20.20);
}

TEST(CollectiveTables, ALogWithoutRowsSaysSo) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const char* name : {"nt-30", "nt-47"}) {
    const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", name));
    ASSERT_EQ(tables.size(), 1u) << name;
    EXPECT_THAT(tables[0].warnings(), ::testing::Contains("the table has no rows")) << name;
    EXPECT_THROW(RunOfTable(tables[0], {.file = name}), ConfigError);
  }
}

TEST(CollectiveTables, ASingleRankIsRefusedAsAMeasurement) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", "nt-39"));
  try {
    RunOfTable(tables.at(0), {.file = "log"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a single rank moves nothing"));
    EXPECT_GT(error.fault().line, 0u);
  }
}

// Case C29.
TEST(CollectiveTables, SizesBelowTheResolutionAreNoUsableRows) {
  const auto tables = ReadCollectiveTables(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "#  Rank  0 Pid 1 on node0 device  0 [0x07] A\n#  Rank  1 Pid 1 on node0 device  1 [0x08] A\n"
      "           8             2     float     sum      -1    7.7    0.00    0.00      0    7.7   "
      " "
      "0.00    0.00      0\n"
      "          16             4     float     sum      -1    7.8    0.00    0.00      0    7.8   "
      " "
      "0.00    0.00      0\n# Avg bus bandwidth    : 0\n");
  ASSERT_EQ(tables.size(), 1u);
  try {
    RunOfTable(tables[0], {.file = "log"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no usable rows"));
  }
}

TEST(CollectiveTables, ATableBecomesARunWithItsLaunchAndRanks) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto tables = ReadCollectiveTables(LogText(reference, "nccl-tests", "nt-01"));
  const MeasuredRun run = RunOfTable(tables.at(0), {.file = "log"});
  EXPECT_EQ(run.ranks, 8u);
  EXPECT_EQ(run.collective, "all_reduce");
  EXPECT_EQ(run.launch, "single_process");
  EXPECT_EQ(run.gpu, "A100-SXM4-40GB");
  EXPECT_EQ(run.rows.size(), 32u);
  const auto text = LogText(reference, "nccl-tests", "nt-21");
  const MeasuredRun gathered = RunOfTable(ReadCollectiveTables(text).at(0), {.file = "log"});
  EXPECT_EQ(gathered.rows.size(), 23u);
  EXPECT_EQ(gathered.collective, "all_gather");
}

TEST(CollectiveTables, TheJsonFileOfNcclTestsIsRead) {
  const std::string text = R"({"version": 1, "args": "all_reduce_perf -b 8", "nccl_version": 22807,
    "config": {"nthreads": 1, "ngpus": 2, "devices": [
      {"rank": 0, "hostname": "node0", "device_info": "NVIDIA H100 80GB HBM3"},
      {"rank": 1, "hostname": "node0", "device_info": "NVIDIA H100 80GB HBM3"}]},
    "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": -1,
      "out_of_place": {"time": 20.5, "alg_bw": 51.1, "bus_bw": 51.1, "nwrong": "0"},
      "in_place": null}],
    "out_of_bounds": {"count": 0, "okay": true}, "average_bus_bandwidth": {"bandwidth": 51.1}})";
  EXPECT_EQ(DetectLogKind(text), LogKind::kNcclTestsJson);
  const CollectiveTable table = ReadCollectiveJson(text, {.file = "x.json"});
  EXPECT_EQ(table.nccl_version, "2.28.7");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].out_of_place.time_us, 20.5);
  EXPECT_FALSE(table.rows[0].in_place.time_us.has_value());
  EXPECT_EQ(table.devices.size(), 2u);
  EXPECT_EQ(table.collective, "all_reduce");
}

struct InfoFacts {
  const char* name;
  std::size_t lines, lists;
  const char* first_list;
  std::size_t trees;
  std::map<std::string, std::size_t> links;
  std::size_t rings, all_trees, complete;
};

TEST(InfoLog, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  const InfoFacts all[] = {
      {"ni-2.12.10-2x4a100",
       221,
       4,
       "Channel 00/04 : 0 1 2 3 4 5 6 7",
       8,
       {{"P2P/IPC/read", 56}, {"NET/IBext/n", 32}},
       8,
       8,
       8},
      {"ni-2.12.10-azure",
       464,
       24,
       "Channel 00/24 : 0 7 6 5 4 3 2 1 8 15 14 13 12 11 10 9",
       16,
       {{"P2P/IPC/read", 160}, {"NET/IBext/n/GDRDMA", 96}},
       0,
       0,
       0},
      {"ni-2.17.1", 320, 24, "Channel 00/24 : 0 1 2 3", 4, {{"P2P/IPC", 188}}, 4, 4, 4},
      {"ni-2.18.5",
       399,
       25,
       "Channel 00/16 : 0 1 2 3 4 5 6 7",
       8,
       {{"P2P/IPC", 170}, {"NET/IBext/n/GDRDMA", 68}, {"NET/IBext/n(PXN)/GDRDMA", 32}},
       8,
       1,
       1},
      {"ni-2.22.3-4h100",
       182,
       24,
       "Channel 00/24 : 0 1 2 3",
       4,
       {{"P2P/direct pointer", 96}},
       4,
       0,
       4},
      {"ni-2.22.3-8h200",
       258,
       24,
       "Channel 00/24 : 0 1 2 3 4 5 6 7",
       8,
       {{"P2P/CUMEM", 57}},
       0,
       0,
       8},
      {"ni-2.23.4-2a100", 117, 24, "Channel 00/24 : 0 1", 2, {{"P2P/CUMEM/read", 48}}, 2, 0, 2},
      {"ni-2.23.4-all", 412, 24, "Channel 00/24 : 0 1", 2, {}, 0, 0, 0},
      {"ni-2.26.2-2x4",
       101,
       4,
       "Channel 00/04 : 0 3 6 5 4 7 2 1",
       4,
       {{"P2P/direct pointer", 6},
        {"NET/IB/n(PXN)/GDRDMA/Shared", 2},
        {"NET/IB/n/GDRDMA/Shared", 2}},
       0,
       0,
       4},
      {"ni-2.26.2-fsdp", 4, 0, "", 0, {}, 0, 0, 0},
      {"ni-2.27", 11, 0, "", 1, {}, 0, 0, 0},
      {"ni-2.4-32rank", 19, 0, "", 0, {{"P2P/IPC", 19}}, 0, 0, 0},
      {"ni-2.4-64node", 16, 0, "", 4, {{"NET/Socket/n", 11}}, 0, 0, 1},
      {"ni-2.5.6", 10, 0, "", 2, {{"direct shared memory", 2}}, 0, 0, 0},
      {"ni-2.x", 17, 0, "", 0, {{"P2P/IPC", 15}, {"NET/Socket/n", 2}}, 0, 0, 0},
      {"ni-graph", 16, 0, "", 2, {}, 0, 0, 0},
      {"ni-init", 12, 0, "", 0, {}, 0, 0, 1},
      {"ni-kuberay", 1, 0, "", 0, {}, 0, 0, 0},
      {"ni-slingshot-socket",
       238,
       4,
       "Channel 00/04 : 0 2 3 7 6 4 5 1",
       8,
       {{"P2P/CUMEM/read", 53}, {"NET/Socket/n", 23}, {"(torn)", 1}},
       8,
       8,
       8},
      {"ni-slingshot-with-ofi-2025",
       276,
       4,
       "Channel 00/04 : 0 2 3 7 6 4 5 1",
       8,
       {{"P2P/CUMEM/read", 54}, {"NET/AWS Libfabric/n/GDRDMA", 24}, {"(torn)", 1}},
       8,
       8,
       8},
  };
  for (const InfoFacts& facts : all) {
    SCOPED_TRACE(facts.name);
    const InfoLog log = ReadInfoLog(LogText(reference, "nccl-info", facts.name));
    EXPECT_EQ(log.info_lines, facts.lines);
    EXPECT_EQ(log.channel_lists.size(), facts.lists);
    if (facts.lists > 0) {
      EXPECT_EQ(log.channel_lists.front(), facts.first_list);
    }
    EXPECT_EQ(log.tree_lines, facts.trees);
    EXPECT_EQ(log.links, facts.links);
    EXPECT_EQ(log.all_rings, facts.rings);
    EXPECT_EQ(log.all_trees, facts.all_trees);
    EXPECT_EQ(log.complete, facts.complete);
  }
}

TEST(InfoLog, CallsTuningTablesAndChannelCountsAreRead) {
  WT_REFERENCE_OR_SKIP(reference);
  const InfoLog calls = ReadInfoLog(LogText(reference, "nccl-info", "ni-2.29.7"));
  ASSERT_FALSE(calls.calls.empty());
  EXPECT_EQ(calls.calls.front(), "Broadcast 1024 B: RING LL 0..0");
  const InfoLog tuning = ReadInfoLog(LogText(reference, "nccl-info", "ni-2.8.3"));
  EXPECT_EQ(tuning.tuning.at("Broadcast Ring LL"), std::make_pair(6.3, 0.0));
  EXPECT_EQ(tuning.tuning.at("Broadcast Ring LL128"), std::make_pair(14.0, 0.0));
  EXPECT_EQ(tuning.tuning.at("Broadcast Ring Simple"), std::make_pair(18.0, 9.0));
  const InfoLog channels = ReadInfoLog(LogText(reference, "nccl-info", "ni-2.22.3-8h200"));
  EXPECT_EQ(channels.channels,
            "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p "
            "channels per peer");
  EXPECT_EQ(channels.ranks, 8u);
  EXPECT_EQ(ReadInfoLog(LogText(reference, "nccl-info", "ni-2.4-64node")).ranks, 64u);
}

struct TopologyFacts {
  const char* name;
  std::size_t gpus, nics;
  std::map<std::string, std::size_t> counts;
};

TEST(TopologyLog, RealDumpsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  const TopologyFacts all[] = {
      {"tp-01", 2, 0, {{"NV2", 2}}},
      {"tp-02", 2, 0, {{"PHB", 2}}},
      {"tp-03", 8, 0, {{"NV12", 56}}},
      {"tp-04", 8, 0, {{"NV18", 56}}},
      {"tp-06", 8, 4, {{"NODE", 26}, {"NV8", 56}, {"PIX", 10}, {"SYS", 40}}},
      {"tp-08", 8, 8, {{"NODE", 48}, {"NV18", 56}, {"PIX", 40}, {"SYS", 96}}},
      {"tp-09", 4, 2, {{"NV4", 12}, {"PHB", 4}, {"SYS", 14}}},
      {"tp-10", 4, 4, {{"NODE", 20}, {"PIX", 4}, {"SYS", 32}}},
      {"tp-11", 2, 2, {{"NODE", 8}, {"PHB", 2}, {"PIX", 2}}},
      {"tp-12", 2, 0, {{"PIX", 2}}},
      {"tp-13", 2, 8, {{"NODE", 16}, {"PIX", 56}, {"SYS", 18}}},
      {"tp-15", 4, 1, {{"NV2", 12}, {"SYS", 8}}},
      {"tp-16", 8, 0, {{"PHB", 16}, {"PIX", 8}, {"SYS", 32}}},
      {"tp-17", 4, 0, {{"NODE", 6}, {"SYS", 6}}},
      {"tp-18", 8, 2, {{"PHB", 4}, {"PIX", 2}, {"SYS", 84}}},
      {"tp-21", 8, 18, {{"NV12", 28}, {"PXB", 16}, {"SYS", 56}}},
      {"tp-22", 16, 10, {{"NODE", 8}, {"NV6", 60}, {"PIX", 4}, {"PXB", 4}, {"SYS", 24}}},
      {"tp-25", 4, 1, {{"NODE", 8}, {"NV2", 12}}},
      {"tp-26", 8, 10, {{"PIX", 6}, {"SYS", 96}}},
  };
  for (const TopologyFacts& facts : all) {
    SCOPED_TRACE(facts.name);
    const std::string text = LogText(reference, "topo", facts.name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kTopologyMatrix);
    const TopologyLog log = ReadTopologyMatrices(text);
    ASSERT_FALSE(log.matrices.empty());
    EXPECT_EQ(log.matrices[0].gpus, facts.gpus);
    EXPECT_EQ(log.matrices[0].nics, facts.nics);
    EXPECT_EQ(log.matrices[0].counts, facts.counts);
    EXPECT_FALSE(log.matrices[0].peer_status);
  }
  const TopologyLog status = ReadTopologyMatrices(LogText(reference, "topo", "tp-05"));
  EXPECT_TRUE(status.matrices.at(0).peer_status);
  EXPECT_EQ(status.matrices[0].counts, (std::map<std::string, std::size_t>{{"OK", 56}}));
  const TopologyLog two = ReadTopologyMatrices(LogText(reference, "topo", "tp-14"));
  ASSERT_EQ(two.matrices.size(), 2u);
  EXPECT_EQ(two.matrices[0].counts.at("PHB") + two.matrices[1].counts.at("PHB"), 12u);
  const TopologyLog legend = ReadTopologyMatrices(LogText(reference, "topo", "tp-20"));
  EXPECT_TRUE(legend.matrices.empty());
  EXPECT_EQ(legend.nic_names.size(), 40u);
  EXPECT_FALSE(legend.nic_names.contains("NIC0"));
}

TEST(CopyMatrices, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto read = [&](const char* name) {
    const std::string text = LogText(reference, "p2p-nvbandwidth", name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kCopyMatrix) << name;
    return ReadCopyMatrices(text);
  };
  const CopyLog superbench = read("pp-01");
  ASSERT_EQ(superbench.matrices.size(), 15u);
  EXPECT_EQ(superbench.matrices.front().sum, 1985.60);
  double sum = 0;
  for (const auto& row : superbench.matrices.front().cells)
    for (const auto& cell : row) sum += *cell;
  EXPECT_NEAR(sum, 1985.60, 0.01);
  EXPECT_EQ(superbench.matrices.back().sum, 772.58);
  EXPECT_EQ(superbench.matrices.back().unit, "ns");
  EXPECT_EQ(superbench.warnings.size(), 1u);
  const CopyLog dgx1 = read("pp-02");
  EXPECT_EQ(dgx1.devices, 8u);
  std::size_t bandwidths = 0, latencies = 0;
  for (const CopyMatrix& matrix : dgx1.matrices) {
    EXPECT_EQ(matrix.cells.size(), 8u);
    for (const auto& row : matrix.cells) EXPECT_EQ(row.size(), 8u);
    ++(matrix.unit == "us" ? latencies : bandwidths);
  }
  EXPECT_EQ(bandwidths, 4u);
  EXPECT_EQ(latencies, 2u);
  EXPECT_EQ(read("pp-05").matrices.at(0).cells.at(0).at(1), 274.55);
  const CopyLog gb200 = read("pp-06");
  EXPECT_EQ(gb200.matrices.at(0).cells.at(0).at(1), 746.74);
  EXPECT_EQ(gb200.matrices[0].cells[0][0], 5714.94);
  EXPECT_EQ(read("pp-07").matrices.at(0).cells.at(0).at(1), 276.07);
  const CopyLog diagonal = read("pp-10");
  EXPECT_EQ(diagonal.matrices.at(0).cells.size(), 6u);
  EXPECT_FALSE(diagonal.matrices[0].cells[0][0].has_value());
  EXPECT_EQ(diagonal.matrices[0].cells[0][1], 26.34);
  EXPECT_EQ(diagonal.matrices[0].sum, 715.53);
  const CopyLog quoted = read("pp-11");
  ASSERT_EQ(quoted.matrices.size(), 2u);
  EXPECT_EQ(quoted.matrices[0].cells.at(0).front(), 35.19);
  EXPECT_EQ(quoted.matrices[0].cells.at(0).back(), 35.06);
  EXPECT_EQ(quoted.matrices[1].cells.at(0).back(), 52.77);
  const CopyLog failed = read("pp-12");
  EXPECT_TRUE(failed.matrices.empty());
  EXPECT_FALSE(failed.failures.empty());
}

TEST(Perftest, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto rows = [&](const char* name, const char* unit) {
    const std::string text = LogText(reference, "perftest", name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kPerftest) << name;
    std::vector<SizeSeries::Row> all;
    for (const SizeSeries& series : ReadPerftest(text)) {
      EXPECT_EQ(series.unit, unit) << name;
      all.insert(all.end(), series.rows.begin(), series.rows.end());
    }
    return all;
  };
  const auto loopback = rows("pf-02", "MB/s");
  ASSERT_EQ(loopback.size(), 2u);
  EXPECT_EQ(loopback[0].bytes, 8388608u);
  EXPECT_EQ(loopback[1].value, 24056.72);
  const auto infinite = rows("pf-06", "Gb/s");
  ASSERT_EQ(infinite.size(), 5u);
  EXPECT_EQ(infinite[3].value, 92.56);
  EXPECT_EQ(rows("pf-07", "Gb/s").size(), 6u);
  const auto oci = rows("pf-08", "Gb/s");
  ASSERT_EQ(oci.size(), 1u);
  EXPECT_EQ(oci[0].value, 98.01);
  EXPECT_TRUE(rows("pf-10", "us").empty());
  EXPECT_TRUE(rows("pf-11", "MB/s").empty());
  const auto blank = rows("pf-12", "us");
  ASSERT_EQ(blank.size(), 7u);
  EXPECT_EQ(blank.front().value, 1.84);
  EXPECT_EQ(blank.back().bytes, 128u);
  EXPECT_EQ(blank.back().value, 1.96);
  const auto glued = rows("pf-14", "us");
  ASSERT_EQ(glued.size(), 1u);
  EXPECT_EQ(glued[0].value, 692.41);
  const auto interleaved = rows("pf-15", "us");
  ASSERT_EQ(interleaved.size(), 2u);
  EXPECT_EQ(interleaved[0].value, 14.24);
  EXPECT_EQ(interleaved[1].value, 14.23);
  const auto frequency = rows("pf-16", "us");
  ASSERT_EQ(frequency.size(), 1u);
  EXPECT_EQ(frequency[0].value, 7.04);
}

TEST(Osu, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  struct Facts {
    const char* name;
    std::size_t rows;
    std::uint64_t first_bytes;
    double first;
    std::uint64_t last_bytes;
    double last;
  };
  for (const Facts& facts :
       {Facts{"os-01", 14, 1, 13.44, 8192, 84.44}, Facts{"os-02", 14, 1, 25.21, 8192, 567.13},
        Facts{"os-03", 24, 4, 34.31, 33554432, 44592.17},
        Facts{"os-04", 24, 4, 9.27, 33554432, 22911.89},
        Facts{"os-05", 23, 1, 0.95, 4194304, 23982.18}}) {
    SCOPED_TRACE(facts.name);
    const std::string text = LogText(reference, "osu", facts.name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kOsu);
    const auto series = ReadOsu(text);
    ASSERT_EQ(series.size(), 1u);
    ASSERT_EQ(series[0].rows.size(), facts.rows);
    EXPECT_EQ(series[0].rows.front().bytes, facts.first_bytes);
    EXPECT_EQ(series[0].rows.front().value, facts.first);
    EXPECT_EQ(series[0].rows.back().bytes, facts.last_bytes);
    EXPECT_EQ(series[0].rows.back().value, facts.last);
  }
  const auto suite = ReadOsu(LogText(reference, "osu", "os-06"));
  ASSERT_FALSE(suite.empty());
  EXPECT_EQ(suite.front().name, "MPI Bi-Directional Bandwidth");
  EXPECT_EQ(suite.front().rows.front().value, 2.10);
  EXPECT_GT(suite.size(), 10u);
}

TEST(XlaCollectives, ThePipeTableIsReadInBothTimeUnits) {
  WT_REFERENCE_OR_SKIP(reference);
  const std::string text = LogText(reference, "xla-collectives", "xc-01");
  EXPECT_EQ(DetectLogKind(text), LogKind::kXlaCollectives);
  const XlaTable table = ReadXlaCollectives(text);
  EXPECT_EQ(table.collective, "all_reduce");
  EXPECT_EQ(table.devices, 4u);
  ASSERT_EQ(table.rows.size(), 23u);
  EXPECT_EQ(table.rows.front().size_text, "16.0 B");
  EXPECT_NEAR(table.rows.front().duration_us, 837.922, 1e-9);
  EXPECT_EQ(table.rows.back().size_text, "64.0 MB");
  EXPECT_NEAR(table.rows.back().duration_us, 1132699, 1e-6);
  EXPECT_EQ(table.rows.back().busbw_gbps, 0.711);
}

TEST(Throughput, RealLogsAreReadToTheirFigures) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto read = [&](const char* name) {
    const std::string text = LogText(reference, "throughput", name);
    EXPECT_EQ(DetectLogKind(text), LogKind::kThroughput) << name;
    return ReadThroughput(text);
  };
  const ThroughputLog horovod = read("th-01");
  EXPECT_EQ(horovod.per_gpu.size(), 10u);
  EXPECT_EQ(horovod.mean_per_gpu, 234.8);
  EXPECT_EQ(horovod.total, 3756.0);
  EXPECT_EQ(horovod.gpus, 16u);
  EXPECT_EQ(read("th-07").examples_per_second.back(), 7.65811);
  const ThroughputLog twice = read("th-08");
  EXPECT_EQ(twice.steps_per_second.size(), 5u);
  EXPECT_EQ(*std::min_element(twice.steps_per_second.begin(), twice.steps_per_second.end()),
            0.707068);
  EXPECT_EQ(*std::max_element(twice.steps_per_second.begin(), twice.steps_per_second.end()),
            0.749124);
  const ThroughputLog tutorial = read("th-09");
  ASSERT_EQ(tutorial.examples_per_second.size(), 15u);
  EXPECT_EQ(tutorial.examples_per_second.front(), 729.8);
  EXPECT_EQ(tutorial.examples_per_second.back(), 670.7);
}

}  // namespace
}  // namespace windtunnel::validate

#include "collectives/nccl/tuning.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/collectives/nccl/machines.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

std::string Pair(const TuningTable::Entry& entry) {
  if (entry.bandwidth <= 0) return "-";
  return fmt::format("{:.1f}/{:.1f}", entry.latency, entry.bandwidth);
}

// All-reduce, tree LL, LL128, Simple, ring the same, and NVLS (several nodes: NVLSTree) Simple.
// Source: 2.28.9 itself, fed with the files.
struct Row {
  const char* file;
  int nodes;
  const char* tree_and_ring[6];
  const char* nvls = "-";
};
constexpr Row kRows[] = {
    {kH100,
     1,
     {"15.2/43.6", "31.5/128.8", "64.4/165.6", "15.0/80.6", "40.6/189.3", "56.0/205.7"},
     "25.0/272.0"},
    {kB200,
     1,
     {"15.2/77.5", "31.5/229.0", "64.4/294.4", "15.0/161.1", "40.6/378.5", "56.0/411.4"},
     "25.0/411.4"},
    {kA100, 1, {"15.2/29.1", "31.5/85.9", "64.4/110.4", "15.0/50.1", "40.6/126.2", "56.0/137.1"}},
    {kV100, 1, {"15.2/14.5", "31.5/42.9", "64.4/55.2", "15.0/22.3", "40.6/63.1", "56.0/68.6"}},
    {kRtx3090, 1, {"20.8/1.2", "-", "64.4/4.6", "20.6/2.9", "-", "88.2/5.7"}},
    {kH100,
     2,
     {"25.2/16.6", "48.5/124.8", "92.4/140.8", "40.0/20.8", "75.2/156.6", "131.6/204.8"},
     "66.8/246.2"},
    {kH100,
     4,
     {"35.2/8.7", "65.5/98.6", "120.4/122.4", "78.8/10.5", "144.4/151.5", "282.8/198.2"},
     "108.6/187.9"},
    {kH100,
     16,
     {"55.2/8.7", "99.5/98.6", "176.4/122.4", "311.6/10.3", "559.6/148.0", "1190.0/193.5"},
     "192.2/183.4"},
    {kA100, 2, {"25.2/11.2", "48.5/80.0", "92.4/94.4", "68.0/12.0", "78.0/85.3", "204.4/102.4"}},
    {kA100, 4, {"35.2/9.5", "65.5/66.8", "120.4/71.2", "134.8/9.8", "150.0/82.6", "428.4/99.1"}},
    {kP4d, 2, {"175.2/11.6", "198.5/40.0", "392.4/44.2", "190.0/12.8", "225.2/23.6", "431.6/25.6"}},
    {kP4d, 4, {"335.2/5.8", "365.5/20.7", "720.4/22.1", "528.8/10.5", "594.4/22.8", "1182.8/24.8"}},
    {kV100, 2, {"25.2/2.4", "-", "92.4/9.2", "40.0/3.2", "-", "131.6/6.4"}},
    {kGvisorB200, 2, {"25.2/4.4", "-", "92.4/16.6", "40.0/9.6", "-", "131.6/19.2"}, "66.8/13.3"}};

TEST(TuningTable, LatencyAndBandwidthOfAllReduce) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const Row& row : kRows) {
    const Communicator comm = OnMachine(reference, row.file, row.nodes);
    std::size_t i = 0;
    for (const AlgorithmId a : {AlgorithmId::kTree, AlgorithmId::kRing})
      for (const Protocol p : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple})
        EXPECT_EQ(Pair(comm.tuning().At(Function::kAllReduce, a, p)), row.tree_and_ring[i++])
            << row.file << " " << row.nodes << " nodes";
    const AlgorithmId in_network = row.nodes > 1 ? AlgorithmId::kNvlsTree : AlgorithmId::kNvls;
    EXPECT_EQ(Pair(comm.tuning().At(Function::kAllReduce, in_network, Protocol::kSimple)), row.nvls)
        << row.file << " " << row.nodes << " nodes";
  }
}

// All-gather and reduce-scatter cost the same on one node: ring LL, LL128, Simple, NVLS Simple.
TEST(TuningTable, OfAllGatherAndReduceScatterOnOneNode) {
  WT_REFERENCE_OR_SKIP(reference);
  struct Machine {
    const char* file;
    const char* ring[3];
    const char* nvls;
  };
  for (const Machine& machine :
       {Machine{kH100, {"10.8/161.1", "27.3/378.5", "32.2/411.4"}, "25.0/208.2"},
        Machine{kA100, {"10.8/100.2", "27.3/252.3", "32.2/274.3"}, "-"},
        Machine{kB200, {"10.8/322.3", "27.3/757.0", "32.2/822.9"}, "25.0/362.6"}}) {
    const Communicator comm = OnMachine(reference, machine.file, 1);
    for (const Function f : {Function::kAllGather, Function::kReduceScatter}) {
      std::size_t i = 0;
      for (const Protocol p : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple})
        EXPECT_EQ(Pair(comm.tuning().At(f, AlgorithmId::kRing, p)), machine.ring[i++])
            << machine.file;
      EXPECT_EQ(Pair(comm.tuning().At(f, AlgorithmId::kNvls, Protocol::kSimple)), machine.nvls)
          << machine.file;
    }
  }
}

TEST(TuningTable, VariablesSwitchOff) {
  WT_REFERENCE_OR_SKIP(reference);
  Environment environment;
  environment.Set("NCCL_ALGO", "allreduce:^tree");
  environment.Set("NCCL_PROTO", "^LL128");
  const Communicator comm = OnMachine(reference, kH100, 2, environment);
  const auto at = [&](AlgorithmId a, Protocol p) {
    return comm.tuning().At(Function::kAllReduce, a, p).bandwidth;
  };
  EXPECT_EQ(at(AlgorithmId::kTree, Protocol::kLl), 0);
  EXPECT_EQ(at(AlgorithmId::kRing, Protocol::kLl128), 0);
  EXPECT_GT(at(AlgorithmId::kRing, Protocol::kSimple), 0);
}

}  // namespace
}  // namespace windtunnel::nccl

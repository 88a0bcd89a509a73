#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/topo_report.h"
#include "interconnect/topology_file.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

std::string Findings(std::string_view name) {
  std::string out;
  for (const TopologyFinding& f : CheckTopology(Cluster(LoadTopology(name))))
    out += f.what + " | " + f.cost + "\n";
  return out;
}

TEST(TopoCommand, ShowPrintsMatrixBisectionAndBounds) {
  const std::string text = ShowTopology(Cluster(LoadTopology("hgx-h200")));
  EXPECT_THAT(text, HasSubstr("gpu0  X     NVL"));
  EXPECT_THAT(text, HasSubstr("bisection of the GPUs"));
  EXPECT_THAT(text, HasSubstr("all_reduce"));
}

TEST(TopoCommand, BoundsOfTheRingFollowTheSocketLinkAndTheNetwork) {
  // Two GPUs per socket at 15.75 GB/s, 10 GB/s between sockets; the x4 slot has 3.9 GB/s.
  const auto box = CollectiveBounds(Cluster(LoadTopology("two-socket-x4-slot")));
  EXPECT_NEAR(box[0].ring_gbs, 3.94, 0.01);
  // Two hosts of 8 ports of 50 GB/s: a ring crosses a host's ports once each way.
  const auto two = CollectiveBounds(Cluster(LoadTopology("2x-azure-ndv5")));
  EXPECT_NEAR(two[0].ring_gbs, 400, 0.1);
}

TEST(TopoCommand, CheckNamesTheOddAndItsCost) {
  const std::string x4 = Findings("two-socket-x4-slot");
  EXPECT_THAT(x4, HasSubstr("gpu3: slot of 4 lanes"));
  EXPECT_THAT(x4, HasSubstr("-75.0 %"));
  EXPECT_THAT(x4, HasSubstr("another socket"));
  EXPECT_THAT(Findings("pcie-4x-rtx4090"), HasSubstr("peer-to-peer is off"));
  EXPECT_EQ(Findings("hgx-h200"), "");
}

TEST(TopoCommand, DiffListsWhatDiffers) {
  const Topology a = LoadTopology("hgx-h100");
  EXPECT_TRUE(DiffTopologies(a, a).empty());
  EXPECT_THAT(DiffTopologies(a, LoadTopology("hgx-h200")),
              ::testing::Contains(HasSubstr("h200-sxm")));
}

}  // namespace
}  // namespace windtunnel

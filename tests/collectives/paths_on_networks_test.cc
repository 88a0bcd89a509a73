#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collectives/paths_of_job.h"
#include "interconnect/fabric.h"
#include "interconnect/foreign/foreign_topology.h"
#include "interconnect/topology_file.h"

namespace windtunnel {
namespace {

JobPaths All(const Cluster& cluster) {
  return JobPaths(cluster, {cluster.gpus().begin(), cluster.gpus().end()}, {});
}

TEST(PathsOnNetworksTest, EndpointsOnTheNetworkNeedNoNic) {
  const Cluster cluster(ReadForeignTopology(
      "topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n",
      ForeignFormat::kAstraSim, "test"));
  JobPaths paths = All(cluster);
  const JobPaths::Path path = paths.Between(0, 3, {});
  EXPECT_EQ(path.transport, Transport::kNetwork);
  const std::span<const LinkId> route = paths.RouteOf(path);
  EXPECT_EQ(Route(route.begin(), route.end()), *cluster.FindRoute(0, 3));
}

TEST(PathsOnNetworksTest, NeighboursOfATorusAreOneHopApart) {
  const Cluster cluster(
      ReadForeignTopology("topology: [ Ring, Ring ]\nnpus_count: [ 8, 8 ]\nbandwidth: [ 50, 50 ]\n"
                          "latency: [ 500, 500 ]\n",
                          ForeignFormat::kAstraSim, "test"));
  JobPaths paths = All(cluster);
  EXPECT_EQ(paths.RouteOf(paths.Between(0, 1, {})).size(), 1u);
  EXPECT_EQ(paths.RouteOf(paths.Between(0, 8, {})).size(), 1u);
  EXPECT_EQ(paths.RouteOf(paths.Between(7, 0, {})).size(), 1u);
  EXPECT_EQ(paths.RouteOf(paths.Between(7, 8, {})).size(), 2u);
}

TEST(PathsOnNetworksTest, ConnectionsSpreadOverTheSpines) {
  Topology topology;
  for (std::uint32_t i = 0; i < 16; ++i) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
  }
  topology.node_count = 16;
  BuildFabric(
      {.kind = "leaf-spine", .rate = GigabytesPerSecond(50), .options = {{"ports_per_leaf", "8"}}},
      Catalogue::Shipped(), &topology);
  const Cluster cluster(std::move(topology));
  JobPaths paths = All(cluster);
  std::set<LinkId> uplinks;
  for (Rank r = 0; r < 8; ++r) uplinks.insert(paths.RouteOf(paths.Between(r, 8 + r, {}))[1]);
  EXPECT_EQ(uplinks.size(), 8u);
}

// Rails that do not meet: GPU 0 reaches GPU 15 over NVLink to GPU 7, whose NIC is on its rail.
TEST(PathsOnNetworksTest, ApartRailsAreReachedThroughTheGpuNextToTheirNic) {
  const Cluster cluster(ReadTopologyText(
      "nodes: 2\nof: hgx-h100\nfabric: {kind: rail-optimised, options: {spine: \"no\"}}\n",
      TopologyFormat::kYaml, "rails.yaml"));
  JobPaths paths = All(cluster);
  const Topology& topology = cluster.topology();
  const auto devices_of = [&](Rank from, Rank to) {
    std::vector<std::string> names;
    for (const LinkId link : paths.RouteOf(paths.Between(from, to, {})))
      names.push_back(topology.devices[topology.links[link].to].name);
    return names;
  };
  const auto passes = [](const std::vector<std::string>& way, const std::string& name) {
    return std::find(way.begin(), way.end(), name) != way.end();
  };
  const auto across = devices_of(0, 15);
  EXPECT_TRUE(passes(across, "node0/nvswitch"));
  EXPECT_TRUE(passes(across, "node0/gpu7"));
  EXPECT_TRUE(passes(across, "node0/nic7"));
  EXPECT_TRUE(passes(across, "node1/nic7"));
  EXPECT_EQ(across.back(), "node1/gpu7");
  const auto along = devices_of(3, 11);
  EXPECT_FALSE(passes(along, "node0/nvswitch"));
  EXPECT_TRUE(passes(along, "node0/nic3"));
}

}  // namespace
}  // namespace windtunnel

// Ways inside a host at packet level: over the host memory, over the link between sockets.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "interconnect/cluster.h"
#include "interconnect/packet_network.h"
#include "interconnect/topology_file.h"

namespace windtunnel {
namespace {

class End final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { at = now.since_start(); }
  Picoseconds at;
};

struct Transfer {
  Picoseconds time;
  std::vector<Bytes> payload;
};

/// Both ways at once between two devices.
Transfer Exchange(const Cluster& cluster, const char* a, const char* b, Bytes size) {
  PacketNetwork network(cluster.topology());
  End end;
  network.set_client(&end);
  const DeviceId first = *cluster.topology().Find(a);
  const DeviceId second = *cluster.topology().Find(b);
  network.Send(network.AddRoute(*cluster.FindRoute(first, second)), size, 0);
  network.Send(network.AddRoute(*cluster.FindRoute(second, first)), size, 1);
  network.RunToIdle();
  Transfer transfer{.time = end.at};
  for (const LinkUse& use : network.link_use()) transfer.payload.push_back(use.payload);
  network.Reset();
  return transfer;
}

TEST(PacketHostTest, BlockedPeerToPeerLoadsTheHostLinkTwiceAndIsSlower) {
  const auto box = [](bool p2p) {
    return Cluster(ReadTopologyText(fmt::format(R"(
devices:
  - {{name: cpu, kind: cpu}}
  - {{name: pcie, kind: pcie_switch}}
  - {{name: "gpu[0-1]", kind: gpu, sm: 80}}
links:
  - {{from: cpu, to: pcie, kind: pcie, generation: 4}}
  - {{from: pcie, to: "gpu[0-1]", kind: pcie, generation: 4, p2p: {}}}
)",
                                                p2p),
                                    TopologyFormat::kYaml, "box.yaml"));
  };
  const Cluster open = box(true);
  const Cluster blocked = box(false);
  const Transfer direct = Exchange(open, "gpu0", "gpu1", MiB(64));
  const Transfer bounced = Exchange(blocked, "gpu0", "gpu1", MiB(64));
  for (LinkId id = 0; id < blocked.topology().links.size(); ++id) {
    const Link& link = blocked.topology().links[id];
    const bool host = blocked.topology().devices[link.from].kind == DeviceKind::kCpu ||
                      blocked.topology().devices[link.to].kind == DeviceKind::kCpu;
    EXPECT_EQ(direct.payload[id], host ? Bytes(0) : MiB(64));
    EXPECT_EQ(bounced.payload[id], host ? 2 * MiB(64) : MiB(64)) << "both ways go up and down";
  }
  const double slower =
      static_cast<double>(bounced.time.count()) / static_cast<double>(direct.time.count());
  EXPECT_NEAR(slower, 2, 0.05) << "two messages share the host link";
}

TEST(PacketHostTest, TheLinkBetweenSocketsBoundsAPairByTheProcessor) {
  struct Processor {
    const char* model;
    std::uint64_t gigabytes;
  };
  // Family 6, models 85, 143 and 207; NVIDIA/nccl src/graph/topo.h.
  for (const Processor& processor :
       {Processor{"xeon-skylake", 10}, {"xeon-sapphire-rapids", 22}, {"xeon-emerald-rapids", 40}}) {
    SCOPED_TRACE(processor.model);
    const Cluster cluster(ReadTopologyText(fmt::format(R"(
devices:
  - {{name: "cpu[0-1]", model: {}}}
  - {{name: "gpu[0-3]", kind: gpu, sm: 80}}
links:
  - {{from: cpu0, to: "gpu[0-1]", kind: pcie, generation: 5, width: 16}}
  - {{from: cpu1, to: "gpu[2-3]", kind: pcie, generation: 5, width: 16}}
  - {{from: cpu0, to: cpu1, kind: numa}}
)",
                                                       processor.model),
                                           TopologyFormat::kYaml, "sockets.yaml"));
    const Bytes size = MiB(256);
    const auto rate = [&](const char* a, const char* b) {
      return static_cast<double>(size.count()) / 1e3 /
             ToMicroseconds(Exchange(cluster, a, b, size).time);
    };
    const double across = rate("gpu0", "gpu2");
    EXPECT_LE(across, static_cast<double>(processor.gigabytes));
    EXPECT_GE(across, 0.98 * static_cast<double>(processor.gigabytes));
    EXPECT_GT(rate("gpu0", "gpu1"), across);
  }
}

}  // namespace
}  // namespace windtunnel

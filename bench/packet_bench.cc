// Speed of the packet level: a ring all-reduce of 64 MiB between endpoints around one switch, links
// of 400 GiB/s, 936 ns from end to end, frames of 4 KiB, with credits and arbitration. The client
// is as bare as it can be, so that the network is what is measured.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "interconnect/packet_network.h"

namespace windtunnel {
namespace {

constexpr BitsPerSecond kRate(400ULL * 8 << 30);
constexpr Picoseconds kEndToEnd = Nanoseconds(936);
constexpr Bytes kMessage = MiB(64);

Topology Star(std::uint32_t endpoints) {
  Topology topology;
  topology.name = "single-switch";
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
  }
  topology.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
  topology.devices.back().attributes["protocol"] = "ideal";  // 4 KiB frames, no headers.
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    topology.links.push_back({i, endpoints, LinkKind::kNetwork, 0, 1, kRate, kEndToEnd / 2});
    topology.links.push_back({endpoints, i, LinkKind::kNetwork, 0, 1, kRate, kEndToEnd / 2});
  }
  return topology;
}

/// Each rank sends its next chunk on when the previous one has come in: 2(n-1) steps.
class Ring final : public NetworkClient {
 public:
  Ring(Network& network, std::uint32_t ranks) : network_(network), ranks_(ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      routes_.push_back(network.AddRoute({2 * rank, 2 * ((rank + 1) % ranks) + 1}));
    }
    network.set_client(this);
  }
  Picoseconds Run() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) Send(rank, 0);
    network_.RunToIdle();
    return end_.since_start();
  }
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t token) override {
    end_ = now;
    const auto step = static_cast<std::uint32_t>(token >> 32) + 1;
    if (step < 2 * (ranks_ - 1)) Send((static_cast<std::uint32_t>(token) + 1) % ranks_, step);
  }

 private:
  void Send(std::uint32_t rank, std::uint32_t step) {
    network_.Send(routes_[rank], kMessage / ranks_, std::uint64_t{step} << 32 | rank);
  }

  Network& network_;
  std::uint32_t ranks_;
  std::vector<RouteId> routes_;
  SimTime end_;
};

/// Arguments: endpoints, bursts per message (0 = every frame is an event of its own).
void BM_RingAllReduce(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  double time_us = 0;
  for (auto _ : state) {
    const Topology topology = Star(ranks);
    PacketNetwork::Options options;
    options.burst.bursts_per_message = static_cast<std::uint32_t>(state.range(1));
    PacketNetwork network(topology, options);
    time_us = ToMicroseconds(Ring(network, ranks).Run());
    packets += network.packets() / 2;  // Each crosses two links.
    events += network.queue().executed();
  }
  const double alpha_us = ToMicroseconds(kEndToEnd);
  const double chunk_us = ToMicroseconds(SerializationTime(kMessage / ranks, kRate));
  const double closed_us = 2.0 * (ranks - 1) * (alpha_us + chunk_us);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["packets/s"] =
      benchmark::Counter(static_cast<double>(packets), benchmark::Counter::kIsRate);
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["time_us"] = time_us;
  state.counters["over_closed_form_%"] = (time_us / closed_us - 1) * 100;
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1000;
}
/// Arguments: senders, with DCQCN. Each sends 1 MiB to one host over a switch that pauses.
void BM_RoceIncast(benchmark::State& state) {
  const auto senders = static_cast<std::uint32_t>(state.range(0));
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    Topology topology = Star(senders + 1);
    topology.devices.back().attributes["protocol"] = "roce";
    for (Link& link : topology.links) link.rate = GigabitsPerSecond(25);
    PacketNetwork::Options options;
    options.dcqcn.enabled = state.range(1) != 0;
    PacketNetwork network(topology, options);
    for (std::uint32_t i = 1; i <= senders; ++i) {
      network.Send(network.AddRoute({2 * i, 1}), MiB(1), i);
    }
    network.RunToIdle();
    packets += network.packets() / 2;
    events += network.queue().executed();
  }
  state.counters["packets/s"] =
      benchmark::Counter(static_cast<double>(packets), benchmark::Counter::kIsRate);
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_RoceIncast)
    ->ArgNames({"senders", "dcqcn"})
    ->ArgsProduct({{10, 255}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(BM_RingAllReduce)
    ->ArgNames({"endpoints", "bursts"})
    ->ArgsProduct({{8, 16, 64, 256}, {32, 0}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace windtunnel

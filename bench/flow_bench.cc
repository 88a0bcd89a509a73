// Speed of the flow level by itself: messages per second without an executor, in lockstep (every
// message alone on its links) and under full contention.

#include <benchmark/benchmark.h>

#include "interconnect/flow_network.h"
#include "interconnect/foreign/foreign_topology.h"

namespace windtunnel {
namespace {

Cluster Star(std::int64_t endpoints) {
  return Cluster(ReadForeignTopology("topology: [ Switch ]\nnpus_count: [ " +
                                         std::to_string(endpoints) +
                                         " ]\nbandwidth: [ 400 ]\nlatency: [ 468 ]\n",
                                     ForeignFormat::kAstraSim, "bench"));
}
Route Between(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  const auto n = static_cast<DeviceId>(cluster.gpus().size());
  return {cluster.links_out(from)[0], cluster.links_out(n)[to]};
}

// Every endpoint passes on what it gets, as in a ring all-reduce.
class Relay final : public NetworkClient {
 public:
  Relay(FlowNetwork& network, std::uint32_t n, std::uint32_t rounds)
      : network_(network), left_(n, rounds), n_(n) {}
  void Start() {
    for (std::uint32_t r = 0; r < n_; ++r) network_.Send(r, KiB(16), r);
  }
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime, std::uint64_t token) override {
    const std::uint32_t next = (static_cast<std::uint32_t>(token) + 1) % n_;
    if (left_[next] == 0) return;
    --left_[next];
    network_.Send(next, KiB(16), next);
  }

 private:
  FlowNetwork& network_;
  std::vector<std::uint32_t> left_;
  std::uint32_t n_;
};

void BM_Lockstep(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  const Cluster cluster = Star(n);
  FlowNetwork network(cluster);
  for (std::uint32_t r = 0; r < n; ++r) network.AddRoute(Between(cluster, r, (r + 1) % n));
  std::int64_t messages = 0;
  for (auto _ : state) {
    Relay relay(network, n, 200);
    network.set_client(&relay);
    relay.Start();
    network.RunToIdle();
    messages += static_cast<std::int64_t>(network.effort().messages);
    network.Reset();
  }
  state.SetItemsProcessed(messages);
}
BENCHMARK(BM_Lockstep)->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

class Sink final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime, std::uint64_t) override {}
};

void BM_AllToAllAtOnce(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  const Cluster cluster = Star(n);
  FlowNetwork network(cluster);
  std::uint32_t routes = 0;
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = 0; b < n; ++b) {
      if (a != b) routes = network.AddRoute(Between(cluster, a, b)) + 1;
    }
  }
  Sink sink;
  network.set_client(&sink);
  std::int64_t messages = 0;
  for (auto _ : state) {
    for (std::uint32_t r = 0; r < routes; ++r) network.Send(r, KiB(64), r);
    network.RunToIdle();
    messages += static_cast<std::int64_t>(network.effort().messages);
    network.Reset();
  }
  state.SetItemsProcessed(messages);
}
BENCHMARK(BM_AllToAllAtOnce)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace windtunnel

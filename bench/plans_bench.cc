// What the plan of one all-reduce of 64 MiB costs for jobs of 8 to 8,192 ranks: ring, tree, NVLS on
// one host and NVLSTree over several, laid out as NCCL's decisions say.

#include <benchmark/benchmark.h>

#include "bench/hosts.h"
#include "collectives/algorithm.h"
#include "collectives/nccl_decisions.h"

namespace windtunnel {
namespace {

void MakePlan(benchmark::State& state, const char* algorithm, const char* protocol) {
  nccl::Environment environment;
  environment.Set("NCCL_ALGO", algorithm);
  environment.Set("NCCL_PROTO", protocol);
  NcclDecisions decisions(nccl::Communicator(bench::JobOfHosts(static_cast<int>(state.range(0))),
                                             nccl::kDefaultNcclVersion, environment));
  const CollectiveRequest request{
      .rank_count = static_cast<std::uint32_t>(decisions.communicator().rank_count()),
      .count = std::uint64_t{16} << 20};
  const CallDecision decision = decisions.Decide(request);
  const Algorithm& maker = FindAlgorithm(decision.algorithm);
  std::size_t blocks = 0;
  for (auto _ : state) {
    const Plan plan = maker.MakePlan(request, decision.layout);
    blocks = plan.blocks.size();
    benchmark::DoNotOptimize(plan);
  }
  state.SetLabel(decision.algorithm);
  state.counters["ranks"] = request.rank_count;
  state.counters["blocks"] = static_cast<double>(blocks);
}

void HostCounts(benchmark::internal::Benchmark* bench, std::initializer_list<std::int64_t> counts) {
  for (const std::int64_t hosts : counts) bench->Arg(hosts);
  bench->ArgName("hosts")->Repetitions(5)->ReportAggregatesOnly()->Unit(benchmark::kMillisecond);
}
void AllHostCounts(benchmark::internal::Benchmark* bench) {
  HostCounts(bench, {1, 8, 64, 256, 1024});
}
void SeveralHosts(benchmark::internal::Benchmark* bench) {
  HostCounts(bench, {2, 8, 64, 256, 1024});
}
void OneHost(benchmark::internal::Benchmark* bench) { HostCounts(bench, {1}); }

BENCHMARK_CAPTURE(MakePlan, Ring, "Ring", "Simple")->Apply(AllHostCounts);
BENCHMARK_CAPTURE(MakePlan, Tree, "Tree", "Simple")->Apply(AllHostCounts);
BENCHMARK_CAPTURE(MakePlan, NVLS, "NVLS", "Simple")->Apply(OneHost);
BENCHMARK_CAPTURE(MakePlan, NVLSTree, "NVLSTree", "Simple")->Apply(SeveralHosts);

}  // namespace
}  // namespace windtunnel

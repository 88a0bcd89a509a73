// What NCCL's decisions cost for jobs of 8 to 8,192 ranks: the search of a host, the communicator
// with its rings, trees and heads, its tuning table, and the decision for a call.

#include <benchmark/benchmark.h>

#include "bench/hosts.h"
#include "collectives/nccl/tuning.h"

namespace windtunnel {
namespace {

// By hosts of 8 GPUs.
void HostCounts(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t hosts : {1, 8, 64, 256, 1024}) bench->Arg(hosts);
  bench->ArgName("hosts")->Repetitions(5)->ReportAggregatesOnly();
}

void BM_SearchOfAHost(benchmark::State& state) {
  bench::Host();
  for (auto _ : state)
    benchmark::DoNotOptimize(bench::JobOfHosts(static_cast<int>(state.range(0))));
}
BENCHMARK(BM_SearchOfAHost)->Apply(HostCounts)->Unit(benchmark::kMillisecond);

void BM_Communicator(benchmark::State& state) {
  const nccl::Job job = bench::JobOfHosts(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const nccl::Communicator comm(job, nccl::kDefaultNcclVersion, {});
    benchmark::DoNotOptimize(comm.rank_count());
  }
  state.counters["ranks"] = static_cast<double>(job.ranks.size());
}
BENCHMARK(BM_Communicator)->Apply(HostCounts)->Unit(benchmark::kMillisecond);

void BM_TuningTable(benchmark::State& state) {
  const nccl::Communicator comm(bench::JobOfHosts(static_cast<int>(state.range(0))),
                                nccl::kDefaultNcclVersion, {});
  for (auto _ : state)
    benchmark::DoNotOptimize(
        nccl::Tune(comm.job(), comm.connections(), comm.environment(), comm.constants()));
}
BENCHMARK(BM_TuningTable)->Apply(HostCounts)->Unit(benchmark::kMicrosecond);

void BM_DecisionOfACall(benchmark::State& state) {
  const nccl::Communicator comm(bench::JobOfHosts(static_cast<int>(state.range(0))),
                                nccl::kDefaultNcclVersion, {});
  for (auto _ : state)
    benchmark::DoNotOptimize(comm.Plan({.function = Function::kAllReduce, .count = 1 << 24}));
}
BENCHMARK(BM_DecisionOfACall)->Apply(HostCounts)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace windtunnel

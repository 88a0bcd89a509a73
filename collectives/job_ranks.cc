#include "collectives/job_ranks.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "sim/error.h"

namespace windtunnel {

std::vector<DeviceId> ResolveRanks(const Cluster& cluster,
                                   const std::vector<std::uint32_t>& numbers) {
  const auto all = cluster.gpus();
  const Topology& topology = cluster.topology();
  if (all.empty())
    throw ConfigError({.file = topology.source,
                       .problem = "has no GPU that can take part",
                       .expected = "at least one GPU"});
  if (numbers.empty()) return {all.begin(), all.end()};
  std::vector<DeviceId> out;
  std::map<std::uint32_t, std::size_t> rank_of;
  for (const std::uint32_t number : numbers) {
    if (number >= all.size()) {
      throw ConfigError({.file = topology.source,
                         .field = "--ranks",
                         .value = fmt::to_string(number),
                         .problem = "there is no such GPU:",
                         .expected = fmt::format("GPU numbers 0 to {}", all.size() - 1)});
    }
    const auto [entry, fresh] = rank_of.try_emplace(number, out.size());
    if (!fresh) {
      const Device& gpu = topology.devices[all[number]];
      throw ConfigError(
          {.file = topology.source,
           .field = "--ranks",
           .value = fmt::to_string(number),
           .problem = fmt::format(
               "ranks {} and {} are on one GPU, {} (NCCL: invalid usage):", entry->second,
               out.size(), gpu.bus_id.empty() ? gpu.name : gpu.name + " at " + gpu.bus_id),
           .expected = "each GPU once"});
    }
    out.push_back(all[number]);
  }
  return out;
}

void CheckConnected(const Cluster& cluster, const std::vector<DeviceId>& gpus) {
  const std::vector<std::uint32_t> component = cluster.Components();
  std::map<std::uint32_t, std::vector<std::string>> parts;
  for (const DeviceId gpu : gpus)
    parts[component[gpu]].push_back(cluster.topology().devices[gpu].name);
  if (parts.size() <= 1) return;
  std::string listed;
  for (const auto& [number, names] : parts) {
    if (!listed.empty()) listed += " | ";
    listed += names.size() <= 4
                  ? JoinNames(names)
                  : fmt::format("{}, ... {} ({} GPUs)", names.front(), names.back(), names.size());
  }
  throw ConfigError(
      {.file = cluster.topology().source,
       .field = "--ranks",
       .problem = fmt::format("the ranks lie in {} parts of the cluster that no link joins: {}",
                              parts.size(), listed),
       .expected = "ranks of one part, or links between the parts"});
}

}  // namespace windtunnel

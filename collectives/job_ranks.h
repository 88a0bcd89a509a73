#pragma once
// Which GPUs of a cluster are the ranks of a job.

#include <cstdint>
#include <vector>

#include "interconnect/cluster.h"

namespace windtunnel {

/// GPUs by their number in the file, rank 0 first; all of them when `numbers` is empty.
/// @throws ConfigError for a number that no GPU has, or two ranks on one GPU.
std::vector<DeviceId> ResolveRanks(const Cluster& cluster,
                                   const std::vector<std::uint32_t>& numbers);
/// @throws ConfigError with the parts when no links join all `gpus`.
void CheckConnected(const Cluster& cluster, const std::vector<DeviceId>& gpus);

}  // namespace windtunnel

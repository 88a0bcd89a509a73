#pragma once
// What the cluster says about a job to the constants and closed forms of time: classes of GPU and
// fabric, rates, ways inside a node.

#include <string>

#include "collectives/paths_of_job.h"
#include "collectives/timing/call_facts.h"

namespace windtunnel {

/// Class of catalogue/timing/fabric.yaml for a NIC: by its model, its "protocol" attribute and its
/// rate, and for EFA and Slingshot by the GPU it serves.
/// "" when no class fits: then hops between nodes cost only what the links cost.
std::string FabricClassOf(const Topology& topology, DeviceId nic, const std::string& gpu_class);

/// Facts of a job that no call changes: ranks, nodes, classes, rates, launch. Decision and size
/// stay open.
timing::CallFacts FactsOfJob(const Cluster& cluster, JobPaths& paths, std::uint32_t gpus_per_thread,
                             const nccl::NcclVersion& version);

}  // namespace windtunnel

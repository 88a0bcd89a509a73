#pragma once

#include <string>

#include "interconnect/topology.h"
#include "validate/platform.h"
#include "validate/run.h"

namespace windtunnel::validate {

/// Fills the hardware facts of a run from a topology: GPU, GPUs per node, nodes, links inside the
/// node, NICs and what carries them. Facts that the topology does not hold stay as they are.
/// @throws ConfigError for a topology without GPUs, or whose nodes differ.
void DescribeTopology(const Topology& topology, MeasuredRun& run);

/// Rate of all NVLinks out of the first GPU, links that are down left out; 0 without NVLink.
BitsPerSecond NvlinkRate(const Topology& topology);

/// As MapRun. Where the run names a topology that can be loaded, its figures overrule the run's
/// hardware text: GPU, links, NICs. A name that is not shipped (yet) leaves the text in force.
/// @throws ConfigError when a topology file exists and is wrong.
Mapping MapRunWithTopology(const MeasuredRun& run, const timing::TimingConstants& constants =
                                                       timing::TimingConstants::Shipped());

}  // namespace windtunnel::validate

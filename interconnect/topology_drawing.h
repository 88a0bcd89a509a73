#pragma once
// Pictures of a topology: Graphviz text, and an SVG laid out here without another program.

#include <string>

#include "interconnect/topology.h"

namespace windtunnel {

/// One cluster per host, one edge per pair of links (an arrow where only one direction exists).
std::string TopologyToDot(const Topology& topology);

/// Layers from the network down to the GPUs: network switches, NICs, PCIe switches, CPUs, GPUs,
/// NVSwitches; hosts side by side. @throws ConfigError above 4,096 devices: no one could read it.
std::string TopologyToSvg(const Topology& topology);

}  // namespace windtunnel

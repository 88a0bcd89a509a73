#pragma once
// How near two devices are, in NCCL's words, told from the wires alone.

#include "interconnect/cluster.h"
#include "interconnect/nccl/path_type.h"

namespace windtunnel {

/// Type of the way from `from` to `to`: LOC, NVL (NVLink only), NVB (two NVLinks with a GPU
/// between), C2C, PIX (at most one PCIe switch), PXB (several), P2C (C2C to the CPU, then PCIe),
/// PXN (GPU to NIC over NVLink and a GPU near that NIC), PHB (through a CPU), SYS (between CPUs),
/// NET, DIS (no way). The route is the cluster's own; NCCL's search may find another where rates
/// are its own figures.
nccl::PathType PathTypeBetween(const Cluster& cluster, DeviceId from, DeviceId to);

}  // namespace windtunnel

#pragma once
// Communicators on real and completed topology files of the reference data.

#include <filesystem>
#include <string>

#include "collectives/nccl/communicator.h"
#include "collectives/nccl/job_from_search.h"
#include "collectives/nccl/node_search.h"

namespace windtunnel::nccl {

inline constexpr const char* kH100 = "derived-azure-ndv5-h100-8x400g-full-topo.xml";
inline constexpr const char* kA100 = "derived-azure-ndv4-a100-8x200g-full-topo.xml";
inline constexpr const char* kP4d = "derived-aws-p4d-a100-4x100g-full-topo.xml";
inline constexpr const char* kV100 = "derived-azure-ndv2-v100-cubemesh-1x100g-full-topo.xml";
inline constexpr const char* kB200 = "simllm-hgx-b200-8gpu-vm-topo.xml";
inline constexpr const char* kGvisorB200 =
    "modal-gvisor-hgx-b200-8gpu-8x400g-flattened-vm-topo.xml";
inline constexpr const char* kRtx3090 = "panlichen-8xrtx3090-pcie-topo.xml";

inline Communicator OnMachine(const std::filesystem::path& reference, const std::string& file,
                              int nodes, const Environment& environment = {},
                              NcclVersion version = kDefaultNcclVersion) {
  NodeSearchRequest request;
  request.nodes = nodes;
  request.version = version;
  request.environment = environment;
  const XmlDocument document = ReadXmlFile(reference / "facts" / "topofiles" / file);
  return Communicator(JobOfEqualHosts(SearchNode(document, request), request), version,
                      environment);
}

}  // namespace windtunnel::nccl

#include "validate/topology_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "collectives/nccl/job_from_search.h"
#include "collectives/nccl/node_search.h"
#include "interconnect/nccl/xml.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"

namespace windtunnel::validate {
namespace {

/// The topology a platform names, one host of it, when there is one.
std::optional<Topology> LoadKnown(const std::string& name) {
  const auto shipped = ShippedTopologyNames();
  const std::string base = name.substr(0, name.find('*'));
  if (std::find(shipped.begin(), shipped.end(), base) == shipped.end() &&
      !std::filesystem::exists(name))
    return std::nullopt;
  return LoadTopology(base);
}

}  // namespace

TopologyDecisions::TopologyDecisions() = default;
TopologyDecisions::~TopologyDecisions() = default;

std::vector<std::string> TopologyDecisions::notes() const {
  const std::lock_guard lock(mutex_);
  return {notes_.begin(), notes_.end()};
}

nccl::Job TopologyDecisions::OnBoard(const Platform& platform, const MeasuredRun& run,
                                     const nccl::NcclVersion& version,
                                     const nccl::Environment& environment,
                                     const std::string& why) const {
  {
    const std::lock_guard lock(mutex_);
    notes_.insert(platform.name + " on " + platform.topology + ": " + why);
  }
  return BoardDecisions::JobOf(platform, run, version, environment);
}

nccl::Job TopologyDecisions::JobOf(const Platform& platform, const MeasuredRun& run,
                                   const nccl::NcclVersion& version,
                                   const nccl::Environment& environment) const {
  const timing::CallFacts& facts = platform.facts;
  const auto on_board = [&](const std::string& why) {
    return OnBoard(platform, run, version, environment, why);
  };
  const auto topology = LoadKnown(platform.topology);
  if (!topology) return on_board("no such topology");
  const std::size_t on_host = static_cast<std::size_t>(
      std::count_if(topology->devices.begin(), topology->devices.end(), [](const Device& device) {
        return device.kind == DeviceKind::kGpu && (device.node == 0 || device.node == kNoNode);
      }));
  const std::uint32_t per_node = facts.gpus_per_node();
  const bool fabric = on_host < per_node;  // An NVLink domain of several hosts.
  // A file of an NVLink domain describes one domain: several of them have no search yet.
  if (on_host == 0 || (fabric && (per_node % on_host != 0 || facts.nodes > 1)))
    return on_board(fmt::format("{} ranks a node, {} GPUs a host", per_node, on_host));
  if (facts.nodes > 1 && topology->DevicesOf(DeviceKind::kNic).empty())
    return on_board("the topology has no NIC for several nodes");
  nccl::NodeSearchRequest request;
  request.nodes = static_cast<int>(fabric ? facts.ranks / on_host : facts.nodes);
  request.version = version;
  request.environment = environment;
  request.nvlink_fabric = fabric;
  request.collnet_plugin = run.nic.find("SHARP") != std::string::npos;
  if (!fabric) {
    for (std::uint32_t i = 0; i < per_node; ++i) request.gpus.push_back(static_cast<int>(i));
  }
  try {
    const auto xml = nccl::ParseXml(NodeNcclXml(*topology, 0), platform.topology);
    nccl::Job job = nccl::JobOfEqualHosts(nccl::SearchNode(xml, request), request);
    job.ranks_of_a_host_share_a_process = facts.launch == timing::Launch::kOneThread;
    return job;
  } catch (const ConfigError& error) {
    // One platform that NCCL would refuse is no reason to leave the others undecided.
    return on_board(error.what());
  }
}

}  // namespace windtunnel::validate

#pragma once
// Recorded decisions of NCCL, one JSON file per case: inputs of a job, and what each stage decided.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collectives/nccl/job.h"
#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/nccl_version.h"

namespace windtunnel::nccl {

/// Where a rank of a recorded job sits.
struct RecordedRank {
  int host = 0;
  int dev = 0;
};

struct PlanCase {
  std::filesystem::path file;
  std::string name;
  NcclVersion version;
  Environment environment;
  int hosts = 1;
  std::vector<RecordedRank> ranks;
  bool collnet_plugin = false;
  bool nvlink_fabric = false;
  bool multicast = false;
  /// The whole document. Cases with a variable leave out what equals the case without it: those
  /// fields are filled in from that case.
  nlohmann::json document;

  /// The topology file beside the data ("oracles/topo/X.xml": topo/X.xml of the data folder;
  /// "topofiles/X.xml": facts/topofiles/X.xml, looked for upwards).
  std::filesystem::path TopologyFile(const std::filesystem::path& data) const;
};

/// @throws ConfigError with file and field when it does not read.
PlanCase ReadPlanCase(const std::filesystem::path& file);
/// All cases below `data` (folders nccl-VERSION), sorted by version and name.
/// @throws ConfigError when there is none.
std::vector<std::filesystem::path> FindPlanCases(const std::filesystem::path& data);

/// The job with the recorded search as input instead of our own. Where the GPUs of a host fall
/// apart into several systems only the first is recorded; the others are taken as its images.
Job JobFromRecordedSearch(const PlanCase& plan_case);

}  // namespace windtunnel::nccl

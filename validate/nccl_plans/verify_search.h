#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collectives/nccl/node_search.h"
#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/xml.h"
#include "validate/nccl_plans/field_count.h"

namespace windtunnel::nccl {

/// The topology file of a recorded case: `oracles/topo/X.xml` is PLANS_DIR/topo/X.xml and
/// `topofiles/X.xml` is PLANS_DIR/../../facts/topofiles/X.xml; the same names are looked for in
/// folders of these names in and beside PLANS_DIR.
/// @throws ConfigError naming the case's path when it is in none of them.
std::filesystem::path ResolveTopology(const std::string& topology,
                                      const std::filesystem::path& plans_dir);

/// The request a case stands for. @throws ConfigError for a case without the fields it needs.
NodeSearchRequest RequestOfCase(const nlohmann::json& case_json, const NcclVersion& version);

/// Compares what a case recorded of system, paths, transports, search results and the graph file
/// with ours. Kinds: "system", "paths", "transports", "graphs", "graph files". A field the case
/// lacks is not counted. Rates are compared with a relative tolerance of 1e-5, everything else
/// exactly; a search that throws counts all its graphs as different.
std::vector<FieldCount> VerifySearch(const nlohmann::json& case_json,
                                     const std::filesystem::path& plans_dir,
                                     const NcclVersion& version);

}  // namespace windtunnel::nccl

#pragma once
// --trace, --vcd and --flows of `windtunnel collective`: one call, seen slice by slice, wire by
// wire, connection by connection.

#include <string>

#include "apps/collective_options.h"
#include "collectives/simulation.h"

namespace windtunnel {

/// Runs `request` once more and writes the files that `options` ask for. Returns notes for the
/// user: entries that the limit kept out.
/// @throws ConfigError: file cannot be written, --vcd without the packet level, traces at the
/// analytic level.
std::vector<std::string> WriteTraces(Simulation& simulation, const CollectiveRequest& request,
                                     const CollectiveOptions& options);

}  // namespace windtunnel

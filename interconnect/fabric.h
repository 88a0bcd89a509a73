#pragma once
// Networks between hosts, made from a name and a few figures instead of a list of links.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/catalogue.h"
#include "interconnect/topology.h"
#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel {

struct FabricSpec {
  std::string kind;                    ///< "single-switch", ...
  std::string model;                   ///< Switch model of the catalogue; empty = a generic one.
  std::optional<BitsPerSecond> rate;   ///< Host to switch; else the NIC's port rate.
  std::optional<Picoseconds> latency;  ///< Host to switch; else the catalogue's.
  std::map<std::string, std::string> options;  ///< What only one kind knows.
  InputFault where;                            ///< Where the user asked for it.
};

/// Kinds that `BuildFabric` knows, sorted.
std::vector<std::string> FabricNames();

/// Adds switches, and links to every NIC port that has no network link yet. Hosts without NICs are
/// refused. "single-switch": one switch that never blocks.
/// @throws ConfigError on an unknown kind (the message lists the known ones) or option.
void BuildFabric(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology);

/// The model that a fabric is to be made of; the generic switch when the specification names none.
/// @throws ConfigError when it is no network switch: the message lists those and the nearest.
const DeviceModel& SwitchModelOf(const FabricSpec& spec, const Catalogue& catalogue);

/// By device, the ports of its product that the links out of a network switch take, rounded up: a
/// link slower than a port shares it with up to three others (breakout cable), a faster one takes
/// several. 0 for other devices and where the model has no number of ports.
std::vector<std::uint64_t> PortsInUse(const Topology& topology, const Catalogue& catalogue);

/// Warns of network switches, from device `first` on, with more links than their model has ports.
void WarnOfCrowdedSwitches(const Catalogue& catalogue, DeviceId first, Topology* topology);

/// Rate of a NIC's network port: its "speed" attribute in Mb/s (0 or less counts as 10,000, as NCCL
/// reads it), else its model's. Nothing when neither says.
std::optional<BitsPerSecond> PortRate(const Device& nic, const Catalogue& catalogue);

}  // namespace windtunnel

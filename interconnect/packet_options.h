#pragma once
// The options of the packet level as text: "pfc=off,window=1x,timeout-exponent=14".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/packet_network.h"
#include "interconnect/topology.h"
#include "sim/error.h"

namespace windtunnel {

struct PacketOptionKey {
  std::string_view key;    ///< "pfc-xoff"
  std::string_view value;  ///< "SIZE|auto"
  std::string_view help;   ///< One line, with the default.
};

/// All keys, in the order of docs/packet-level.md.
std::span<const PacketOptionKey> PacketOptionKeys();

/// A line per key, aligned, for a help page: "  pfc-xoff=SIZE|auto   ...".
std::string PacketOptionHelp();

/// Reads KEY=VALUE[,KEY=VALUE...] into `options`, from left to right; what is not named stays. Keys
/// that name links look them up in `topology`.
/// @throws ConfigError built on `where`, the key behind its field ("--network pfc"), with the
/// value, what is allowed, the nearest key.
void ApplyPacketOptions(std::string_view text, const InputFault& where, const Topology& topology,
                        PacketNetwork::Options* options);

/// The same for a flag of the command line: `flag` is the field.
inline void ApplyPacketOptions(std::string_view text, std::string_view flag,
                               const Topology& topology, PacketNetwork::Options* options) {
  ApplyPacketOptions(text, InputFault{.field = std::string(flag)}, topology, options);
}

/// One line per setting of `text` that cannot matter on this cluster, such as tcp=on on InfiniBand.
/// Contract: `ApplyPacketOptions` took the text.
std::vector<std::string> SettingsWithoutEffect(std::string_view text, const Topology& topology);

/// The defaults with what the topology says: attribute "network" of its switches (`fabric.network`
/// in a file), each text once, in file order.
PacketNetwork::Options PacketOptionsOf(const Topology& topology);

}  // namespace windtunnel

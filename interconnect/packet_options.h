#pragma once
// The options of the packet level as text: "pfc=off,window=1x,timeout-exponent=14".

#include <span>
#include <string>
#include <string_view>

#include "interconnect/packet_network.h"
#include "interconnect/topology.h"

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
/// @throws ConfigError with `flag` and the key as field, the value, what is allowed, the nearest
/// key.
void ApplyPacketOptions(std::string_view text, std::string_view flag, const Topology& topology,
                        PacketNetwork::Options* options);

}  // namespace windtunnel

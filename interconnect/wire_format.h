#pragma once
// How a link cuts messages into frames and what each frame costs beside its payload. One table for
// every level of fidelity, so that packet, flow and closed form agree on what a byte costs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/topology.h"

namespace windtunnel {

/// A message of n bytes occupies n + frames x overhead bytes of the wire; 0 bytes travel as one
/// bare frame.
struct WireFormat {
  std::uint32_t max_payload = 4096;  ///< Bytes of payload in a full frame; > 0.
  std::uint32_t overhead = 0;  ///< Bytes per frame: headers, CRC, framing, gaps between frames.

  std::uint64_t Frames(Bytes payload) const {
    return payload.count() == 0 ? 1 : (payload.count() + max_payload - 1) / max_payload;
  }
  Bytes Wire(Bytes payload) const { return Bytes(payload.count() + Frames(payload) * overhead); }
  /// Payload share of a stream of full frames.
  double Efficiency() const {
    return static_cast<double>(max_payload) / static_cast<double>(max_payload + overhead);
  }
  /// Rate of payload in a stream of full frames.
  BitsPerSecond PayloadRate(BitsPerSecond raw) const {
    __extension__ using Wide = unsigned __int128;
    return BitsPerSecond(
        static_cast<std::uint64_t>(Wide{raw.count()} * max_payload / (max_payload + overhead)));
  }
  friend bool operator==(const WireFormat&, const WireFormat&) = default;
};

/// Of a `network` link: told by the attribute "protocol" of either end (see NetworkProtocolNames),
/// else by the model of the switch or NIC ("quantum-2": infiniband, "tomahawk-4": roce), else
/// infiniband. The attribute "mtu" (bytes) of either end replaces the payload of a full frame; the
/// smaller wins.
/// Any link with an end whose attribute "protocol" is "ideal" carries no overhead: its rate is the
/// rate of payload (imported files that know no headers).
/// @throws ConfigError for an unknown protocol name or an MTU that is not 64..65536.
WireFormat LinkWireFormat(const Topology& topology, LinkId link);

/// What `LinkWireFormat` takes a network link for: one of `NetworkProtocolNames()`. Contract: the
/// link's kind is kNetwork.
std::string_view LinkProtocol(const Topology& topology, LinkId link);

/// "infiniband", "roce", "ethernet" (TCP over IPv4), "efa", "slingshot", "ideal".
const std::vector<std::string>& NetworkProtocolNames();

}  // namespace windtunnel

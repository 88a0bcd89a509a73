#pragma once
// What the closed forms of time need to know about one call of NCCL: plain facts, whoever decided
// them. Nothing here depends on a planner, a topology or a log.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/types.h"
#include "interconnect/nccl/nccl_version.h"
#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel::timing {

/// A plan's algorithm, or point to point, which NCCL plans by itself.
enum class Algorithm : std::uint8_t { kRing, kTree, kNvls, kNvlsTree, kPat, kPointToPoint };

/// As NCCL prints them: "Ring", "NVLSTree".
std::string_view ToString(Algorithm algorithm);
/// Reads the spellings of nccl-tests, rccl-tests and of the run files ("alltoall", "all_to_all").
/// @throws ConfigError with the known names.
Function ParseFunction(std::string_view text, const InputFault& where);

/// Who launches: each GPU has a host thread (one process per GPU, or a thread per GPU), or one
/// thread drives all GPUs of the node in turn (nccl-tests `-g N`).
enum class Launch : std::uint8_t { kThreadPerGpu, kOneThread };
/// How GPUs of one node reach each other.
enum class InNodePath : std::uint8_t {
  kNvlink,
  kPciePeer,
  kPcieHost,    ///< Through host memory.
  kPcieSockets  ///< Through host memory of both sockets.
};

/// Rates of zero mean "the class's reference value". Sizes as nccl-tests counts them: the whole
/// buffer (all-gather: gathered; reduce-scatter: before the scatter; all-to-all: one rank's).
struct CallFacts {
  Function function = Function::kAllReduce;
  bool eight_bit_integer = false;  ///< int8 or uint8 elements: adding them is slower.
  bool in_place = false;
  Bytes size;
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;  ///< NVLink domains: an NVL72 rack counts as one.

  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  std::uint32_t channels = 1;   ///< Really used by this call.
  std::uint32_t threads = 512;  ///< Per block.
  Bytes chunk;                  ///< At most this much data moves per hop, channel and loop.
  Bytes channel_bytes;  ///< Of the fullest channel; all-gather, reduce-scatter: of one rank's part.
  /// Broadcast and reduce: what a rank passes on at a time; 0: NCCL's smallest slice.
  Bytes chain_piece;
  std::uint32_t nvls_heads = 0;  ///< NVLS and NVLSTree.
  std::uint32_t peer_parts = 1;  ///< Messages between peers: channels towards one peer.
  /// All-to-all of unequal messages: bytes of the larger of a rank's send and receive, round by
  /// round, over what it sends. A round ends with its larger message.
  double unevenness = 1;

  std::string gpu_class;  ///< Key of catalogue/timing/gpu.yaml: "h100".
  InNodePath path = InNodePath::kNvlink;
  BitsPerSecond link_rate;         ///< Raw, of all links of one GPU, per direction.
  std::uint32_t link_sharers = 1;  ///< GPUs whose traffic crosses one such link (PCIe uplink).
  std::string fabric_class;        ///< Key of catalogue/timing/fabric.yaml; used when `nodes` > 1.
  BitsPerSecond nic_rate;          ///< Nominal, one NIC.
  std::uint32_t nics_per_node = 1;
  Picoseconds path_latency;    ///< Of links and switches between two nodes; 0: as measured.
  std::uint32_t crossing = 1;  ///< Sendrecv: GPUs of a node that send to another node at a time.

  Launch launch = Launch::kThreadPerGpu;
  std::uint32_t gpus_per_thread = 1;
  nccl::NcclVersion version = nccl::kDefaultNcclVersion;

  std::uint32_t gpus_per_node() const { return nodes == 0 ? ranks : ranks / nodes; }
  /// Data of the first chunk that a hop carries: a small message is not cut, since NCCL rounds a
  /// chunk up to a block's threads.
  double first_hop_bytes() const {
    const double bytes = static_cast<double>(size.count());
    const bool parts = function == Function::kAllGather || function == Function::kReduceScatter;
    return parts ? bytes / ranks : bytes;
  }
};

/// Calls whose messages go from peer to peer on their own constants, not along rings or trees.
bool IsPointToPoint(Function function);
/// Of those, the ones in which a rank has one peer at a time.
constexpr bool HasOnePeer(Function function) {
  return function == Function::kSendRecv || function == Function::kHypercube;
}

/// Rounds of a hypercube, each a launch of its own: the partner is at distance 1, 2, 4, ...
constexpr std::uint32_t HypercubeRounds(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::bit_width(ranks) - 1);
}

/// What a share of the time is spent on.
enum class Cause : std::uint8_t {
  kHostLaunch,    ///< The host thread launches on its GPUs in turn and is later than the devices.
  kKernel,        ///< Kernel start to first store, end of kernel, more blocks.
  kHop,           ///< Latency of hops inside a node.
  kBlock,         ///< Copy and slice overhead of thread blocks.
  kLink,          ///< NVLink or PCIe at its limit.
  kSwitchSum,     ///< NVLS: multicast and in-switch addition.
  kPipelineFill,  ///< Filling and draining pipelines, bubbles between loops.
  kNetworkHop,    ///< Proxy, NIC, wire, switches: latency of hops between nodes.
  kHandshake,     ///< Rendezvous of large messages.
  kProxy,         ///< Turns of the proxy thread, cost per message.
  kNic,           ///< NICs at their limit.
  kFabric,        ///< Links behind the NICs, or slower NICs, at their limit.
  kPeerSetup,     ///< Per peer of all-to-all.
  kOwnBlock       ///< Copy of a rank's own part.
};
std::string_view ToString(Cause cause);

/// Time of one call and its shares; the shares add up to the total.
struct TimeBreakdown {
  struct Share {
    Cause cause;
    double us;
  };
  std::vector<Share> shares;
  bool extrapolated = false;  ///< A constant of this answer comes from a rule, not from runs.

  void Add(Cause cause, double us);
  /// What comes behind it: share by share.
  void Add(const TimeBreakdown& next);
  double us() const;
  Picoseconds time() const { return FromMicroseconds(us()); }
  double us(Cause cause) const;
  /// The largest share.
  Cause bound() const;
};

}  // namespace windtunnel::timing

#pragma once

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

/// Inside a node the LL128 tree hop is to its ring hop as in NCCL's own table: 1.25 to 1.9 us.
inline constexpr double kTreeLl128Share = 0.66;
/// Blocks of a tree serve two directions with the threads that a ring gives to one.
inline constexpr double kTreeBlockShare = 0.7;
/// Chunk from which NVLSTree's start costs all of `nvls_tree_chunk_us`.
inline constexpr double kNvlsTreeFullChunk = 4096;

/// What NICs and hops of one call are worth.
struct NetworkTerms {
  double nic_gbps = 0;      ///< Data rate of one NIC.
  double hop_us = 0;        ///< One hop at the call's protocol and message size, without handshake.
  double handshake_us = 0;  ///< Rendezvous of that hop.
};
/// `message_bytes`: wire bytes of one message.
NetworkTerms NetworkTermsOf(const CallFacts& facts, const FabricConstants& fabric,
                            Protocol protocol, double message_bytes);

/// Device time of ring, tree, NVLSTree and PAT over several nodes. docs/timing-model.md 3 has the
/// formulas. Not modelled: in-network reduction (CollNet, SHARP), congestion between jobs.
/// @throws ConfigError for an algorithm without a form.
TimeBreakdown NetworkTime(const CallFacts& facts, const TimingConstants& constants);

}  // namespace windtunnel::timing

#pragma once

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

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

#pragma once

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

/// Device time of all-to-all and of send-receive inside one node: the sender's copy and the
/// receiver's copy are two stages, up to `facts.chunk` (512 KiB) at a time.
TimeBreakdown OneNodePointToPointTime(const CallFacts& facts, const TimingConstants& constants);
/// The same over several nodes: NIC share of a GPU, a fixed cost per remote peer.
TimeBreakdown NetworkPointToPointTime(const CallFacts& facts, const TimingConstants& constants);

}  // namespace windtunnel::timing

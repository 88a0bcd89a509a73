#pragma once

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

/// Device time of messages between peers (IsPointToPoint) inside one node: the sender's copy and
/// the receiver's copy are two stages, up to `facts.chunk` (512 KiB) at a time. A gather or scatter
/// is its root's side of an all-to-all, whose GPU has one of the stages only. Unequal messages
/// count `facts.unevenness` times.
TimeBreakdown OneNodePointToPointTime(const CallFacts& facts, const TimingConstants& constants);
/// The same over several nodes: NIC share of a GPU, a fixed cost per remote peer.
TimeBreakdown NetworkPointToPointTime(const CallFacts& facts, const TimingConstants& constants);

}  // namespace windtunnel::timing

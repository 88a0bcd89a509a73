#pragma once
// The closed-form time of one call of NCCL: the analytic fidelity level, and the oracle that the
// other levels are held against on idle machines.

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

/// Device time by the form that fits the call, then the launch: one host thread that drives g GPUs
/// is a server, so the call takes max(device, g (h + h_channel C)), not their sum.
/// Zero bytes cost the launch alone.
/// @throws ConfigError for classes without constants or algorithms without a form.
TimeBreakdown PredictTime(const CallFacts& facts,
                          const TimingConstants& constants = TimingConstants::Shipped());

/// One thread that launches on the GPUs of its node in turn: when the last of them starts, per
/// call. 0 with a thread for every GPU.
double HostLaunchUs(const CallFacts& facts, const TimingConstants& constants);

/// What a data sheet says and no more: 2(n-1)/n or (n-1)/n of the bytes at the raw rate of the
/// narrowest link (NVLink of a GPU, NICs of a node), and per step 1 us inside a node or 3 us over
/// the network (vendors' "sub-microsecond" switch plus RDMA latency). Microseconds. The baseline
/// that every other answer must beat.
double DataSheetTimeUs(const CallFacts& facts,
                       const TimingConstants& constants = TimingConstants::Shipped());

}  // namespace windtunnel::timing

#pragma once
// What NCCL chose before it had a tuning table: releases 1.x and 2.0 to 2.4 on one node.

#include "collectives/timing/call_facts.h"

namespace windtunnel::validate {

/// From this release on NCCL chooses by predicted times.
inline constexpr nccl::NcclVersion kTuningTableSince{2, 5, 0};

/// Fills protocol, channels, threads, chunk and parts of `facts` for its size. `most_channels`: of
/// the communicator; `pre_volta`: GPUs before Volta leave LL at half the size.
///
/// 1.x: one ring, no LL. 2.0 to 2.4: LL up to a number of bytes per thread (64, before Volta 32),
/// with as many threads (64 to 256) and then channels as 8 bytes per thread ask for; else all
/// channels, 256 threads, halves of a 4 MiB buffer. Source: the rule of 2.4 in the public
/// repository NVIDIA/nccl, src/enqueue.cc; buffers of 2.0 to 2.3 from src/collectives (4 MiB, two
/// chunks). Pieces of a chain: reduce 512 KiB (1.x) and 1 MiB (2.0 to 2.3), broadcast half of it:
/// where the growth of the 8-GPU P100 runs ends; 2.4: one step, 512 KiB. Contract: one node; the
/// function is no send or receive.
void DecideEarly(timing::CallFacts& facts, std::uint32_t most_channels, bool pre_volta);

}  // namespace windtunnel::validate

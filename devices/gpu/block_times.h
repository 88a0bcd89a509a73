#pragma once
// What one thread block of a communication kernel costs on a GPU: the endpoint half of every
// transfer.

#include <algorithm>
#include <cstdint>

#include "sim/units.h"

namespace windtunnel {

/// Timing of the ops of one block, by one protocol. A block is strictly sequential: per slice it
/// pays a fixed overhead and then copies at its own rate, while the link carries the bytes at the
/// same time. All zero = an ideal endpoint that costs nothing. Source of the form: measured NCCL
/// runs, see docs/timing-model.md.
struct BlockTimes {
  Picoseconds slice_overhead;        ///< Fence, barrier, posting: per slice.
  Picoseconds empty_slice_overhead;  ///< The same for a slice without bytes: it still waits, fences
                                     ///< and posts.
  BitsPerSecond copy_rate;    ///< One block storing to its buffer or a peer; 0 = never the limit.
  BitsPerSecond reduce_rate;  ///< One block adding an arrival; 0 = never the limit.
  Bytes round_bytes;  ///< LL: bytes all threads move in one round (8 per thread); 0 = no rounds.
  Picoseconds round_time;  ///< LL: each round after the first.
  Picoseconds
      first_round_copy;  ///< LL: what a copying hop adds to the first round when the block is full.
  Picoseconds first_round_reduce;  ///< LL: the same for an adding hop.
  double round_reduce_factor = 1;  ///< LL: round of an adding hop against a copying hop.

  /// Time the block works on a slice of `bytes` data, without waiting for links.
  Picoseconds SliceTime(Bytes bytes, bool reduces) const {
    if (bytes.count() == 0) return empty_slice_overhead;
    Picoseconds time = slice_overhead;
    if (round_bytes.count() != 0) {
      const std::uint64_t rounds = (bytes.count() + round_bytes.count() - 1) / round_bytes.count();
      const double factor = reduces ? round_reduce_factor : 1.0;
      time += Picoseconds(static_cast<std::uint64_t>(
          static_cast<double>(round_time.count() * (rounds - 1)) * factor));
      time += reduces ? first_round_reduce : first_round_copy;
      return time;
    }
    const BitsPerSecond rate = reduces ? reduce_rate : copy_rate;
    if (rate.count() != 0) time += SerializationTime(bytes, rate);
    return time;
  }
};

/// Start of a call on the ranks of a job.
struct LaunchTimes {
  Picoseconds device;              ///< Launch of the kernel to its first store, and its end.
  Picoseconds device_more_blocks;  ///< Added when more than one block per GPU runs.
  Picoseconds host_per_gpu;  ///< One thread that drives several GPUs: its time per GPU and call,
  Picoseconds host_per_channel;  ///< and per GPU and channel.
  std::uint32_t gpus_per_thread = 1;
};

}  // namespace windtunnel

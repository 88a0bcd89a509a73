#pragma once
// Where each output element of a call comes from, and how buffers lie in place: what executors,
// proofs and checks share.

#include <cstdint>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel {

/// Offsets of input and output in one memory, elements (NCCL, ncclAllGather and others:
/// "in place when").
struct InPlaceOffsets {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};
/// False for alltoall, alltoallv, sendrecv.
bool HasInPlaceForm(Function function);
InPlaceOffsets OffsetsInPlace(const CollectiveRequest& request, Rank rank);

/// Elements [begin, begin + count) of an output hold the reduction over ranks first_rank..last_rank
/// of their input elements [source, source + count).
struct OutputPart {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  Rank first_rank = 0;
  Rank last_rank = 0;
  std::uint64_t source = 0;
};
/// What the collective defines for the output of `rank`, in order, without gaps.
std::vector<OutputPart> ExpectedOutput(const CollectiveRequest& request, Rank rank);

}  // namespace windtunnel

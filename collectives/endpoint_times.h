#pragma once
// From the constants of a GPU class and a fabric class to what one block, one hop and one launch
// cost.

#include "collectives/timing/constants.h"
#include "collectives/types.h"
#include "devices/gpu/block_times.h"

namespace windtunnel {

/// What decides the endpoint's cost of a call.
struct EndpointQuery {
  Function function = Function::kAllReduce;
  DataType type = DataType::kFloat;
  Protocol protocol = Protocol::kSimple;
  AlgorithmId algorithm = AlgorithmId::kRing;
  std::uint32_t threads = 512;
  std::uint32_t channels = 1;
  std::uint32_t heads = 1;  ///< NVLS: parts that one rank each reduces.
  bool several_nodes = false;
  std::uint32_t gpus_per_node = 1;
  std::uint32_t nics_per_node = 1;
  Bytes chunk;    ///< Data of one hop and loop.
  Bytes message;  ///< Between peers: data of one message on one channel; 0: larger than a chunk.
  Bytes size;     ///< As nccl-tests counts it; 0: large.
  std::uint32_t ranks = 1;
};

/// Costs of the blocks of a ring or tree; calls over several nodes have the rates of the network
/// forms, whose hops carry the overhead of a slice. Source of the forms: docs/timing-model.md.
BlockTimes RingBlockTimes(const EndpointQuery& query, const timing::GpuConstants& gpu,
                          const timing::SharedConstants& shared);
/// Of messages between peers: costs of the receiving block beside those of the sending one.
BlockTimes PeerReceiveTimes(const BlockTimes& sending);
/// Costs of the stages of NVLS. A stage moves what all heads of a channel handle in one loop in one
/// period; a reducing block handles its own head's part in the same time.
struct NvlsStageTimes {
  BlockTimes copying;   ///< Scatter and gather.
  BlockTimes reducing;  ///< Switch reduction and multicast of one head.
};
NvlsStageTimes NvlsTimes(const EndpointQuery& query, const timing::GpuConstants& gpu);
/// Arrival at the receiver's memory to the receiving block going on, inside a node; the flight of
/// the links is part of it and must be taken off.
Picoseconds NodeHopReaction(const EndpointQuery& query, const timing::GpuConstants& gpu);
/// The same between nodes: proxies, doorbell, completion, flush; again with the flight included.
/// The proxy serves the channels of its GPU in turn; LL lags behind the wire by its data.
Picoseconds NetworkHopReaction(const EndpointQuery& query, const timing::FabricConstants& fabric,
                               const timing::SharedConstants& shared, Bytes wire_message,
                               std::uint32_t nodes);
/// Kernel start to first store, and the end of the kernel.
Picoseconds DeviceLaunch(const EndpointQuery& query, const timing::GpuConstants& gpu);
/// What sends to, or receives from, all ranks of other nodes cost before the last of them moves:
/// `peer_us` for each. Measured with alltoall; ASSUMED alike for alltoallv, and for the root of
/// gather and scatter, which post the same calls. A single peer (sendrecv) pays it in its hop.
Picoseconds PeerSetUp(const EndpointQuery& query, const timing::FabricConstants& fabric);
/// Share of the raw rate of NICs that messages can use, with the limits of NICs without GPUDirect.
double UsableNicShare(const EndpointQuery& query, const timing::FabricConstants& fabric,
                      const timing::SharedConstants& shared, BitsPerSecond nominal);
/// Share of the raw NVLink rate that transfers of this call can use (1 when no limit is known).
double UsableLinkShare(const EndpointQuery& query, const timing::GpuConstants& gpu);

}  // namespace windtunnel

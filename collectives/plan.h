#pragma once
// A collective as programs of thread blocks: pure data, no clock, no buffers. Timing, data movement
// and proofs all read the same plan.
//
// Model: every rank has an input, an output and a scratch buffer of elements. A *block* is one
// strictly sequential actor on one rank (NCCL: one thread block of a channel or one warp group of
// it). Its program is a list of ops. An op forms one value of `count` elements from its sources and
// puts it to its sinks:
//   value = own data (if `has_source`), then each arrival of `receive_from` combined in order
//   (plain copy when there is one source only) sinks = own buffer (if `has_destination`), every
//   peer of `send_to`.
// A *connection* is (from rank, to rank, channel, port): first in, first out; the k-th send on it
// meets the k-th receive. One block sends on it and one receives; both ops name the same count and
// the same number of slices.
// Ops combined by a switch move no data on connections: `receive_from` (reduce) and
// `send_to` (multicast) name the members, and the same buffer position is meant on each of them
// (symmetric memory, as multimem addresses have it). What travels on the connections to the members
// is a bare step (count 0): a reduce starts when one has come from every member, a multicast posts
// one to every member when it is complete.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/types.h"

namespace windtunnel {

enum class BufferKind : std::uint8_t { kInput, kOutput, kScratch };

struct BufferPosition {
  BufferKind buffer = BufferKind::kInput;
  std::uint64_t offset = 0;  ///< Elements.
};

/// The other end of a connection. `port` tells apart several connections between the same two ranks
/// on one channel (tree up 0, tree down 1, ...).
struct Peer {
  Rank rank = 0;
  std::uint32_t port = 0;
  friend constexpr auto operator<=>(const Peer&, const Peer&) = default;
};

/// How arrivals come together or leave.
enum class Combine : std::uint8_t {
  kBlock,            ///< The block itself reads, adds, stores.
  kSwitchReduce,     ///< The switch adds what the members `receive_from` hold at `source`, wide,
                     ///< and delivers one result to this block (multimem load-reduce), which stores
                     ///< it at its own `destination`.
  kSwitchMulticast,  ///< One store reaches `destination` on all members `send_to` through the
                     ///< switch.
  kSwitchAllReduce,  ///< The switches add what the members `receive_from` hold at `source` and
                     ///< store the result at `destination` of each of `send_to` (SHARP). The block
                     ///< that has the op only starts it: nothing passes through its rank beyond its
                     ///< share as a member.
};

/// Before an op may start, op `op` of block `block` (index in Plan::blocks, same rank) must be
/// complete.
struct Dependency {
  std::uint32_t block = 0;
  std::uint64_t op = 0;
};

struct PlanOp {
  std::uint64_t count =
      0;  ///< Elements; 0 is a legal bare step (it still takes its place in the connection).
  std::span<const Peer> receive_from;
  std::span<const Peer> send_to;
  std::span<const Dependency> wait_for;
  bool has_source = false;
  bool has_destination = false;
  bool scale = false;  ///< The value is a finished reduction: an average of integers divides here.
                       ///< Averages of floating types need no flag: each read of kInput is scaled
                       ///< by 1/n in the type (NCCL's pre-multiplied sum).
  Combine combine = Combine::kBlock;
  BufferPosition source;
  BufferPosition destination;
  std::uint32_t step = 0;    ///< Round of the schedule, for reports.
  std::uint32_t slices = 1;  ///< Pipelined parts of this op on the wire.
  /// The block goes on when its own work is done and leaves the wire to the network (a put); else
  /// it waits until the bytes have left. A block never ends before its posted bytes have left.
  bool posted = false;
};

/// The ops of one block. Long regular schedules are computed on demand, so that a plan of 8 GiB or
/// 65,536 ranks stays small.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::uint64_t size() const = 0;
  /// Spans of the result stay valid as long as the program. Contract: index < size(). Pure.
  virtual PlanOp At(std::uint64_t index) const = 0;
};

struct Block {
  Rank rank = 0;
  std::uint32_t channel = 0;
  std::string_view
      role;  ///< "ring", "tree up", "tree down", "nvls scatter", ...: static text, for reports.
  std::shared_ptr<const Program> program;
};

/// Role of a block whose bare ops are further kernel launches of a call: each takes the launch.
inline constexpr std::string_view kLaunchRole = "launch";
/// Role of the blocks that receive messages between peers.
inline constexpr std::string_view kPeerReceiveRole = "receive";

/// Elements rank `from` sends to rank `to` in an all-to-all of uneven counts, `count` being the
/// mean per peer. The pattern of alltoallv_perf (ROCm/rccl-tests, src/alltoallv.cu): with p =
/// floor(2 count / n), ((to + from) mod n) * p elements, and the pair with (to + from) mod n = 0
/// takes what is left of n * count. The matrix is symmetric, so a rank receives what it sends.
std::uint64_t AllToAllVCount(std::uint32_t rank_count, std::uint64_t count, Rank from, Rank to);
/// What the larger of a rank's send and receive of a round adds up to over all rounds, over what it
/// sends: the mean over ranks. Round d of a rank sends to rank + d and receives from rank - d. At
/// least 1; 4/3 and a little for many ranks. Of many ranks about 131,000 rounds are looked at, of
/// ranks an equal way apart.
double AllToAllVUnevenness(std::uint32_t rank_count, std::uint64_t count);
/// Offset of the part for (and from) `peer` in the buffers of `rank`.
std::uint64_t AllToAllVOffset(std::uint32_t rank_count, std::uint64_t count, Rank rank, Rank peer);

/// What a caller asks for. `count` has NCCL's meaning: all_reduce, broadcast, reduce: elements of
/// the buffer; all_gather: elements each rank gives; reduce_scatter: elements each rank receives;
/// alltoall, gather, scatter: elements per peer (alltoallv: their mean); sendrecv: elements of the
/// message, which goes to the next rank; hypercube: as all_gather.
struct CollectiveRequest {
  Function function = Function::kAllReduce;
  std::uint32_t rank_count = 1;
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t count = 0;
  Rank root = 0;
  bool in_place = false;
};

/// Elements of the buffers of a rank for a request. A rank that the call does not read from
/// (broadcast, scatter: all but the root) or write to (reduce, gather) has a buffer of 0 elements.
std::uint64_t InputCount(const CollectiveRequest& request, Rank rank);
std::uint64_t OutputCount(const CollectiveRequest& request, Rank rank);
/// The size that nccl-tests and NCCL's model call S: whole buffer; all_gather and reduce_scatter:
/// the large buffer.
std::uint64_t LogicalBytes(const CollectiveRequest& request);

struct Plan {
  CollectiveRequest request;
  std::string algorithm;  ///< As NCCL prints it ("Ring"), or our name ("Bruck").
  Protocol protocol = Protocol::kSimple;
  std::uint32_t channel_count = 1;
  std::uint64_t scratch_count = 0;  ///< Elements of scratch per rank.
  std::vector<Block> blocks;        ///< Sorted by (rank, channel, role order).
  /// Ranks known to behave alike (same program shape and, on a symmetric network, the same times);
  /// empty = not known.
  std::string symmetry;
};

/// A program kept as a list.
class ListProgram final : public Program {
 public:
  std::uint64_t size() const override { return ops_.size(); }
  PlanOp At(std::uint64_t index) const override { return ops_[index]; }
  /// Copies the spans of `op` into storage of this program.
  void Append(const PlanOp& op);

 private:
  std::vector<PlanOp> ops_;
  std::vector<std::unique_ptr<Peer[]>> peers_;
  std::vector<std::unique_ptr<Dependency[]>> dependencies_;
};

}  // namespace windtunnel

#pragma once
// Runs a plan against the clock: blocks wait for data and credits, work, and put messages on a
// Network of any fidelity.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan.h"
#include "devices/gpu/block_times.h"
#include "interconnect/network.h"

namespace windtunnel {

/// How one connection of a plan is carried.
struct ConnectionPath {
  RouteId route = 0;
  /// First bit out to first bit in of the way: what the last store of the sender's own work needs
  /// to arrive when the wire is not the limit.
  Picoseconds flight;
  /// From arrival at the receiver's memory to the receiving block going on: polling, proxy,
  /// completion, flush.
  Picoseconds reaction;
  /// From the receiver freeing a slot to the sender seeing it.
  Picoseconds credit_return;
  /// Extra time of the sender per message before the wire sees it: proxy turn, post.
  Picoseconds post;
  /// Messages a sender may be ahead of the receiver. NCCL: 8 steps of buffer.
  std::uint32_t slots = 8;
  /// Wire bytes per data byte as a ratio: LL 2/1, LL128 128/120, Simple 1/1.
  std::uint32_t wire_numerator = 1;
  std::uint32_t wire_denominator = 1;
  /// Set instead of a route when the transfer stays in the GPU's own memory.
  bool local = false;
  friend bool operator==(const ConnectionPath&, const ConnectionPath&) = default;
};

/// Group of a switch-combined op: registered multicast or reduction.
struct GroupPath {
  GroupId group = 0;
  Picoseconds reaction;
};

/// Everything about a job that is not in the plan.
class ExecutionSetting {
 public:
  virtual ~ExecutionSetting() = default;
  /// Asked once per connection. A block that only stages data for a switch reduction gets a local
  /// path.
  virtual ConnectionPath PathOf(const Block& sender, const Peer& to) = 0;
  /// Only asked for plans with switch-combined ops.
  virtual GroupPath GroupOf(GroupKind kind, Rank owner, std::span<const Peer> members,
                            std::uint32_t channel) = 0;
  /// Asked once per block, when it starts; what it refers to must hold still until the run ends.
  virtual const BlockTimes& TimesOf(Rank rank, const Block& block) = 0;
  /// When the blocks of this rank start.
  virtual SimTime StartOf(Rank rank) = 0;
  /// Added after the last block of a rank.
  virtual Picoseconds EndOf(Rank rank) = 0;
};

/// Where the time of a block went. The parts add up to its life.
struct BlockAccount {
  Picoseconds wait_data;    ///< Nothing had arrived.
  Picoseconds wait_credit;  ///< The receiver had no free slot.
  Picoseconds wait_link;    ///< Own work done, link still taking the bytes.
  Picoseconds overhead;     ///< Fixed cost per slice.
  Picoseconds copy;         ///< Moving and adding bytes.
};

struct TimedSpan {
  std::uint32_t block = 0;
  std::uint32_t step = 0;
  SimTime begin, end;
  Bytes bytes;
};

/// What one connection of a plan carried.
struct ConnectionUse {
  Rank from = 0, to = 0;
  std::uint32_t channel = 0, port = 0;
  std::uint64_t messages = 0;
  Bytes bytes;         ///< Data; the wire may carry flags beside.
  SimTime first_send;  ///< The sender hands over the first message.
  SimTime last_ready;  ///< The receiver may read the last one.
};

/// What is kept of a run beyond its result.
struct ExecutionWatch {
  std::function<void(const TimedSpan&)> on_span;
  std::vector<ConnectionUse>* connections = nullptr;  ///< Filled with those that carried messages.
};

struct ExecutionResult {
  Picoseconds time;  ///< Until the last rank is done.
  std::vector<SimTime> rank_end;
  std::vector<BlockAccount> accounts;  ///< Per block of the plan.
  std::uint32_t last_block = 0;        ///< The block that ended last.
  Picoseconds start;  ///< Start of the rank of the last block: the launch part of `time`.
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
};

/// Contract: the network is idle at time 0 (after Reset). One executor per run.
/// @throws SimulationError when nothing moves although blocks are open: the diagnosis names ranks,
/// operation, missing peer, link.
ExecutionResult RunTimed(const Plan& plan, Network& network, ExecutionSetting& setting,
                         const ExecutionWatch& watch = {});

}  // namespace windtunnel

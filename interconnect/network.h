#pragma once
// What moves bytes between devices, at any level of fidelity: packet (SystemC), flow, or nothing
// but an idle-path bound.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/cluster.h"
#include "sim/event_queue.h"
#include "sim/units.h"

namespace windtunnel {

using RouteId = std::uint32_t;
using GroupId = std::uint32_t;

/// Receives the two moments of a message that its endpoints care about. `token` is the caller's.
class NetworkClient {
 public:
  virtual ~NetworkClient() = default;
  /// The last byte has left the source: its buffer slot on the wire side is free for the next
  /// message.
  virtual void OnInjected(SimTime now, std::uint64_t token) = 0;
  /// The whole message is present at the target (multicast: at every member; reduction: at the
  /// requester).
  virtual void OnDelivered(SimTime now, std::uint64_t token) = 0;
};

/// What one direction of a link did during a run.
struct LinkUse {
  Bytes payload;     ///< Callers' bytes.
  Bytes wire;        ///< With headers, flits, framing.
  Picoseconds busy;  ///< Time the wire was occupied.
  std::uint64_t packets = 0;
  std::uint64_t deepest_queue = 0;  ///< Bytes waiting for this link at worst.
  std::uint64_t pauses = 0;  ///< PFC pause episodes (RoCE) or times a sender ran out of credits.
  std::uint64_t marks = 0;   ///< ECN marks.
  std::uint64_t drops = 0;
};

/// In-switch operations of an NVSwitch or a SHARP tree.
enum class GroupKind : std::uint8_t { kMulticast, kReduce };

class Network {
 public:
  virtual ~Network() = default;
  virtual std::string_view name() const = 0;  ///< "packet", "flow".

  /// Registers a route; equal routes may get one id. Before the first Send of a run.
  virtual RouteId AddRoute(const Route& route) = 0;
  /// `hub` is the switch that replicates or reduces; each member exchanges data with it over its
  /// own route. Multicast: one message from `owner` arrives at all members. Reduce: all members'
  /// data arrive, combined, at `owner`.
  virtual GroupId AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                           std::span<const DeviceId> members) = 0;

  /// Starts a message of `size` wire-protocol bytes (LL counts its flags) now. Messages of one
  /// route arrive in order. Zero bytes still travel as one bare frame.
  virtual void Send(RouteId route, Bytes size, std::uint64_t token) = 0;
  virtual void SendGroup(GroupId group, Bytes size, std::uint64_t token) = 0;

  virtual void set_client(NetworkClient* client) = 0;
  virtual EventQueue& queue() = 0;
  /// The caller's job is over at this instant: what others still send or repeat does not count in
  /// `link_use` until the next Reset, and a frame on a wire counts as busy up to now.
  virtual void EndOfRun() {}
  /// Per link of the topology, since the last Reset and until `EndOfRun`.
  virtual std::span<const LinkUse> link_use() const = 0;
  /// Messages sent and not yet delivered.
  virtual std::uint64_t open_messages() const = 0;
  /// For the diagnosis of a run that stands still: which link waits for what, who holds its
  /// credits. Empty when nothing is stuck.
  virtual std::string DescribeStall() const = 0;
  /// Clears counters and time for the next run; routes and groups stay. Contract: idle.
  virtual void Reset() = 0;
  /// Runs the event queue until it is empty (packet level: inside the SystemC kernel).
  virtual void RunToIdle() = 0;
};

}  // namespace windtunnel

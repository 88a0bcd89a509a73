#pragma once
// Send and receive: the schedule of partners, and channels, protocol and chunks of each message.
// Source: NVIDIA/nccl, src/enqueue.cc, src/init.cc, src/include/channel.h, by tag.

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/nccl/connect.h"
#include "collectives/nccl/constants.h"
#include "collectives/types.h"
#include "interconnect/nccl/environment.h"

namespace windtunnel::nccl {

struct P2pRound {
  std::int32_t send_to = -1;  ///< -1: nobody in this round.
  std::int32_t receive_from = -1;
  friend bool operator==(const P2pRound&, const P2pRound&) = default;
};
/// Partners of `rank`, one round for every rank of the job (older versions: possibly more, with
/// empty halves).
std::vector<P2pRound> P2pScheduleOf(const Connections& connections, Rank rank,
                                    const NcclVersion& version);

struct P2pCall {
  bool send = true;
  Rank peer = 0;
  std::uint64_t bytes = 0;
};

/// One direction of one round.
struct P2pMessage {
  bool present = false;
  int channels = 0;  ///< Parts; part k goes over channel (base + k) mod channels.
  bool ll = false;
  std::int64_t chunk_bytes = 0;  ///< Of data.
};
/// What one round of the schedule moves.
struct P2pItem {
  std::int32_t send_to = -1;
  std::int32_t receive_from = -1;
  int channel_base = 0;
  P2pMessage send;
  P2pMessage receive;
  int launch = 0;  ///< Number of the kernel launch.
};
/// One part of a message as versions before 2.22 plan it.
struct P2pPart {
  std::int32_t peer = -1;
  bool send = false;
  bool ll = false;
  std::int64_t chunk_bytes = 0;  ///< Of data.
  int warps = 0;
  int groups = 0;  ///< Operations the block is split between.
  std::vector<int> channels;
  std::vector<std::uint64_t> bytes;  ///< On each channel.
};
struct P2pPlan {
  std::vector<P2pItem> items;  ///< 2.22 and later, in launch order.
  std::vector<P2pPart> parts;  ///< Before 2.22.
  int launches = 0;
};

/// What planning asks about the connection to a peer.
class PeerLinks {
 public:
  virtual ~PeerLinks() = default;
  virtual bool OverNetwork(Rank from, Rank to) const = 0;
};

/// Plans all sends and receives of one group for one rank. @throws ConfigError for a peer that does
/// not exist, or a message to oneself without its other half (NCCL: invalid usage).
P2pPlan PlanSendReceive(const Connections& connections, const Environment& environment,
                        const Constants& constants, const PeerLinks& links, Rank rank,
                        std::span<const P2pCall> calls);
/// The same for versions before 2.22.
P2pPlan PlanSendReceiveBefore222(const Connections& connections, const Environment& environment,
                                 const Constants& constants, const PeerLinks& links, Rank rank,
                                 std::span<const P2pCall> calls);

/// Ranks per group of the schedule (2.22 and later).
int P2pGroupSize(const Connections& connections, const NcclVersion& version);
/// Channel of part `part` of a message with base `base`.
int P2pChannelOfPart(const NcclVersion& version, int p2p_channels, int base, int part);

}  // namespace windtunnel::nccl

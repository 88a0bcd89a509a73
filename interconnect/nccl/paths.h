#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/path_type.h"
#include "interconnect/nccl/system.h"
#include "interconnect/nccl/topology_rules.h"

namespace windtunnel::nccl {

/// A link as its owner and its place among the owner's links.
struct LinkRef {
  NodeRef from;
  std::uint32_t link = 0;
};

/// How one node reaches another.
struct Path {
  PathType type = PathType::kDis;
  float rate = 0;  ///< Smallest rate of the hops, GB/s; 0 when there is no path.
  std::vector<LinkRef> hops;
  std::uint32_t hop_count() const { return static_cast<std::uint32_t>(hops.size()); }
};

/// Paths from every node to every CPU, GPU, NIC and NVSwitch.
class PathTable {
 public:
  /// False when no node of that kind reached `from`: then there are no entries either.
  bool Has(NodeRef from, NodeKind to) const { return !Row(from, to).empty(); }
  const Path& At(NodeRef from, NodeRef to) const;
  Path& At(NodeRef from, NodeRef to) {
    return const_cast<Path&>(std::as_const(*this).At(from, to));
  }
  void Reset(const System& system);
  /// Makes the entries of `from` to the nodes of that kind when there are none yet.
  void Make(NodeRef from, NodeKind to, std::uint32_t count, PathType type);

 private:
  using Rows = std::array<std::vector<Path>, kNodeKinds>;
  const std::vector<Path>& Row(NodeRef from, NodeKind to) const {
    return rows_[static_cast<std::size_t>(from.kind)][from.index][static_cast<std::size_t>(to)];
  }
  std::array<std::vector<Rows>, kNodeKinds> rows_;
};

/// What the user's variables say about paths and transports.
struct PathSettings {
  enum class NetPolicy : std::uint8_t { kAuto, kAll, kMax };
  std::optional<PathType> p2p_level;     ///< NCCL_P2P_LEVEL, NCCL_P2P_DISABLE.
  std::optional<PathType> gdr_level;     ///< NCCL_NET_GDR_LEVEL.
  std::optional<std::int64_t> gdr_read;  ///< NCCL_NET_GDR_READ.
  bool nvb_disable = false;
  bool pxn_disable = false;
  bool pxn_c2c = true;
  bool gdr_c2c = true;
  bool shm_disable = false;
  bool net_disable_intra = false;
  std::optional<bool> p2p_read;  ///< NCCL_P2P_READ_ENABLE.
  NetPolicy net_policy = NetPolicy::kAuto;
  int net_policy_count = 0;
  /// Pairs of `dev` between which the driver refuses peer access (either order).
  std::vector<std::pair<int, int>> blocked_pairs;
};

/// @throws ConfigError for a level or policy that NCCL does not know.
PathSettings ReadPathSettings(const Environment& environment, const PathRules& rules);

enum class GdrMode : std::uint8_t { kOff, kOn, kOnOverPci };

/// What a rank uses towards another rank.
struct Transport {
  enum class Kind : std::uint8_t { kSelf, kP2p, kShm, kNet };
  Kind kind = Kind::kSelf;
  bool read = false;       ///< P2P: the receiver reads; else the sender writes.
  std::optional<int> via;  ///< P2P: rank of the GPU that forwards.
};

/// A system as one rank sees it: the graph, its paths after all rules, and what follows from them.
/// GPUs and NICs are named by their index in the system.
class SystemView {
 public:
  /// Finds paths, cuts the GPUs that `own_rank` reaches over the network only, finds paths again.
  /// @param total_ranks ranks of the job; more than the system's make it "inter".
  /// @throws ConfigError when a GPU has no CPU.
  SystemView(System system, int own_rank, int total_ranks, const PathSettings& settings,
             const PathRules& rules);

  const System& system() const { return system_; }
  const PathTable& paths() const { return paths_; }
  const PathSettings& settings() const { return settings_; }
  const PathRules& rules() const { return rules_; }
  int own_rank() const { return own_rank_; }

  const Path& GpuToGpu(std::uint32_t from, std::uint32_t to) const;
  const Path& GpuToNet(std::uint32_t gpu, std::uint32_t net) const;
  const Path& NetToGpu(std::uint32_t net, std::uint32_t gpu) const;

  /// Start values of the search, GB/s: best rate of one path, and rate of the busiest GPU.
  float max_rate() const { return max_rate_; }
  float total_rate() const { return total_rate_; }

  /// Nearest and farthest type of the GPUs' paths to GPUs or NICs.
  PathType MinType(NodeKind to) const;
  PathType MaxType(NodeKind to) const;
  /// All GPUs reach each other by NVLink or C2C.
  bool AllNvlink() const;
  /// Two islands of GPUs joined by something slower than NVLink.
  bool SplitNvlink() const;

  /// The nodes of that kind that `from` reaches best: highest rate, then nearest type.
  std::vector<std::uint32_t> Nearest(NodeRef from, NodeKind to) const;
  /// NIC of a GPU for a channel; nothing when the GPU reaches none.
  std::optional<std::uint32_t> LocalNet(std::uint32_t gpu, int channel) const;
  /// GPU whose own NIC this is.
  std::optional<std::uint32_t> LocalGpu(std::uint32_t net) const;
  /// The same, found once after all paths are known.
  std::optional<std::uint32_t> StoredLocalGpu(std::uint32_t net) const { return local_gpus_[net]; }
  /// GPU that forwards for a path of type PXN, else the GPU itself.
  std::uint32_t Relay(std::uint32_t gpu, std::uint32_t net) const;
  std::uint32_t LocalCpu(std::uint32_t gpu) const;

  GdrMode Gdr(std::uint32_t gpu, std::uint32_t net, bool send) const;
  /// The receiver of GPUDirect data has to read back once, so that data and flag keep their order.
  bool NeedsFlush(std::uint32_t gpu, std::uint32_t net) const;
  /// What the rank of `from` uses towards the rank of `to`; the ranks need not be part of the
  /// system any more.
  Transport TransportBetween(const RankSeat& from, const RankSeat& to) const;

 private:
  struct Peer {
    bool allowed = false;
    bool read = false;
    std::optional<std::uint32_t> via;
  };
  void FindPaths();
  void FindPathsTo(NodeRef base);
  bool MayForward(NodeRef base, NodeRef node, const SystemLink& link, std::uint32_t hops) const;
  void JoinAt(NodeRef middle, NodeRef from, NodeRef to);
  void DivertDisallowedPeers();
  void MarkC2cNets();
  void UseRelaysAndGdr();
  std::optional<std::uint32_t> RelayCandidate(std::uint32_t gpu, std::uint32_t net) const;
  void Trim(int total_ranks);
  void FindStartRates();
  Peer CheckPeer(std::uint32_t from, std::uint32_t to) const;
  bool NetIsFaster(std::uint32_t from, std::uint32_t to) const;
  bool IsBlocked(std::uint32_t a, std::uint32_t b) const;
  bool P2pPossible(std::uint32_t from, std::uint32_t to) const;
  bool ShmPossible(std::uint32_t from, std::uint32_t to) const;

  System system_;
  int own_rank_;
  PathSettings settings_;
  PathRules rules_;
  PathTable paths_;
  std::vector<std::optional<std::uint32_t>> local_gpus_;
  float max_rate_ = 0;
  float total_rate_ = 0;
};

}  // namespace windtunnel::nccl

#pragma once
// How the data of one rank reaches another on the cluster: transport, NICs, route.

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/types.h"
#include "interconnect/cluster.h"
#include "interconnect/route_choice.h"
#include "interconnect/route_pool.h"
#include "sim/number_table.h"

namespace windtunnel {

/// Immutable after construction but for its route cache; one thread.
class JobPaths {
 public:
  struct Options {
    bool peer_to_peer = true;   ///< NCCL_P2P_DISABLE=1 turns it off.
    bool shared_memory = true;  ///< NCCL_SHM_DISABLE=1 turns it off: local pairs without
                                ///< peer-to-peer use the network.
    bool gpu_direct = true;     ///< NICs reach GPU memory; else data bounce through the host.
    /// Which of equal ways through the network a pair of NICs takes. Adaptive routing is what
    /// current InfiniBand and Ethernet fabrics for training run with.
    RoutePolicy routing = RoutePolicy::kAdaptive;
    std::uint64_t seed = 1;  ///< Of the hash of kEcmp, and of ties of kAdaptive.
  };
  struct Path {
    std::uint32_t route = 0;  ///< Number: RouteOf. Equal routes have one.
    Transport transport = Transport::kLocal;
    bool by_load = false;  ///< Chosen among equal ways by those found before it.
  };
  JobPaths(const Cluster& cluster, std::vector<DeviceId> gpus, Options options);

  std::uint32_t rank_count() const { return static_cast<std::uint32_t>(gpus_.size()); }
  DeviceId gpu(Rank rank) const { return gpus_[rank]; }
  std::uint32_t node(Rank rank) const { return nodes_[rank]; }
  std::uint32_t node_count() const { return node_count_; }
  /// NICs (numbers on their nodes) at both ends; kNearest = the nearest NIC of that GPU.
  static constexpr std::uint32_t kNearest = UINT32_MAX;
  struct NicPair {
    std::uint32_t out = kNearest;
    std::uint32_t in = kNearest;
  };
  /// @throws ConfigError when there is no way, naming both GPUs.
  Path Between(Rank from, Rank to, NicPair nics);
  /// Valid until the next Between.
  std::span<const LinkId> RouteOf(const Path& path) const { return routes_.key(path.route); }
  /// The data of the two go over the network.
  bool UsesNetwork(Rank from, Rank to);
  /// Number of the NIC that comes up for `turn` when a rank uses its equally near NICs in turn.
  /// Ranks that share them begin one after the other, so that none stays idle.
  std::uint32_t NicInTurn(Rank rank, std::uint32_t turn) const;
  /// The NIC of the rank's node with this number (NicPair). @throws ConfigError without any NIC.
  DeviceId NicOf(Rank rank, std::uint32_t number) const;
  /// NICs that ranks of this node use.
  const std::vector<DeviceId>& NicsOf(Rank rank) const { return nics_[rank]; }

 private:
  struct Way {
    Transport transport = Transport::kLocal;
    Route route;
    bool by_load = false;
  };
  Way Find(Rank from, Rank to, NicPair nics);
  void FindTurns();
  struct Leg {
    enum Kind : std::uint8_t { kOut, kOutByNeighbour, kIn };
    DeviceId gpu;
    DeviceId nic;
    Kind kind;
    friend bool operator==(const Leg&, const Leg&) = default;
  };
  Route NetworkLeg(Rank rank, DeviceId nic, Leg::Kind kind);
  Route FindLegByNeighbour(DeviceId gpu, DeviceId nic) const;
  Route FindLeg(DeviceId gpu, DeviceId nic, bool sending) const;

  const Cluster& cluster_;
  std::vector<DeviceId> gpus_;
  std::vector<std::uint32_t> nodes_;
  std::uint32_t node_count_ = 1;
  std::vector<DeviceId> peer_group_;         // Per rank: equal where peer-to-peer may be possible.
  std::vector<std::vector<DeviceId>> nics_;  // Per rank, nearest first.
  struct Turns {
    std::vector<DeviceId> nics;  // Equally near ones, by number.
    std::size_t first = 0;
  };
  std::vector<Turns> turns_;  // Per rank.
  Options options_;
  RouteChooser chooser_;
  struct Key {
    Rank from;
    Rank to;
    std::uint32_t out;
    std::uint32_t in;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::uint64_t operator()(const Key& key) const {
      const std::uint64_t hash = MixHash(0, std::uint64_t{key.out} << 32 | key.in);
      return NearHash(MixHash(hash, key.from), key.to);
    }
  };
  NumberTable<Key, KeyHash> known_;
  struct LegHash {
    std::uint64_t operator()(const Leg& leg) const {
      return MixHash(leg.kind, std::uint64_t{leg.gpu} << 32 | leg.nic);
    }
  };
  NumberTable<Leg, LegHash> known_legs_;
  std::vector<Route> legs_;  // By number.
  RoutePool routes_;
  struct Entry {
    Path path;
    bool known = false;  // False when there was none.
  };
  std::vector<Entry> found_;  // By number.
};

}  // namespace windtunnel

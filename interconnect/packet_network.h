#pragma once
// The packet level: frames with headers, credits and arbitration on every link of a topology,
// inside the SystemC kernel.

#include <map>
#include <memory>

#include "interconnect/background_traffic.h"
#include "interconnect/network.h"
#include "interconnect/packet_engine.h"
#include "interconnect/tcp/grpc_framing.h"
#include "interconnect/topology.h"

namespace windtunnel {

/// Moves messages over the links of a topology. How each kind of link and device behaves is in
/// `Options` and in LinkWireFormat; docs/packet-level.md lists what is modelled and what is not.
///
/// Contract: one thread, one run at a time (the SystemC kernel lives once per process). Several
/// networks may exist side by side and run in turn.
class PacketNetwork final : public Network {
 public:
  /// Ways of the further queue pairs of a connection between its first and its last network switch,
  /// among those as short and as wide as the caller's; the first keeps the caller's.
  enum class QueuePairPaths : std::uint8_t {
    kAuto,  ///< kHash on RoCE and Ethernet, which hash UDP and TCP ports; else kSame, as forwarding
            ///< tables go by destination.
    kSame,
    kHash,  ///< By a seeded hash, as ECMP: some may meet.
    kEven   ///< In turn over all: what adaptive routing by packet comes to.
  };
  struct Options {
    BurstOptions burst;
    /// Ports take turns, as in switches; `kRoutes` is nearer to arbiters that go by age of packets
    /// (Abts and Weisser, "Age-Based Packet Arbitration in Large-Radix k-ary n-cubes", SC 2007;
    /// recalled).
    Arbitration arbitration = Arbitration::kPorts;
    /// Room at the receiver of each link, per virtual channel; 0 = `PacketEngine::kPortBuffer`, and
    /// twice what the link's own length holds.
    Bytes link_buffer;
    /// Network switches send a frame on when its header is in; false: when it is in whole. NVLink
    /// and PCIe always cut through.
    bool network_cut_through = true;
    /// Share of the frames of these links that arrive broken. Network links drop them and the
    /// source sends again (`retry`); NVLink and PCIe replay them by themselves.
    std::map<LinkId, double> error_rates;
    RetryOptions retry;
    /// RoCE links: pause frames, congestion marks, and what queue pairs do about marks. Without
    /// `pfc` a switch that is full drops.
    PfcOptions pfc;
    EcnOptions ecn;
    DcqcnOptions dcqcn;
    /// DCQCN acts on paths whose first network link is slower than this. As published NCCL clusters
    /// run: with it up to 200 Gb/s, with PFC and NCCL's own receiver credits alone at 400 Gb/s
    /// (Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM
    /// 2024; recalled, not read again).
    BitsPerSecond dcqcn_below = GigabitsPerSecond(400);
    /// Ethernet links that speak TCP. Off: the measured constants of NCCL's sockets hold window and
    /// CPU already, and connections are warm.
    TcpOptions tcp;
    GrpcOptions grpc;
    /// Of every connection over a network: bytes sent and not acknowledged; 0 = any number.
    Bytes window;
    /// Or this many times what its path holds; 0 = no.
    double window_paths = 0;
    NicOptions nic;
    QueuePairPaths queue_pair_paths = QueuePairPaths::kAuto;
    /// Packet memory of a network switch; 0 = attribute "buffer" of the switch, else that of its
    /// model in the catalogue, else `kDefaultSwitchBuffer` and at least `kBufferPerPort` a port.
    Bytes switch_buffer;
    /// Largest further delay of a message over a network, drawn evenly from 0 on.
    Picoseconds jitter;
    /// Traffic of others while a run lasts; its bytes count in `link_use`. Seed: `retry.seed`.
    std::vector<BackgroundFlow> background;
    /// Virtual channels a link with credits may have, 1 to 16. A route changes channel where its
    /// credits would wait in a circle (torus, ring); elsewhere all use the first. InfiniBand has up
    /// to 15 data lanes, adapters commonly 8 (IBA vol. 1, 7.6).
    std::uint32_t virtual_channels = 8;
    /// Times at which links carry nothing.
    std::map<LinkId, std::vector<Outage>> outages;
    /// Time of a switch's reduction unit from the last operand's arrival. ASSUMED.
    Picoseconds reduce_latency = Nanoseconds(100);
  };

  /// As in the simulations of HPCC (BUFFER_SIZE 32): a 3.2 Tb/s switch of 2016.
  static constexpr Bytes kDefaultSwitchBuffer{32'000'000};
  /// ASSUMED for stand-ins of any number of ports: what Tomahawk 4 has for each of 64, halved.
  static constexpr Bytes kBufferPerPort{900'000};
  /// Of a NIC port. ASSUMED: more than any head-room, as receivers of lossless traffic need.
  static constexpr Bytes kNicBuffer{4'000'000};

  /// With the options that the topology names (`PacketOptionsOf`).
  /// @throws ConfigError for links without rate.
  explicit PacketNetwork(const Topology& topology);
  PacketNetwork(const Topology& topology, const Options& options);
  ~PacketNetwork() override;

  std::string_view name() const override { return "packet"; }
  /// @throws ConfigError when the links do not form a chain or one of them is down.
  RouteId AddRoute(const Route& route) override;
  GroupId AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                   std::span<const DeviceId> members) override;
  void Send(RouteId route, Bytes size, std::uint64_t token) override;
  void SendGroup(GroupId group, Bytes size, std::uint64_t token) override;
  void set_client(NetworkClient* client) override;
  EventQueue& queue() override;
  void EndOfRun() override;
  std::span<const LinkUse> link_use() const override;
  std::uint64_t open_messages() const override;
  std::string DescribeStall() const override;
  void Reset() override;
  /// @throws SimulationError when nothing moves any more and messages are open.
  void RunToIdle() override;

  /// Observes every occupation of a wire, by link of the topology; nullptr = nobody.
  void set_observer(WireObserver* observer);
  /// Coarser or finer bursts for the next run. Contract: idle.
  void set_burst_options(const BurstOptions& options);
  /// A model of the user's own for a device that traffic passes (a switch, a NIC): see
  /// docs/own-model.md. nullptr = none. `model` outlives the runs.
  void BindModel(DeviceId device, PassageModel* model);
  /// The `frame`-th frame (from 0) onto `link` in the next run arrives broken, once.
  void BreakFrame(LinkId link, std::uint64_t frame);
  const Options& options() const;
  /// Frames sent since the last Reset, summed over links.
  std::uint64_t packets() const;
  const PacketEngine& engine() const;
  /// Places where credits can wait in a circle in spite of the virtual channels.
  std::uint64_t credit_circles() const;

 private:
  void AddBackground();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windtunnel

#include "validate/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace windtunnel::validate {
namespace {

using timing::Algorithm;
using timing::CallFacts;
using timing::FabricConstants;

// Plausibility before the curve is seen, in nats. ASSUMED: transport, slots and paths are common
// causes, MTU and missing devices rare ones.
constexpr double kCommon = -2.0;
constexpr double kUsual = -2.7;
constexpr double kRare = -3.4;
constexpr double kSpokenFor = 1.5;  // The run's own text names the thing.

// One TCP stream of one core carries 20 to 40 Gb/s on servers of 2018 to 2025. ASSUMED: half a
// stream, one and two per NIC.
constexpr double kTcpRates[] = {1.25, 2.5, 5.0};
// One way through the sockets transport: two system calls, an interrupt, the proxy's poll. ASSUMED.
constexpr double kTcpSmallHopUs = 18;
constexpr double kTcpLargeHopUs = 45;
constexpr double kTcpMessageUs = 5;

// Share of a slot's rate that DMA of a NIC reaches; TLP headers of 24 bytes per 256 leave 0.91,
// read requests and flow control the rest. ASSUMED.
constexpr double kSlotShare = 0.85;
struct Slot {
  double raw_gbps;  // One direction, after 128b/130b.
  std::string_view name;
};
constexpr Slot kSlots[] = {{31.5, "PCIe 4.0 x16 or 5.0 x8"},
                           {15.75, "PCIe 3.0 x16, 4.0 x8 or 5.0 x4"},
                           {7.88, "PCIe 3.0 x8 or 4.0 x4"},
                           {3.94, "PCIe 3.0 x4 or 4.0 x2"}};

// Headers of a RoCE v2 packet on the wire: preamble and gap 20, Ethernet 18, IPv4 20, UDP 8, BTH
// 12, ICRC 4. Source: IBTA annex A17, IEEE 802.3.
constexpr double kPacketOverhead = 82;
constexpr double kUsualMtu = 4096;
constexpr double kGeforceMtu = 1024;  // What the plateau of class roce-host was read at.

// What two sockets pass on to devices, GB/s: NCCL's figures for links between processors
// (Skylake, Sapphire Rapids, AMD Rome, Emerald Rapids), of which a flow reaches this share. The
// share is ASSUMED.
constexpr double kSocketLinks[] = {10, 16, 22, 40};
constexpr double kSocketShare = 0.85;
// Per hop, for the way over the other socket: read off one run with a NIC picked by hand (H200,
// RoCE, two nodes), so for that run it is no test.
constexpr double kFarHopUs = 8;
// Per hop, for the copy into host memory and back. ASSUMED: one PCIe round trip each.
constexpr double kBounceHopUs = 3;

// How much later a hop is by a proxy that waits for a core. ASSUMED.
constexpr double kFarHops[] = {5, 10, 20, 40};
// What is left of the NIC when Simple's way to GPU memory is broken. ASSUMED.
constexpr double kSimpleLeft[] = {0.25, 0.0625, 0.03125, 0.015625};

double PcieOf(const Platform& platform, const MeasuredRun& run) {
  if (run.pcie_gen >= 5) return 63.0;
  if (run.pcie_gen == 4) return 31.5;
  if (run.pcie_gen > 0) return 15.75;
  const std::string& gpu = platform.facts.gpu_class;
  return gpu == "h100" || gpu == "b200" ? 63.0 : gpu == "a100" ? 31.5 : 15.75;
}

void Cap(FabricConstants& fabric, double gbps) {
  fabric.nic_limit_gbps = fabric.nic_limit_gbps > 0 ? std::min(fabric.nic_limit_gbps, gbps) : gbps;
}

/// Slower by a factor whatever limits the NIC.
void ScaleNic(FabricConstants& fabric, double factor) {
  fabric.nic_share *= factor;
  fabric.nic_limit_gbps *= factor;
}

class Catalogue {
 public:
  Catalogue(const Platform& platform, const MeasuredRun& run, const std::vector<CallFacts>& healthy,
            const timing::TimingConstants& constants)
      : platform_(platform), run_(run), facts_(platform.facts), constants_(constants) {
    for (const CallFacts& call : healthy) {
      algorithms_.insert(call.algorithm);
      protocols_.insert(call.protocol);
    }
    point_to_point_ =
        facts_.function == Function::kAllToAll || facts_.function == Function::kSendRecv;
    Add({.name = "healthy", .meaning = "the machine as described"});
    if (facts_.nodes > 1) {
      Transport();
      NicRates();
      NicPaths();
      WrongNic();
      Hints();
    } else {
      InNode();
    }
    Choices();
    Add({.name = "stalls",
         .meaning = "both ends of the curve are right, sizes between are late by amounts that "
                    "scatter: lost packets, pause frames, full buffers",
         .check = "retransmissions, out_of_sequence and pause counters of NICs and switch ports; "
                  "repeat the sizes alone and look at the slowest repeat",
         .prior = kUsual,
         .statistical = true});
  }
  std::vector<Fault> Take() { return std::move(faults_); }

 private:
  void Add(Fault fault) { faults_.push_back(std::move(fault)); }

  bool Named(const char* variable) const { return run_.environment.contains(variable); }
  bool Verbs() const {
    return facts_.fabric_class.starts_with("ib") || facts_.fabric_class.starts_with("roce");
  }
  double Nominal() const { return ToGigabytesPerSecond(facts_.nic_rate); }

  static void Rename(Platform& platform, const std::string& setting) {
    platform.name += " [" + setting + "]";
  }

  void Transport() {
    const std::string& fabric = facts_.fabric_class;
    if (fabric == "sockets" || fabric == "tcpx" || fabric == "tcpxo") return;
    for (const bool one : {false, true}) {
      if (one && facts_.nics_per_node < 2) continue;
      for (const double rate : kTcpRates) {
        if (rate > 0.7 * Nominal()) continue;
        Add({.name = one ? "no-net-plugin" : "tcp-fallback",
             .setting = fmt::format("{:g} GB/s of TCP per NIC{}", rate, one ? ", one NIC" : ""),
             .meaning = one ? "no network plugin in the container: TCP sockets over one interface"
                            : "TCP sockets in place of RDMA over the same NICs",
             .check = "NCCL_DEBUG=INFO: \"NET/Socket : Using\" where \"NET/IB\" or \"NET/OFI\" is "
                      "expected; is the plugin in the container, are /dev/infiniband or the "
                      "fabric's libraries there?",
             .prior = one ? kUsual : kCommon,
             .machine =
                 [one](Platform& platform, MeasuredRun&) {
                   platform.facts.fabric_class = "sockets";
                   if (one) platform.facts.nics_per_node = 1;
                   Rename(platform, one ? "tcp, one nic" : "tcp");
                 },
             .call =
                 [rate](CallFacts&, FabricConstants& constants) {
                   constants.ll_hop_us = constants.ll128_hop_us = kTcpSmallHopUs;
                   constants.simple_hop_us = kTcpLargeHopUs;
                   constants.message_us = kTcpMessageUs;
                   constants.nic_share = 1;
                   constants.ll_wire_gbps = rate;
                   Cap(constants, rate);
                 }});
      }
    }
  }

  void NicRates() {
    const auto scaled = [this](std::string name, std::string setting, std::string meaning,
                               std::string check, double prior, double factor) {
      Add({.name = std::move(name),
           .setting = std::move(setting),
           .meaning = std::move(meaning),
           .check = std::move(check),
           .prior = prior,
           .call = [factor](CallFacts&, FabricConstants& fabric) { ScaleNic(fabric, factor); }});
    };
    for (const int part : {2, 4})
      scaled("slow-nic", fmt::format("1/{} of its rate", part),
             "one NIC is slow; rings and trees wait for the slowest channel",
             "ib_write_bw per NIC; link speed and width in ibstat or ethtool", kUsual, 1.0 / part);
    for (const Slot& slot : kSlots) {
      const double rate = kSlotShare * slot.raw_gbps;
      if (rate > 0.8 * Nominal()) continue;
      Add({.name = "slow-slot",
           .setting = std::string(slot.name),
           .meaning = "NICs in slots of less width or generation than they need",
           .check = "LnkSta in lspci -vv of NIC and GPU: speed or width \"downgraded\"",
           .prior = kUsual,
           .call = [rate](CallFacts&, FabricConstants& fabric) { Cap(fabric, rate); }});
    }
    if (facts_.nics_per_node > 1) {
      for (const std::uint32_t left :
           std::set<std::uint32_t>{facts_.nics_per_node - 1, facts_.nics_per_node / 2}) {
        Add({.name = "missing-nic",
             .setting = fmt::format("{} of {} NICs", left, facts_.nics_per_node),
             .meaning = "NICs are down or not seen; the search finds fewer channels",
             .check = "NCCL_DEBUG=INFO: count the devices after \"NET/IB : Using\"",
             .prior = kRare,
             .machine = [left](Platform& platform, MeasuredRun&) {
               platform.facts.nics_per_node = left;
               Rename(platform, fmt::format("{} nics", left));
             }});
      }
    }
    if (Verbs()) {
      const double base = facts_.fabric_class == "roce-host" ? kGeforceMtu : kUsualMtu;
      for (const double mtu : {256.0, 512.0, 1024.0}) {
        if (mtu >= base) continue;
        const double factor = (mtu / (mtu + kPacketOverhead)) / (base / (base + kPacketOverhead));
        scaled("small-mtu", fmt::format("{:g} bytes", mtu),
               "packets of a small MTU: more of the wire goes to headers, latency stays",
               "active_mtu in ibv_devinfo, MTU of the Ethernet interface and of the switch",
               Has(run_.nic, "MTU") ? kRare + kSpokenFor : kRare, factor);
      }
    }
    if (facts_.gpus_per_node() == 1 && facts_.nics_per_node > 1) {
      const double share = kSlotShare * PcieOf(platform_, run_) / facts_.nics_per_node;
      Add({.name = "one-gpu-limit",
           .setting = fmt::format("PCIe {:g} GB/s", PcieOf(platform_, run_)),
           .meaning = "no fault: the PCIe link of the single GPU cannot fill several NICs",
           .check = "nothing: use one NIC, or all GPUs of the node",
           .prior = kCommon,
           .call = [share](CallFacts&, FabricConstants& fabric) { Cap(fabric, share); }});
    }
  }

  void NicPaths() {
    const double pcie = PcieOf(platform_, run_);
    const double gpus = facts_.gpus_per_node();
    const double nics = facts_.nics_per_node;
    if (Verbs() && facts_.fabric_class != "roce-host" && facts_.fabric_class != "ib-pcie3") {
      for (const double part : {1.0, 0.5}) {
        const double rate =
            part * constants_.shared().pcie_host_share * pcie * std::max(1.0, gpus / nics);
        Add({.name = "gdr-off",
             .setting = rate < Nominal()
                            ? fmt::format("{:.0f} GB/s a NIC through host memory", rate)
                            : "through host memory, NICs still at their rate",
             .meaning = "no GPUDirect RDMA: data pass through host memory on both sides",
             .check = "NCCL_DEBUG=INFO: channels \"via NET/IB/0\" without \"/GDRDMA\"; is "
                      "nvidia_peermem loaded, is the IOMMU or ACS on?",
             .prior = kCommon,
             .call = [rate](CallFacts&, FabricConstants& fabric) {
               fabric.ll_hop_us += kBounceHopUs;
               fabric.ll128_hop_us += kBounceHopUs;
               fabric.simple_hop_us += kBounceHopUs;
               Cap(fabric, rate);
             }});
      }
    }
    const bool by_hand = gpus == 1 && (Named("NCCL_IB_HCA") || Has(run_.nic, "chosen by name") ||
                                       Has(run_.nic, "selected"));
    for (const double socket : kSocketLinks) {
      const double rate = kSocketShare * socket;
      if (rate > 0.9 * Nominal()) continue;
      Add({.name = "far-nic",
           .setting = fmt::format("{:g} GB/s between sockets", socket),
           .meaning = "GPU and NIC hang at different sockets or root ports",
           .check = "nvidia-smi topo -m: SYS or NODE between the GPU and the NIC in use; the "
                    "\"GPU Direct RDMA Disabled ... distance\" lines of NCCL_DEBUG=INFO",
           .prior = by_hand ? kCommon + kSpokenFor : kCommon,
           .call = [rate](CallFacts&, FabricConstants& fabric) {
             fabric.ll_hop_us += kFarHopUs;
             fabric.ll128_hop_us += kFarHopUs;
             fabric.simple_hop_us += kFarHopUs;
             Cap(fabric, rate);
           }});
    }
    if (point_to_point_) return;
    // Where NVLS runs, it hides the choice between LL128 and Simple; it may be off as well.
    const bool nvls = algorithms_.contains(Algorithm::kNvlsTree) && !Named("NCCL_NVLS_ENABLE");
    for (const bool without_nvls : {false, true}) {
      if (without_nvls && !nvls) continue;
      for (const double left : kSimpleLeft) {
        Add({.name = "simple-path-collapse",
             .setting = fmt::format("Simple at 1/{:.0f} of the NIC{}", 1 / left,
                                    without_nvls ? ", no NVLS" : ""),
             .meaning = "the path of the Simple protocol collapses, LL and LL128 are right: GPU "
                        "memory is reached by a broken way (ACS, IOMMU, wrong root port)",
             .check = "repeat with NCCL_PROTO=LL128 and with NCCL_NET_GDR_LEVEL=LOC: the one that "
                      "restores the rate names the path",
             .prior = kUsual,
             .machine =
                 [without_nvls](Platform&, MeasuredRun& run) {
                   if (without_nvls) run.environment["NCCL_NVLS_ENABLE"] = "0";
                 },
             .call =
                 [left, nominal = Nominal()](CallFacts& facts, FabricConstants& fabric) {
                   if (facts.protocol == Protocol::kSimple) Cap(fabric, left * nominal);
                 }});
      }
    }
  }

  /// All GPUs of a node are led to one NIC: the search finds two channels and no more.
  void WrongNic() {
    if (facts_.nics_per_node < 2) return;
    Add({.name = "wrong-nic",
         .setting = "one NIC for all GPUs, two channels",
         .meaning = "every GPU uses the same NIC (NCCL_IB_HCA names one, or names were taken for "
                    "places), so rings have two channels",
         .check = "NCCL_DEBUG=INFO: channels \"via NET/IB/n\" with one n; count of \"Channel\" "
                  "lines; NCCL_IB_HCA on every rank",
         .prior = Named("NCCL_IB_HCA") ? kUsual + kSpokenFor : kUsual,
         .machine = [](Platform& platform, MeasuredRun& run) {
           platform.facts.nics_per_node = 1;
           run.environment["NCCL_MAX_NCHANNELS"] = "2";
           Rename(platform, "one nic");
         }});
  }

  void Hints() {
    for (const double factor : kFarHops) {
      Add({.name = "no-topology-hints",
           .setting = fmt::format("hops x {:g}", factor),
           .meaning =
               "a pod or virtual machine that hides the bus: proxies run on few or far cores "
               "and NICs are far, so every network hop is late; many channels hide it in the "
               "plateau",
           .check = "NCCL_DEBUG_SUBSYS=GRAPH: PHB or SYS between all devices; NCCL_TOPO_FILE; CPU "
                    "limits and affinity of the container (\"Setting affinity for GPU\")",
           .prior = kUsual,
           .call = [factor](CallFacts&, FabricConstants& fabric) {
             fabric.ll_hop_us *= factor;
             fabric.ll128_hop_us *= factor;
             fabric.simple_hop_us *= factor;
           }});
    }
  }

  void InNode() {
    const bool nvlink = facts_.path == timing::InNodePath::kNvlink;
    if (!nvlink) {
      for (const int part : {2, 4, 8, 16}) {
        for (const bool host : {false, true}) {
          if (host && facts_.path == timing::InNodePath::kPcieHost) continue;
          Add({.name = "slow-pcie",
               .setting = fmt::format("1/{} of the width{}", part, host ? ", host memory" : ""),
               .meaning = "GPUs in slots of less width or generation than stated",
               .check = "LnkSta in lspci -vv under load; p2pBandwidthLatencyTest",
               .prior = host ? kUsual : kCommon,
               .machine = [part, host](Platform& platform, MeasuredRun&) {
                 platform.facts.link_rate = BitsPerSecond(platform.facts.link_rate.count() / part);
                 if (host) {
                   platform.facts.path = timing::InNodePath::kPcieHost;
                   Rename(platform, "host memory");
                 }
               }});
        }
      }
    }
    if (facts_.path != timing::InNodePath::kPcieHost) {
      const double rate = nvlink && facts_.gpu_class != "pcie" ? PcieOf(platform_, run_)
                          : nvlink                             ? PcieOf(platform_, run_)
                                   : ToGigabytesPerSecond(facts_.link_rate);
      for (const double part : {1.0, 0.5}) {
        Add({.name = "p2p-off",
             .setting = part == 1 ? "" : "two GPUs share an uplink",
             .meaning = "no peer-to-peer access: copies through shared memory of the host",
             .check =
                 "NCCL_DEBUG=INFO: \"via SHM\" where \"via P2P\" is expected; NCCL_P2P_DISABLE, "
                 "ACS, containers with separate IPC, IOMMU",
             .prior = kCommon,
             .machine = [rate, part](Platform& platform, MeasuredRun&) {
               platform.facts.path = timing::InNodePath::kPcieHost;
               platform.facts.link_rate = FromGigabytesPerSecond(rate * part);
               platform.switched = false;
               Rename(platform, "shared memory");
             }});
      }
    }
    if (nvlink && facts_.link_rate.count() > 0) {
      for (const double left : {0.5, 0.75}) {
        Add({.name = "fewer-nvlinks",
             .setting = fmt::format("{:.0f} % of the links", 100 * left),
             .meaning = "NVLinks are down",
             .check = "nvidia-smi nvlink -s: inactive links; fabric manager's log",
             .prior = kRare,
             .machine = [left](Platform& platform, MeasuredRun&) {
               platform.facts.link_rate = BitsPerSecond(static_cast<std::uint64_t>(
                   static_cast<double>(platform.facts.link_rate.count()) * left));
             }});
      }
    } else if (!nvlink) {
      for (const double socket : kSocketLinks) {
        const double rate = kSocketShare * socket / constants_.shared().pcie_host_share;
        if (rate > 0.9 * ToGigabytesPerSecond(facts_.link_rate)) continue;
        Add({.name = "cross-socket",
             .setting = fmt::format("{:g} GB/s between sockets", socket),
             .meaning = "neighbours of the ring hang at different sockets",
             .check = "nvidia-smi topo -m: SYS between GPUs",
             .prior = kUsual,
             .machine = [rate](Platform& platform, MeasuredRun&) {
               platform.facts.path = timing::InNodePath::kPcieHost;
               platform.facts.link_rate = FromGigabytesPerSecond(rate);
               Rename(platform, "cross socket");
             }});
      }
    }
  }

  void Force(std::string name, const char* variable, const char* value, std::string meaning) {
    if (Named(variable)) return;
    Add({.name = std::move(name),
         .setting = fmt::format("{}={}", variable, value),
         .meaning = std::move(meaning),
         .check = "env | grep NCCL on every rank, nccl.conf, tuner plugins (\"Using tuner plugin\" "
                  "in NCCL_DEBUG=INFO)",
         .prior = kRare,
         .machine = [variable, value](Platform&, MeasuredRun& run) {
           run.environment[variable] = value;
         }});
  }

  void Choices() {
    if (point_to_point_) {
      if (facts_.nodes > 1) {
        const std::string meaning =
            "sends use one channel towards each peer; one channel cannot fill the NIC";
        const std::string check =
            "NCCL_NCHANNELS_PER_NET_PEER, NCCL_IB_QPS_PER_CONNECTION, release of NCCL";
        Add({.name = "few-peer-channels",
             .setting = "one channel per peer",
             .meaning = meaning,
             .check = check,
             .prior = kCommon,
             .call = [](CallFacts& facts, FabricConstants&) { facts.peer_parts = 1; }});
        // A channel's block moves more than the rate NCCL plans a channel at.
        const double block = constants_.Gpu(facts_.gpu_class).network_simple_gbps;
        Add({.name = "few-peer-channels",
             .setting = fmt::format("one channel per peer, {:g} GB/s", block),
             .meaning = meaning,
             .check = check,
             .prior = kCommon,
             .call = [cap = block / constants_.shared().pair_share](
                         CallFacts&, FabricConstants& fabric) { Cap(fabric, cap); }});
      }
    } else {
      const bool all_reduce = facts_.function == Function::kAllReduce;
      for (const auto& [id, name] :
           {std::pair{Algorithm::kRing, "Ring"}, std::pair{Algorithm::kTree, "Tree"}}) {
        if (algorithms_ == std::set<Algorithm>{id}) continue;
        if (all_reduce)
          Force("wrong-algorithm", "NCCL_ALGO", name,
                "another algorithm than NCCL's own choice at some sizes");
      }
      // Tuners and plugins with tables for powers of two leave other jobs without trees.
      if (all_reduce && !std::has_single_bit(facts_.nodes) &&
          algorithms_ != std::set<Algorithm>{Algorithm::kRing})
        Force(
            "no-trees", "NCCL_ALGO", "Ring",
            fmt::format("trees for powers of two only: {} nodes fall back to rings", facts_.nodes));
      for (const char* name : {"LL", "LL128", "Simple"})
        Force("wrong-protocol", "NCCL_PROTO", name,
              "another protocol than NCCL's own choice at some sizes");
      for (const char* count : {"1", "2", "4"})
        Force("few-channels", "NCCL_MAX_NCHANNELS", count,
              "fewer channels than NICs and links need");
      if (algorithms_.contains(Algorithm::kNvls) || algorithms_.contains(Algorithm::kNvlsTree))
        Force("nvls-off", "NCCL_NVLS_ENABLE", "0",
              "sums in the NVSwitch are off: fabric manager without multicast, or the variable");
    }
    if (facts_.launch != timing::Launch::kOneThread && facts_.gpus_per_node() > 1) {
      Add({.name = "one-thread-launch",
           .setting = fmt::format("{} GPUs a thread", facts_.gpus_per_node()),
           .meaning = "one thread launches on all GPUs of a node in turn: small calls wait for it",
           .check = "nccl-tests -g N: use -t N or one process per GPU",
           .prior = kCommon,
           .machine = [](Platform& platform, MeasuredRun&) {
             platform.facts.launch = timing::Launch::kOneThread;
             platform.facts.gpus_per_thread = platform.facts.gpus_per_node();
           }});
    }
  }

  static bool Has(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
  }

  const Platform& platform_;
  const MeasuredRun& run_;
  const CallFacts& facts_;
  const timing::TimingConstants& constants_;
  std::set<Algorithm> algorithms_;
  std::set<Protocol> protocols_;
  bool point_to_point_ = false;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> FaultsOf(const Platform& platform, const MeasuredRun& run,
                            const std::vector<timing::CallFacts>& healthy,
                            const timing::TimingConstants& constants) {
  return Catalogue(platform, run, healthy, constants).Take();
}

std::vector<std::string> FaultsOfLabel(const std::string& label) {
  // A container without its plugin falls back to TCP as well.
  if (label == "tcp-fallback") return {"tcp-fallback", "no-net-plugin"};
  return {label};
}

}  // namespace windtunnel::validate

#include "validate/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "sim/parse_units.h"

namespace windtunnel::validate {
namespace {

std::string Lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool Has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

/// First number that a pattern captures.
std::optional<double> Number(const std::string& text, const char* pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) return std::nullopt;
  return std::stod(match[1]);
}

struct Nics {
  double gbps = 0;  // One NIC, nominal, GB/s.
  double count = 1;
  bool counted = false;  // The text names the count.
};

/// Rate and count of the NICs of a node, out of text such as "8 x ConnectX-7 NDR 400 Gb/s". The
/// case of the b counts: "46 GB/s" beside it is somebody's plateau.
Nics ReadNics(const std::string& raw) {
  Nics nics;
  const std::string nic = Lower(raw);
  if (const auto gbit = Number(raw, R"((\d+(?:\.\d+)?) ?(?:Gb/s|Gbit|GbE|Gbps))")) {
    nics.gbps = *gbit / 8;
  } else if (Has(nic, "ndr") || Has(nic, "connectx-7") || Has(nic, "bluefield-3")) {
    nics.gbps = 50;
  } else if (Has(nic, "hdr") || Has(nic, "slingshot")) {
    nics.gbps = 25;
  } else if (Has(nic, "edr") || Has(nic, "100 gb")) {
    nics.gbps = 12.5;
  }
  if (const auto count = Number(nic, R"((\d+) x )")) {
    nics.count = *count;
    nics.counted = true;
  } else if (const auto named = Number(nic, R"((\d+) nics?)")) {
    nics.count = *named;
    nics.counted = true;
  }
  if (Has(nic, "both nodes together")) nics.count /= 2;
  return nics;
}

/// What carries messages between nodes. `gpu_class` and host decide how GPU memory is reached.
std::string FabricClass(const std::string& nic, const MeasuredRun& run,
                        const std::string& gpu_class, double nic_gbps) {
  const auto variable = [&](const char* name) {
    const auto it = run.environment.find(name);
    return it == run.environment.end() ? std::string() : Lower(it->second);
  };
  const std::string interconnect = Lower(run.interconnect);
  if (variable("NCCL_NET") == "socket" || Has(nic, "socket") || Has(nic, "virtual ethernet"))
    return "sockets";
  if (Has(interconnect, "nvl72")) return "nvl72-ib";
  if (Has(nic, "tcpxo") || Has(nic, "fastrak")) return "tcpxo";
  if (Has(nic, "tcpx")) return "tcpx";
  if (Has(nic, "efa"))
    return gpu_class == "a100"                          ? "efa-p4d"
           : gpu_class == "h100" || gpu_class == "b200" ? "efa-p5"
                                                        : "efa-host";
  if (Has(nic, "slingshot") || Has(nic, "cxi")) {
    return Has(Lower(run.cpu), "grace") || Has(Lower(run.gpu), "gh200") ? "slingshot-grace"
                                                                        : "slingshot-cpu";
  }
  const bool geforce = Has(Lower(run.gpu), "rtx") && !Has(Lower(run.gpu), "6000");
  if (geforce) return "roce-host";
  // "gIB" is Google's RoCE; "GiB/s" in any spelling is a rate.
  if (Has(nic, "roce") || Has(run.nic, "gIB") || Has(nic, "bluefield") || Has(interconnect, "roce"))
    return "roce";
  if (gpu_class == "pcie" && run.pcie_gen <= 3) return "ib-pcie3";
  // InfiniBand, or not stated: at 400 Gb/s and at 200 Gb/s.
  return nic_gbps >= 50 ? "ib-ndr" : "ib-hdr";
}

FabricGroup GroupOf(const std::string& fabric) {
  for (const char* known : {"ib-ndr", "ib-hdr", "roce", "roce-host", "ib-pcie3", "nvl72-ib"})
    if (fabric == known) return FabricGroup::kInfinibandRoce;
  return FabricGroup::kCloudTransport;
}

double PcieGbps(const MeasuredRun& run, const std::string& gpu) {
  std::uint32_t gen = run.pcie_gen;
  if (gen == 0) {
    gen = 3;
    for (const char* fourth :
         {"rtx 30", "rtx 40", "rtx30", "rtx40", "a10", "a30", "a40", "l4", "rtx3090", "rtx4090"})
      if (Has(gpu, fourth)) gen = 4;
    for (const char* fifth : {"h100", "rtx 6000d", "b200"})
      if (Has(gpu, fifth)) gen = 5;
  }
  // After 128b/130b encoding, x16, one direction.
  return gen >= 5 ? 63.0 : gen == 4 ? 31.5 : 15.75;
}

std::string TopologyName(const MeasuredRun& run, const std::string& gpu_class,
                         const std::string& fabric, bool switched) {
  const std::string gpu = Lower(run.gpu);
  const std::string all =
      Lower(run.gpu + " " + run.interconnect + " " + run.nic + " " + run.source + " " + run.id);
  const bool azure = Has(all, "azure") || Has(all, "nd a100") || Has(all, "nd h100") ||
                     Has(all, "nd h200") || Has(Lower(run.notes), "azure nd a100");
  if (Has(Lower(run.interconnect), "nvl72") || Has(gpu, "gb200") || Has(gpu, "gb300"))
    return "gb200-nvl72";
  if (gpu_class == "b200")
    return Has(run.nic, "gIB") || Has(all, "a4-high") || Has(all, "gcp-a4") ? "gcp-a4" : "hgx-b200";
  if (Has(gpu, "gh200")) return fabric == "slingshot-grace" ? "alps-gh200" : "gh200x4";
  if (gpu_class == "h100") {
    if (fabric == "tcpx") return "gcp-a3-high";
    if (fabric == "tcpxo") return "gcp-a3-mega";
    if (fabric == "efa-p5") return Has(gpu, "h200") ? "aws-p5en" : "aws-p5";
    if (azure) return "azure-ndv5";
    return Has(gpu, "h200") ? "hgx-h200" : "hgx-h100";
  }
  if (gpu_class == "a100") {
    if (fabric == "efa-p4d") return "aws-p4d";
    if (fabric == "slingshot-cpu") return "polaris-a100";
    if (azure) return "azure-ndv4";
    return switched ? "dgx-a100" : "hgx-a100-4";
  }
  if (gpu_class == "v100") {
    if (Has(all, "p3dn")) return "aws-p3dn";
    return switched ? "dgx2-v100" : "dgx1-v100";
  }
  if (gpu_class == "p100") return "dgx1-p100";
  // Boards on PCIe: a server of the board where one is shipped.
  for (const auto& [board, topology] :
       {std::pair{"rtx 2080", "pcie-2x-rtx2080ti"}, std::pair{"rtx 4090", "pcie-4x-rtx4090"},
        std::pair{"rtx 3090", "pcie-8x-rtx3090"}, std::pair{"l40s", "pcie-l40s"},
        std::pair{"t4", "pcie-t4"}, std::pair{"v100", "pcie-v100"}, std::pair{"h100", "pcie-h100"}})
    if (Has(gpu, board)) return topology;
  return "pcie";
}

/// Collections whose runs do not say who launches, but whose scripts do: one thread drives all GPUs
/// of a node. Sources: Azure/AI-benchmarking-guide, Benchmarks/NCCLBandwidth.py
/// (`all_reduce_perf -b 8 -e 8G -f 2 -g 8`); uuudown/Tartan, microbenchmark/scale_up_cl/nccl-v2/
/// run_test.py (`-g 8`).
constexpr std::string_view kOneThreadSources[] = {"Azure/AI-benchmarking-guide", "uuudown/Tartan"};

void ReadLaunch(const MeasuredRun& run, timing::CallFacts& facts) {
  const auto threads = Number(run.command, R"(-t +(\d+))");
  if (threads && *threads > 1) return;  // A thread for each GPU.
  const auto gpus = Number(run.command, R"(-g +(\d+))");
  const auto noted = Number(run.notes, R"(-g +(\d+))");
  const bool known = std::any_of(std::begin(kOneThreadSources), std::end(kOneThreadSources),
                                 [&](std::string_view name) { return Has(run.source, name); });
  const bool told = known || Has(Lower(run.notes + " " + run.command), "single process");
  double driven = 1;
  if (gpus) {
    driven = *gpus;
  } else if (noted) {
    driven = *noted;
  } else if (run.launch == "single_process" || told) {
    driven = std::min(run.ranks, run.gpus_per_node);
  }
  if (run.launch == "process_per_gpu" || driven <= 1) return;
  facts.launch = timing::Launch::kOneThread;
  facts.gpus_per_thread = static_cast<std::uint32_t>(driven);
}

bool ReadVersion(const MeasuredRun& run, const std::string& gpu_class, timing::CallFacts& facts) {
  std::smatch match;
  if (std::regex_search(run.nccl, match, std::regex(R"((\d+)\.(\d+)(?:\.(\d+))?)"))) {
    facts.version = {std::stoi(match[1]), std::stoi(match[2]),
                     match[3].matched ? std::stoi(match[3]) : 0};
    return true;
  }
  if (Has(run.nccl, "1.x")) {
    facts.version = {1, 3, 4};
    return true;
  }
  facts.version = UsualVersion(run.date);
  // The first release that knows Blackwell's rates.
  if (gpu_class == "b200") facts.version = std::max(facts.version, nccl::NcclVersion{2, 26, 2});
  return false;
}

}  // namespace

nccl::NcclVersion UsualVersion(const std::string& date) {
  std::smatch match;
  if (!std::regex_search(date, match, std::regex(R"((20\d\d)(?:-(\d\d))?)")))
    return nccl::kDefaultNcclVersion;
  const int half = std::stoi(match[1]) * 2 + (match[2].matched && std::stoi(match[2]) > 6 ? 1 : 0);
  if (half < 2020 * 2) return {2, 4, 8};
  if (half < 2021 * 2) return {2, 6, 4};
  if (half < 2022 * 2) return {2, 10, 3};
  if (half < 2023 * 2) return {2, 12, 12};
  if (half < 2024 * 2) return {2, 18, 5};
  if (half < 2025 * 2) return {2, 21, 5};
  if (half < 2025 * 2 + 1) return {2, 23, 4};
  if (half < 2026 * 2) return {2, 26, 2};
  return {2, 28, 9};
}

std::string BoardOf(const std::string& text, const timing::GpuConstants& gpu) {
  const auto fold = [](std::string_view raw) {
    std::string out;
    for (const char c : raw) {
      const auto u = static_cast<unsigned char>(c);
      out += std::isalnum(u) ? static_cast<char>(std::toupper(u)) : '-';
    }
    return out;
  };
  const std::string name = fold(text);
  std::string best;
  for (const std::string& board : gpu.boards)
    if (board.size() > best.size() && name.find(fold(board)) != std::string::npos) best = board;
  return best;
}

Mapping MapRun(const MeasuredRun& run, const timing::TimingConstants& constants) {
  Mapping mapping;
  const auto refuse = [&](std::string reason) {
    mapping.reason = std::move(reason);
    return mapping;
  };
  if (run.collective == "p2p") return refuse("copies between pairs of GPUs, no collective of NCCL");
  if (run.rows.empty()) return refuse("no usable rows");
  if (run.ranks < 2) return refuse("a single rank moves nothing");
  Platform& platform = mapping.platform;
  timing::CallFacts& facts = platform.facts;
  facts.function = timing::ParseFunction(run.collective, {.file = run.id, .field = "collective"});
  facts.gpu_class = constants.ClassOfBoard(run.gpu);
  if (facts.gpu_class.empty())
    return refuse(run.gpu.empty() ? "no GPU is named" : "unknown GPU '" + run.gpu + "'");
  const std::string dtype = Lower(run.dtype);
  facts.eight_bit_integer = dtype == "int8" || dtype == "uint8" || dtype == "char";
  facts.ranks = run.ranks;
  const std::string interconnect = Lower(run.interconnect);
  const std::string gpu = Lower(run.gpu);
  const timing::GpuConstants& generation = constants.Gpu(facts.gpu_class);

  // NVLink domains count as nodes: an NVL72 rack is one.
  facts.nodes = run.nodes;
  if (Has(interconnect, "nvl72")) {
    facts.nodes = static_cast<std::uint32_t>(Number(interconnect, R"((\d+) nvl72)").value_or(1));
  } else if (run.gpus_per_node > 0 && run.ranks <= run.gpus_per_node && run.nodes == 1) {
    facts.nodes = 1;
  }
  if (run.ranks % facts.nodes != 0)
    return refuse(
        fmt::format("{} ranks do not spread evenly over {} nodes", run.ranks, facts.nodes));

  // Links inside the node.
  // A log without a topology says nothing of links: eight such GPUs in a host hang at NVSwitches.
  const bool usual_board =
      interconnect.empty() && run.gpus_per_node >= 8 &&
      (facts.gpu_class == "a100" || facts.gpu_class == "h100" || facts.gpu_class == "b200");
  platform.switched = Has(interconnect, "nvswitch") || Has(interconnect, "nvl72") || usual_board;
  const bool bridge =
      Has(interconnect, "nvlink") && !Has(interconnect, "no nvlink") && facts.gpu_class == "pcie";
  if (bridge) {
    constexpr double kBridgeLinkGbps = 25;  // NVLink 2, 3 and 4, one direction.
    facts.link_rate = FromGigabytesPerSecond(kBridgeLinkGbps * std::max(2u, run.links_per_gpu));
  } else if (facts.gpu_class == "pcie" ||
             (facts.gpu_class == "p100" && Has(interconnect, "pcie only"))) {
    const bool host = Has(interconnect, "no p2p") || Has(interconnect, "shm") ||
                      Has(interconnect, "p2p disabled") || Has(gpu, "rtx 4090");
    facts.path = facts.gpu_class == "p100" ? timing::InNodePath::kPcieSockets  // A ring of 8 GPUs.
                 : host                    ? timing::InNodePath::kPcieHost
                                           : timing::InNodePath::kPciePeer;
    facts.link_rate = FromGigabytesPerSecond(PcieGbps(run, gpu));
    // Through host memory, both GPUs of one switch share its uplink.
    if (host && Has(interconnect, "pix")) facts.link_sharers = 2;
  } else if (run.links_per_gpu > 0) {
    const double per_link = facts.gpu_class == "p100"   ? 20.0
                            : facts.gpu_class == "b200" ? 50.0
                                                        : 25.0;
    facts.link_rate = FromGigabytesPerSecond(per_link * run.links_per_gpu);
  } else {
    facts.link_rate = FromGigabytesPerSecond(generation.link_raw_gbps);
  }

  // The network.
  if (facts.nodes > 1) {
    const std::string nic = Lower(run.nic);
    Nics nics = ReadNics(run.nic);
    if (nics.gbps <= 0) {
      // Speed not stated: the usual NIC of the generation and transport.
      nics.gbps = Has(nic, "virtual ethernet")                             ? 1.25
                  : facts.gpu_class == "h100" || facts.gpu_class == "b200" ? 50
                  : facts.gpu_class == "a100" || Has(nic, "slingshot")     ? 25
                  : Has(gpu, "t4")                                         ? 6.25
                                                                           : 12.5;
    }
    const double per_node = facts.gpus_per_node();
    // Boards with an NVSwitch have a NIC for each GPU; a text without a count leaves it at that.
    if (Has(interconnect, "nvl72") || (!nics.counted && platform.switched)) nics.count = per_node;
    // GPUs that are not used leave their NICs idle.
    if (per_node < 8 && nics.count > per_node && (platform.switched || Has(nic, "not stated")))
      nics.count = std::max(1.0, nics.count * per_node / 8);
    if (per_node == 1 && Has(interconnect, "1 gpu")) nics.count = 1;
    platform.nics_assumed = !nics.counted && facts.gpus_per_node() > 1;
    facts.nic_rate = FromGigabytesPerSecond(nics.gbps);
    facts.nics_per_node = static_cast<std::uint32_t>(std::max(1.0, nics.count));
    facts.fabric_class = FabricClass(nic, run, facts.gpu_class, nics.gbps);
    platform.group = GroupOf(facts.fabric_class);
    platform.name = fmt::format("{} {} x {} {}", facts.gpu_class, facts.nodes,
                                facts.gpus_per_node(), facts.fabric_class);
  } else {
    platform.name = fmt::format("{} x {}", facts.gpu_class, facts.ranks);
  }
  platform.topology = run.topology.empty() ? TopologyName(run, facts.gpu_class, facts.fabric_class,
                                                          platform.switched)
                                           : run.topology;
  platform.version_assumed = !ReadVersion(run, facts.gpu_class, facts);
  ReadLaunch(run, facts);
  mapping.mapped = true;
  return mapping;
}

}  // namespace windtunnel::validate

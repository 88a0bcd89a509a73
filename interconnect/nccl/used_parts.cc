// From the file of a machine to the parts one job uses: what NCCL does by marking its own GPU and
// the NICs, cutting branches without a mark, and fusing the files of the ranks (src/graph/xml.cc
// and topo.cc).

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "interconnect/nccl/system.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

int IntegerOr(const XmlElement& element, std::string_view attribute, int otherwise) {
  const std::string* text = element.Find(attribute);
  return text == nullptr ? otherwise : static_cast<int>(std::strtol(text->c_str(), nullptr, 0));
}

std::string HostHash(const XmlElement& cpu) {
  const std::string* text = cpu.Find("host_hash");
  if (text == nullptr) return "0";
  return std::to_string(std::strtoull(text->c_str(), nullptr, 16));
}

/// Distinct host hashes in order of appearance.
std::vector<std::string> HostsOfFile(const XmlElement& system) {
  std::vector<std::string> hosts;
  for (const XmlElement& cpu : system.children) {
    if (cpu.name != "cpu") continue;
    const std::string hash = HostHash(cpu);
    if (std::find(hosts.begin(), hosts.end(), hash) == hosts.end()) hosts.push_back(hash);
  }
  return hosts;
}

void CheckIsTopology(const XmlDocument& document) {
  const XmlElement& root = document.root;
  const auto fail = [&](std::string problem, std::string value, std::string expected) {
    throw ConfigError({.file = document.file,
                       .line = root.line,
                       .field = "<" + root.name + ">",
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  };
  if (root.name != "system") fail("is not an NCCL topology", "", "<system version=\"1\">");
  const std::string* version = root.Find("version");
  if (version == nullptr) fail("has no version", "", "version=\"1\"");
  if (std::strtol(version->c_str(), nullptr, 0) == 2) {
    fail("is an RCCL topology, version", *version, "version=\"1\" (NCCL)");
  }
  if (std::strtol(version->c_str(), nullptr, 0) != 1) fail("version is", *version, "1");
}

/// The file as one host sees it: all `cpu` elements of that host, with its hash.
XmlElement FileOfHost(const XmlElement& system, std::uint32_t host,
                      const std::vector<std::string>& hosts) {
  XmlElement out = system;
  if (hosts.size() > 1) {
    std::erase_if(out.children, [&](const XmlElement& child) {
      return child.name == "cpu" && HostHash(child) != hosts[host];
    });
    return out;
  }
  char hash[24] = "0x";
  const auto end = std::to_chars(hash + 2, std::end(hash), host + 1, 16);
  for (XmlElement& child : out.children) {
    if (child.name == "cpu") child.Set("host_hash", std::string(hash, end.ptr));
  }
  return out;
}

bool AnyNet(const XmlElement& element) {
  if (element.name == "net" && element.Find("dev") != nullptr) return true;
  return std::any_of(element.children.begin(), element.children.end(), AnyNet);
}

/// Marks what one process uses, as it walks the file of one host.
class UsedParts {
 public:
  UsedParts(const std::vector<RankSeat>& seats, const std::string& file)
      : seats_(seats), file_(file), found_(seats.size(), false) {}

  /// Cuts every `pci`, `cpu`, `nic` and `net` without a used GPU or NIC below it; writes the ranks
  /// into the GPUs.
  void Cut(XmlElement& system) {
    // Without a NIC in the file the host's socket interface counts, below the first CPU: it takes
    // no part, but keeps that CPU in its place.
    keeps_first_cpu_ = !AnyNet(system);
    Trim(system);
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (found_[i]) continue;
      throw ConfigError({.file = file_,
                         .field = "<gpu dev>",
                         .value = std::to_string(seats_[i].dev),
                         .problem = "the file has no GPU with this dev for rank " +
                                    std::to_string(seats_[i].rank) + ":",
                         .expected = "a GPU of the file"});
    }
  }

 private:
  /// True when something below `element` is used. A used element keeps all of its content.
  bool Trim(XmlElement& element) {
    if (IsUsed(element)) return true;
    bool any = false;
    if (element.name == "cpu" && keeps_first_cpu_) {
      any = true;
      keeps_first_cpu_ = false;
    }
    std::erase_if(element.children, [&](XmlElement& child) {
      if (Trim(child)) {
        any = true;
        return false;
      }
      return child.name == "pci" || child.name == "cpu" || child.name == "nic" ||
             child.name == "net";
    });
    return any;
  }

  bool IsUsed(XmlElement& element) {
    if (element.Find("keep") != nullptr && *element.Find("keep") == "1") {
      element.Erase("keep");
      return true;
    }
    if (element.name == "net") return IsUsedNet(element);
    return element.name == "gpu" && IsUsedGpu(element);
  }

  /// A NIC is found by its name: a second element of that name is another one's leftover.
  bool IsUsedNet(const XmlElement& element) {
    if (element.Find("dev") == nullptr) return false;
    const std::string* name = element.Find("name");
    return name == nullptr || names_.insert(*name).second;
  }

  bool IsUsedGpu(XmlElement& element) {
    const int dev = IntegerOr(element, "dev", -1);
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (seats_[i].dev != dev || found_[i]) continue;
      element.Set("rank", std::to_string(seats_[i].rank));
      found_[i] = true;
      return true;
    }
    return false;
  }

  const std::vector<RankSeat>& seats_;
  const std::string& file_;
  std::vector<bool> found_;
  std::set<std::string> names_;
  bool keeps_first_cpu_ = false;
};

/// Adds to `into` what `from` has and `into` lacks: children with equal names and attributes are
/// one element.
void Fuse(XmlElement& into, XmlElement from) {
  for (XmlElement& child : from.children) {
    const auto same = std::find_if(into.children.begin(), into.children.end(), [&](const auto& e) {
      return e.name == child.name && e.attributes == child.attributes;
    });
    if (same == into.children.end()) {
      into.children.push_back(std::move(child));
    } else {
      Fuse(*same, std::move(child));
    }
  }
}

void CollectGpus(const XmlElement& element, std::uint32_t host, std::vector<FileGpu>& out) {
  if (element.name == "gpu") {
    FileGpu gpu{.host = host, .dev = IntegerOr(element, "dev", -1), .rank = std::nullopt};
    if (element.Find("rank") != nullptr) gpu.rank = IntegerOr(element, "rank", -1);
    gpu.sm = IntegerOr(element, "sm", 0);
    out.push_back(gpu);
    return;
  }
  for (const XmlElement& child : element.children) CollectGpus(child, host, out);
}

}  // namespace

XmlElement KeepUsedParts(const XmlDocument& topology, const std::vector<RankSeat>& seats,
                         const TopologyRules& rules) {
  CheckIsTopology(topology);
  WT_CHECK(!seats.empty());
  std::vector<RankSeat> sorted = seats;
  std::sort(sorted.begin(), sorted.end(),
            [](const RankSeat& a, const RankSeat& b) { return a.rank < b.rank; });
  const std::vector<std::string> hosts = HostsOfFile(topology.root);
  for (const RankSeat& seat : sorted) {
    if (hosts.size() <= 1 || seat.host < hosts.size()) continue;
    throw ConfigError({.file = topology.file,
                       .field = "host of rank " + std::to_string(seat.rank),
                       .value = std::to_string(seat.host),
                       .problem = "the file describes fewer hosts:",
                       .expected = std::to_string(hosts.size()) + " hosts"});
  }

  std::optional<XmlElement> fused;
  const auto add = [&](std::uint32_t host, const std::vector<RankSeat>& own) {
    XmlElement part = FileOfHost(topology.root, host, hosts);
    UsedParts(own, topology.file).Cut(part);
    if (fused) {
      Fuse(*fused, std::move(part));
    } else {
      fused = std::move(part);
    }
  };
  if (rules.fuses_ranks) {
    for (const RankSeat& seat : sorted) add(seat.host, {seat});
  } else {
    std::vector<std::uint32_t> done;
    for (const RankSeat& seat : sorted) {
      if (std::find(done.begin(), done.end(), seat.host) != done.end()) continue;
      done.push_back(seat.host);
      std::vector<RankSeat> own;
      std::copy_if(sorted.begin(), sorted.end(), std::back_inserter(own),
                   [&](const RankSeat& other) { return other.host == seat.host; });
      add(seat.host, own);
    }
  }
  return std::move(*fused);
}

std::vector<FileGpu> ListGpus(const XmlDocument& topology) {
  CheckIsTopology(topology);
  const std::vector<std::string> hosts = HostsOfFile(topology.root);
  std::vector<FileGpu> out;
  for (const XmlElement& cpu : topology.root.children) {
    if (cpu.name != "cpu") continue;
    const auto host = std::find(hosts.begin(), hosts.end(), HostHash(cpu)) - hosts.begin();
    CollectGpus(cpu, static_cast<std::uint32_t>(host), out);
  }
  return out;
}

}  // namespace windtunnel::nccl

#include "interconnect/nvidia_smi_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "sim/error.h"

namespace windtunnel {
namespace {

struct Line {
  std::uint64_t number;
  std::vector<std::string> words;
};

// Words of a line, without terminal codes, with '|' of Markdown tables as blanks.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\x1b') {  // ESC [ digits letter.
      while (i + 1 < line.size() && !std::isalpha(static_cast<unsigned char>(line[i + 1]))) ++i;
      ++i;
    } else if (c == ' ' || c == '\t' || c == '|' || c == '\r') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool IsNumbered(std::string_view word, std::string_view prefix) {
  return word.size() > prefix.size() && word.starts_with(prefix) &&
         std::all_of(word.begin() + static_cast<std::ptrdiff_t>(prefix.size()), word.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}
bool IsGpu(std::string_view word) { return IsNumbered(word, "GPU"); }
bool IsCell(std::string_view word) {
  static const std::set<std::string_view> kCells = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return kCells.contains(word) || IsNumbered(word, "NV");
}

class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t Find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The lowest member names the group.
  void Join(std::size_t a, std::size_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view file, const Catalogue& catalogue)
      : file_(file), catalogue_(catalogue) {
    std::uint64_t number = 0;
    while (!text.empty()) {
      const auto end = text.find('\n');
      lines_.push_back({++number, Words(text.substr(0, end))});
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

  Topology Read(std::string_view complete_as) {
    ReadMatrix();
    const InputFault where{.file = file_, .field = "complete as"};
    if (complete_as.empty()) {
      InputFault fault = where;
      fault.problem =
          "a matrix of nvidia-smi says neither GPU model nor rates; say what to complete it as";
      fault.expected = "a GPU model such as h100-sxm, or with the NIC h100-sxm+connectx-7";
      throw ConfigError(std::move(fault));
    }
    const auto plus = complete_as.find('+');
    gpu_ = &catalogue_.Device(complete_as.substr(0, plus), where);
    nic_ = plus == std::string_view::npos ? nullptr
                                          : &catalogue_.Device(complete_as.substr(plus + 1), where);
    return Build();
  }

 private:
  [[noreturn]] void Fail(std::uint64_t line, std::string field, std::string value,
                         std::string problem, std::string expected = {}) const {
    throw ConfigError({.file = file_,
                       .line = line,
                       .field = std::move(field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }

  // The header: a line whose names begin with two GPUs in a row, or one GPU and then "CPU".
  static std::vector<std::string> HeaderNames(const std::vector<std::string>& words) {
    std::vector<std::string> names;
    std::size_t at = 0;
    while (at < words.size() && !IsGpu(words[at])) ++at;
    const bool row = at + 1 < words.size() && IsCell(words[at + 1]);
    if (row) return {};
    for (; at < words.size() && words[at] != "CPU" && words[at] != "GPU"; ++at)
      names.push_back(words[at]);
    return names;
  }

  void ReadMatrix() {
    std::size_t at = 0;
    while (at < lines_.size() && HeaderNames(lines_[at].words).empty()) ++at;
    if (at == lines_.size()) {
      Fail(0, "", "", "holds no matrix of nvidia-smi topo -m", "a line with GPU0 GPU1 ...");
    }
    names_ = HeaderNames(lines_[at].words);
    const std::size_t n = names_.size();
    if (n > 4096) Fail(lines_[at].number, "", "", "has too many columns", "at most 4096");
    cells_.assign(n, {});
    affinity_.assign(n, "");
    std::size_t rows = 0;
    for (++at; at < lines_.size() && rows < n; ++at) {
      const auto& words = lines_[at].words;
      const auto name = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
        return std::find(names_.begin(), names_.end(), word) != names_.end();
      });
      if (name == words.end()) continue;
      if (words.size() < static_cast<std::size_t>(name - words.begin()) + 2) continue;
      const auto row =
          static_cast<std::size_t>(std::find(names_.begin(), names_.end(), *name) - names_.begin());
      const std::string& first = *(name + 1);
      if (first == "OK" || first == "NS" || first == "CNS" || first == "GNS" || first == "TNS" ||
          (n > 1 && name + 2 != words.end() && (*(name + 2) == "OK" || *(name + 2) == "NS"))) {
        Fail(lines_[at].number, *name, "", "is a row of the peer-to-peer status matrix",
             "the output of nvidia-smi topo -m");
      }
      if (!IsCell(first)) continue;
      if (!cells_[row].empty()) Fail(lines_[at].number, *name, "", "has a second row");
      for (auto word = name + 1; word != words.end() && cells_[row].size() < n; ++word) {
        if (!IsCell(*word)) break;
        cells_[row].push_back(*word);
      }
      // A row of a NIC may be cut; the other half of the matrix has its cells.
      if (cells_[row].size() < n && IsGpu(*name)) {
        Fail(lines_[at].number, *name, cells_[row].empty() ? "" : cells_[row].back(),
             fmt::format("has {} cells, the last", cells_[row].size()),
             fmt::format("{}, one per column", n));
      }
      const auto behind = name + 1 + static_cast<std::ptrdiff_t>(cells_[row].size());
      if (behind < words.end()) affinity_[row] = *behind;
      if (name != words.begin() && affinity_[row].empty()) affinity_[row] = words.front();
      ++rows;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (IsGpu(names_[i]) && cells_[i].empty())
        Fail(0, names_[i], "", "has a column and no row: the text is cut");
      for (std::size_t j = 0; j < cells_[i].size(); ++j) {
        if ((i == j) != (cells_[i][j] == "X"))
          Fail(0, names_[i] + " - " + names_[j], cells_[i][j], "is not where the X belongs:");
        if (j < i && i < cells_[j].size() && cells_[j][i] != cells_[i][j]) {
          Fail(0, names_[i] + " - " + names_[j], cells_[i][j],
               fmt::format("is {} the other way round:", cells_[j][i]), "a symmetric matrix");
        }
      }
    }
  }

  std::string Cell(std::size_t i, std::size_t j) const {
    if (j < cells_[i].size()) return cells_[i][j];
    return i < cells_[j].size() ? cells_[j][i] : "SYS";
  }

  DeviceId Add(Device device) {
    out_.devices.push_back(std::move(device));
    return static_cast<DeviceId>(out_.devices.size() - 1);
  }
  void Join(DeviceId a, DeviceId b, Link link) {
    link.from = a;
    link.to = b;
    out_.links.push_back(link);
    std::swap(link.from, link.to);
    out_.links.push_back(link);
  }

  Topology Build() {
    const std::size_t n = names_.size();
    out_.source = file_;
    Groups cpus(n), uppers(n), switches(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::string cell = Cell(i, j);
        if (cell == "PIX") switches.Join(i, j);
        if (cell == "PIX" || cell == "PXB") uppers.Join(i, j);
        const bool near = cell == "PIX" || cell == "PXB" || cell == "PHB" || cell == "NODE";
        // NV# hides how the PCIe sides lie: the CPU affinity tells the socket.
        const bool hidden =
            cell.starts_with("NV") && !affinity_[i].empty() && affinity_[i] == affinity_[j];
        if (near || hidden) cpus.Join(i, j);
      }
    }
    const std::uint32_t generation = gpu_->pcie_generation == 0 ? 3 : gpu_->pcie_generation;
    const LinkModel* pcie = catalogue_.FindLink(LinkKind::kPcie, generation);
    const Link slot{.kind = LinkKind::kPcie,
                    .generation = generation,
                    .width = 16,
                    .rate = pcie->lane_rate * 16,
                    .latency = pcie->latency};
    std::map<std::size_t, DeviceId> cpu_of, upper_of, switch_of;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t group = cpus.Find(i);
      if (cpu_of.contains(group)) continue;
      const auto index = static_cast<std::uint32_t>(cpu_of.size());
      cpu_of[group] = Add({.name = fmt::format("cpu{}", index),
                           .kind = DeviceKind::kCpu,
                           .model = "xeon-skylake",
                           .node = 0,
                           .index = index});
    }
    AddNuma(cpu_of);
    std::uint32_t switch_count = 0;
    const auto add_switch = [&](DeviceId parent) {
      const DeviceId id = Add({.name = fmt::format("pcie{}", switch_count),
                               .kind = DeviceKind::kPcieSwitch,
                               .node = 0,
                               .index = switch_count});
      ++switch_count;
      Join(parent, id, slot);
      return id;
    };
    std::vector<DeviceId> ids(n);
    std::uint32_t gpu_count = 0, nic_count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      DeviceId parent = cpu_of[cpus.Find(i)];
      const std::size_t upper = uppers.Find(i);
      const std::size_t lower = switches.Find(i);
      const auto members = [&](Groups& groups, std::size_t group) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < n; ++j) count += groups.Find(j) == group;
        return count;
      };
      const std::size_t upper_size = members(uppers, upper);
      const std::size_t lower_size = members(switches, lower);
      if (upper_size > lower_size) {
        if (!upper_of.contains(upper)) upper_of[upper] = add_switch(parent);
        parent = upper_of[upper];
      }
      // Every device of a two-level tree has its own lower switch, so that others are PXB.
      if (lower_size > 1 || upper_size > lower_size) {
        if (!switch_of.contains(lower)) switch_of[lower] = add_switch(parent);
        parent = switch_of[lower];
      }
      ids[i] = IsGpu(names_[i]) ? AddGpu(gpu_count++) : AddNic(nic_count++, names_[i]);
      Join(parent, ids[i], slot);
    }
    AddNvlinks(ids);
    out_.warnings.push_back(fmt::format(
        "{}: GPUs are taken to be {}, every slot Gen{} x16, CPUs of kind Intel Skylake; the matrix "
        "says none of these",
        file_, gpu_->name, generation));
    if (nic_count > 0) {
      out_.warnings.push_back(
          fmt::format("{}: NICs are taken to be {}", file_,
                      nic_ == nullptr ? "10 Gb/s, NCCL's figure for an unknown one" : nic_->name));
    }
    for (const Line& line : lines_) {
      if (!HeaderNames(line.words).empty()) ++matrices_;
    }
    if (matrices_ > 1)
      out_.notes.push_back(fmt::format("left out: {} further matrices", matrices_ - 1));
    return std::move(out_);
  }

  void AddNuma(const std::map<std::size_t, DeviceId>& cpu_of) {
    const LinkModel* numa = catalogue_.FindLink(LinkKind::kNuma, 0);
    const DeviceModel* cpu = catalogue_.FindDevice("xeon-skylake");
    for (auto a = cpu_of.begin(); a != cpu_of.end(); ++a) {
      for (auto b = std::next(a); b != cpu_of.end(); ++b) {
        Join(a->second, b->second,
             {.kind = LinkKind::kNuma, .rate = cpu->numa_rate, .latency = numa->latency});
      }
    }
  }
  DeviceId AddGpu(std::uint32_t index) {
    return Add({.name = fmt::format("gpu{}", index),
                .kind = DeviceKind::kGpu,
                .model = gpu_->name,
                .node = 0,
                .index = index,
                .sm = gpu_->sm});
  }
  DeviceId AddNic(std::uint32_t index, const std::string& name) {
    Device device{.name = fmt::format("nic{}", index),
                  .kind = DeviceKind::kNic,
                  .model = nic_ == nullptr ? "" : nic_->name,
                  .node = 0,
                  .index = index};
    device.attributes["name"] = name;
    for (const Line& line : lines_) {  // "NIC0: mlx5_0"
      if (line.words.size() >= 2 && line.words[0] == name + ":")
        device.attributes["name"] = line.words[1];
    }
    device.attributes["speed"] =
        fmt::format("{}", nic_ == nullptr ? 10'000 : nic_->port_rate.count() / 1'000'000);
    return Add(std::move(device));
  }

  void AddNvlinks(const std::vector<DeviceId>& ids) {
    struct Pair {
      std::size_t a, b;
      std::uint32_t count;
    };
    std::vector<Pair> pairs;
    std::map<std::size_t, std::uint32_t> per_gpu;
    std::size_t gpus = 0;
    std::uint32_t most = 0;
    bool equal = true;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!IsGpu(names_[i])) continue;
      ++gpus;
      for (std::size_t j = 0; j < i; ++j) {
        const std::string cell = Cell(i, j);
        if (!IsGpu(names_[j]) || !cell.starts_with("NV")) continue;
        const auto count = static_cast<std::uint32_t>(std::atoi(cell.c_str() + 2));
        if (count == 0 || count > 72)
          Fail(0, names_[i], cell, "is no count of NVLinks:", "NV1 to NV72");
        pairs.push_back({j, i, count});
        equal &= count == pairs.front().count;
        per_gpu[i] += count;
        per_gpu[j] += count;
        most = std::max({most, per_gpu[i], per_gpu[j]});
      }
    }
    if (pairs.empty()) return;
    const std::uint32_t generation = gpu_->nvlink_generation == 0 ? 3 : gpu_->nvlink_generation;
    const LinkModel* model = catalogue_.FindLink(LinkKind::kNvlink, generation);
    const auto link_of = [&](std::uint32_t count) {
      return Link{.kind = LinkKind::kNvlink,
                  .generation = generation,
                  .width = count,
                  .rate = model->lane_rate * count,
                  .latency = model->latency};
    };
    // Between all pairs, and more in sum than a GPU has: the links end at a switch.
    constexpr std::uint32_t kMostLinks = 18;  // catalogue/devices.yaml: no GPU has more.
    const bool through_switch =
        equal && pairs.size() == gpus * (gpus - 1) / 2 && gpus > 2 && most > kMostLinks;
    if (!through_switch) {
      for (const Pair& pair : pairs) Join(ids[pair.a], ids[pair.b], link_of(pair.count));
      return;
    }
    const DeviceId plane = Add({.name = "nvswitch", .kind = DeviceKind::kNvSwitch, .node = 0});
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (IsGpu(names_[i])) Join(ids[i], plane, link_of(pairs.front().count));
    }
  }

  std::string file_;
  const Catalogue& catalogue_;
  std::vector<Line> lines_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<std::string> affinity_;
  const DeviceModel* gpu_ = nullptr;
  const DeviceModel* nic_ = nullptr;
  std::size_t matrices_ = 0;
  Topology out_;
};

}  // namespace

Topology TopologyFromNvidiaSmi(std::string_view text, std::string_view file_name,
                               std::string_view complete_as, const Catalogue& catalogue) {
  return Reader(text, file_name, catalogue).Read(complete_as);
}

}  // namespace windtunnel

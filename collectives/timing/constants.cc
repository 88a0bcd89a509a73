#include "collectives/timing/constants.h"

#include <yaml-cpp/yaml.h>

#include <cctype>
#include <set>
#include <span>
#include <utility>

#include "sim/data_files.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel::timing {
namespace {

template <class T>
struct Field {
  std::string_view key;
  double T::*member;
};

constexpr Field<SharedConstants> kSharedFields[] = {
    {"bubble_all_reduce", &SharedConstants::bubble_all_reduce},
    {"bubble_all_gather", &SharedConstants::bubble_all_gather},
    {"bubble_reduce_scatter", &SharedConstants::bubble_reduce_scatter},
    {"bubble_eight_bit_sum", &SharedConstants::bubble_eight_bit_sum},
    {"drain_all_reduce", &SharedConstants::drain_all_reduce},
    {"drain_one_pass", &SharedConstants::drain_one_pass},
    {"ll_adding_round", &SharedConstants::ll_adding_round},
    {"ll_eight_bit_round", &SharedConstants::ll_eight_bit_round},
    {"ll_hidden_round_us", &SharedConstants::ll_hidden_round_us},
    {"adding_rate", &SharedConstants::adding_rate},
    {"eight_bit_adding_rate", &SharedConstants::eight_bit_adding_rate},
    {"empty_slice", &SharedConstants::empty_slice},
    {"nvls_fill", &SharedConstants::nvls_fill},
    {"p2p_two_stage_rate", &SharedConstants::p2p_two_stage_rate},
    {"full_block_adding_us", &SharedConstants::full_block_adding_us},
    {"full_block_eight_bit_us", &SharedConstants::full_block_eight_bit_us},
    {"host_channel_us", &SharedConstants::host_channel_us},
    {"host_channel_old_us", &SharedConstants::host_channel_old_us},
    {"host_peer_pair_us", &SharedConstants::host_peer_pair_us},
    {"proxy_turn_us", &SharedConstants::proxy_turn_us},
    {"ll_lag_gbps", &SharedConstants::ll_lag_gbps},
    {"two_rank_bubble", &SharedConstants::two_rank_bubble},
    {"nvls_tree_fill", &SharedConstants::nvls_tree_fill},
    {"tree_simple_share", &SharedConstants::tree_simple_share},
    {"ring_slice_fill", &SharedConstants::ring_slice_fill},
    {"self_copy_gbps", &SharedConstants::self_copy_gbps},
    {"pair_share", &SharedConstants::pair_share},
    {"peer_channel_gbps", &SharedConstants::peer_channel_gbps},
    {"own_block_gbps", &SharedConstants::own_block_gbps},
    {"pcie_peer_share", &SharedConstants::pcie_peer_share},
    {"pcie_host_share", &SharedConstants::pcie_host_share},
    {"pcie_sockets_share", &SharedConstants::pcie_sockets_share},
    {"host_broadcast_gain", &SharedConstants::host_broadcast_gain},
};

constexpr Field<GpuConstants> kGpuFields[] = {
    {"link_raw_gbps", &GpuConstants::link_raw_gbps},
    {"launch_us", &GpuConstants::launch_us},
    {"ll_hop_us", &GpuConstants::ll_hop_us},
    {"ll_first_sector_us", &GpuConstants::ll_first_sector_us},
    {"more_blocks_us", &GpuConstants::more_blocks_us},
    {"full_block_copying_us", &GpuConstants::full_block_copying_us},
    {"ll_round_us", &GpuConstants::ll_round_us},
    {"ll128_hop_us", &GpuConstants::ll128_hop_us},
    {"ll128_block_gbps", &GpuConstants::ll128_block_gbps},
    {"slice_overhead_us", &GpuConstants::slice_overhead_us},
    {"slice_overhead_at_link", &GpuConstants::slice_overhead_at_link},
    {"block_gbps", &GpuConstants::block_gbps},
    {"link_gbps", &GpuConstants::link_gbps},
    {"nvls_period_us", &GpuConstants::nvls_period_us},
    {"nvls_channel_gbps", &GpuConstants::nvls_channel_gbps},
    {"nvls_limit_gbps", &GpuConstants::nvls_limit_gbps},
    {"p2p_launch_us", &GpuConstants::p2p_launch_us},
    {"p2p_peer_us", &GpuConstants::p2p_peer_us},
    {"p2p_ll_us", &GpuConstants::p2p_ll_us},
    {"p2p_ll_round_us", &GpuConstants::p2p_ll_round_us},
    {"p2p_slice_us", &GpuConstants::p2p_slice_us},
    {"p2p_block_gbps", &GpuConstants::p2p_block_gbps},
    {"p2p_link_gbps", &GpuConstants::p2p_link_gbps},
    {"host_launch_us", &GpuConstants::host_launch_us},
    {"network_launch_us", &GpuConstants::network_launch_us},
    {"network_ll_hop_us", &GpuConstants::network_ll_hop_us},
    {"network_ll128_hop_us", &GpuConstants::network_ll128_hop_us},
    {"network_simple_hop_us", &GpuConstants::network_simple_hop_us},
    {"network_ll_gbps", &GpuConstants::network_ll_gbps},
    {"network_ll128_gbps", &GpuConstants::network_ll128_gbps},
    {"network_simple_gbps", &GpuConstants::network_simple_gbps},
    {"nvls_tree_start_us", &GpuConstants::nvls_tree_start_us},
    {"nvls_tree_chunk_us", &GpuConstants::nvls_tree_chunk_us},
    {"nvls_tree_gbps", &GpuConstants::nvls_tree_gbps},
};

constexpr Field<FabricConstants> kFabricFields[] = {
    {"ll_hop_us", &FabricConstants::ll_hop_us},
    {"ll128_hop_us", &FabricConstants::ll128_hop_us},
    {"simple_hop_us", &FabricConstants::simple_hop_us},
    {"nic_share", &FabricConstants::nic_share},
    {"ll_wire_gbps", &FabricConstants::ll_wire_gbps},
    {"handshake_bytes", &FabricConstants::handshake_bytes},
    {"handshake_us", &FabricConstants::handshake_us},
    {"inline_bytes", &FabricConstants::inline_bytes},
    {"inline_us", &FabricConstants::inline_us},
    {"hop_growth_us", &FabricConstants::hop_growth_us},
    {"message_us", &FabricConstants::message_us},
    {"ll128_share", &FabricConstants::ll128_share},
    {"all_to_all_share", &FabricConstants::all_to_all_share},
    {"peer_us", &FabricConstants::peer_us},
    {"one_gpu_limit_gbps", &FabricConstants::one_gpu_limit_gbps},
    {"nic_limit_gbps", &FabricConstants::nic_limit_gbps},
};

class Reader {
 public:
  explicit Reader(std::filesystem::path file) : file_(std::move(file)) {
    try {
      root_ = YAML::LoadFile(file_.string());
    } catch (const YAML::Exception& error) {
      throw ConfigError({.file = file_.string(), .problem = error.what()});
    }
    for (const auto& source : root_["sources"]) sources_.insert(source.first.as<std::string>());
  }

  const YAML::Node& root() const { return root_; }

  [[noreturn]] void Refuse(const YAML::Node& node, std::string field, std::string problem,
                           std::string expected = {}, std::string nearest = {}) const {
    throw ConfigError({.file = file_.string(),
                       .line = static_cast<std::uint64_t>(node.Mark().line + 1),
                       .field = std::move(field),
                       .problem = std::move(problem),
                       .expected = std::move(expected),
                       .nearest = std::move(nearest)});
  }

  template <class T>
  T ReadConstants(const YAML::Node& node, const std::string& path, std::span<const Field<T>> fields,
                  const std::set<std::string>& other_keys) const {
    T result;
    std::set<std::string> seen;
    std::vector<std::string> known(other_keys.begin(), other_keys.end());
    for (const Field<T>& field : fields) known.emplace_back(field.key);
    for (const auto& entry : node) {
      const auto key = entry.first.template as<std::string>();
      if (other_keys.contains(key)) continue;
      const Field<T>* found = nullptr;
      for (const Field<T>& field : fields)
        if (field.key == key) found = &field;
      if (found == nullptr)
        Refuse(entry.first, path + "." + key, "unknown constant", "", NearestName(key, known));
      result.*(found->member) = ReadValue(entry.second, path + "." + key);
      seen.insert(key);
    }
    for (const Field<T>& field : fields) {
      if (!seen.contains(std::string(field.key)))
        Refuse(node, path + "." + std::string(field.key), "constant is missing");
    }
    return result;
  }

 private:
  double ReadValue(const YAML::Node& entry, const std::string& path) const {
    if (!entry.IsMap() || !entry["value"] || !entry["unit"] || !entry["source"])
      Refuse(entry, path, "is no constant", "{value, unit, source, and plus_minus or times}");
    const auto source = entry["source"].as<std::string>();
    if (!sources_.contains(source))
      Refuse(entry, path, "names a source that is not listed: " + source, "",
             NearestName(source, std::vector<std::string>(sources_.begin(), sources_.end())));
    return ParseNumber(entry["value"].as<std::string>(),
                       {.file = file_.string(),
                        .line = static_cast<std::uint64_t>(entry.Mark().line + 1),
                        .field = path});
  }

  std::filesystem::path file_;
  YAML::Node root_;
  std::set<std::string> sources_;
};

template <class T>
const T& Find(const std::vector<T>& all, std::string_view name, std::string_view field) {
  std::vector<std::string> known;
  for (const T& one : all) {
    if (one.name == name) return one;
    known.push_back(one.name);
  }
  throw ConfigError({.field = std::string(field),
                     .value = std::string(name),
                     .problem = "no constants for this class",
                     .expected = "one of " + JoinNames(known),
                     .nearest = NearestName(name, known)});
}

template <class T>
void PutByName(std::vector<T>& all, const T& one) {
  for (T& known : all) {
    if (known.name == one.name) {
      known = one;
      return;
    }
  }
  all.push_back(one);
}

template <class T>
std::vector<NamedConstant> Named(T& part, std::span<const Field<T>> fields) {
  std::vector<NamedConstant> all;
  for (const Field<T>& field : fields) all.push_back({field.key, &(part.*(field.member))});
  return all;
}

}  // namespace

const TimingConstants& TimingConstants::Shipped() {
  static const TimingConstants constants(ShippedFile("catalogue/timing/gpu.yaml"),
                                         ShippedFile("catalogue/timing/fabric.yaml"));
  return constants;
}

TimingConstants::TimingConstants(const std::filesystem::path& gpu_file,
                                 const std::filesystem::path& fabric_file) {
  const Reader gpu(gpu_file);
  shared_ = gpu.ReadConstants<SharedConstants>(gpu.root()["shared"], "shared", kSharedFields, {});
  for (const auto& entry : gpu.root()["classes"]) {
    const auto name = entry.first.as<std::string>();
    auto constants = gpu.ReadConstants<GpuConstants>(entry.second, "classes." + name, kGpuFields,
                                                     {"note", "fitted", "boards"});
    constants.name = name;
    constants.fitted = entry.second["fitted"].as<bool>(false);
    constants.boards = entry.second["boards"].as<std::vector<std::string>>();
    gpus_.push_back(std::move(constants));
  }
  const Reader fabric(fabric_file);
  for (const auto& entry : fabric.root()["classes"]) {
    const auto name = entry.first.as<std::string>();
    auto constants = fabric.ReadConstants<FabricConstants>(entry.second, "classes." + name,
                                                           kFabricFields, {"note"});
    constants.name = name;
    fabrics_.push_back(std::move(constants));
  }
}

const GpuConstants& TimingConstants::Gpu(std::string_view gpu_class) const {
  return Find(gpus_, gpu_class, "gpu class");
}

const FabricConstants& TimingConstants::Fabric(std::string_view fabric_class) const {
  return Find(fabrics_, fabric_class, "fabric class");
}

std::string TimingConstants::ClassOfBoard(std::string_view board) const {
  // Logs write "H100 PCIe", "V100-PCIE-16GB", "GeForce RTX 3090": compare without case and with
  // one kind of separator.
  const auto fold = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto u = static_cast<unsigned char>(c);
      out += std::isalnum(u) ? static_cast<char>(std::toupper(u)) : '-';
    }
    return out;
  };
  const std::string name = fold(board);
  std::string best;
  std::size_t length = 0;
  for (const GpuConstants& gpu : gpus_) {
    for (const std::string& known : gpu.boards) {
      const std::string entry = fold(known);
      if (entry.size() > length && name.find(entry) != std::string::npos) {
        best = gpu.name;
        length = entry.size();
      }
    }
  }
  return best;
}

TimingConstants TimingConstants::With(const GpuConstants& gpu) const {
  TimingConstants copy = *this;
  PutByName(copy.gpus_, gpu);
  return copy;
}

TimingConstants TimingConstants::With(const FabricConstants& fabric) const {
  TimingConstants copy = *this;
  PutByName(copy.fabrics_, fabric);
  return copy;
}

TimingConstants TimingConstants::With(const SharedConstants& shared) const {
  TimingConstants copy = *this;
  copy.shared_ = shared;
  return copy;
}

std::vector<NamedConstant> NamedConstants(SharedConstants& shared) {
  return Named<SharedConstants>(shared, kSharedFields);
}

std::vector<NamedConstant> NamedConstants(GpuConstants& gpu) {
  return Named<GpuConstants>(gpu, kGpuFields);
}

std::vector<NamedConstant> NamedConstants(FabricConstants& fabric) {
  return Named<FabricConstants>(fabric, kFabricFields);
}

}  // namespace windtunnel::timing

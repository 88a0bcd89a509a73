#include "collectives/nccl/constants.h"

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "sim/data_files.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

// Reads the entries of one data file. Every key must be known: a mistyped figure must not be
// silently without effect.
class Reader {
 public:
  Reader(std::string file, YAML::Node node, std::string path)
      : file_(std::move(file)), node_(std::move(node)), path_(std::move(path)) {}

  [[noreturn]] void Fail(const YAML::Node& at, const std::string& field, const std::string& problem,
                         const std::string& expected) const {
    throw ConfigError({.file = file_,
                       .line = static_cast<std::uint64_t>(at.Mark().line + 1),
                       .field = path_ + field,
                       .problem = problem,
                       .expected = expected});
  }
  /// Calls `use` with each key and value.
  void ForEach(const std::function<bool(const std::string&, const Reader&)>& use) const {
    if (!node_.IsMap()) Fail(node_, "", "is no map", "keys with values");
    for (const auto& item : node_) {
      const auto key = item.first.as<std::string>();
      if (!use(key, Reader(file_, item.second, path_ + key + ".")))
        Fail(item.first, key, "unknown key", "a key of this table");
    }
  }
  template <class T>
  T As() const {
    try {
      return node_.as<T>();
    } catch (const YAML::Exception&) {
      Fail(node_, "", "does not read", "a number or a list of numbers");
    }
  }
  template <std::size_t N>
  std::array<double, N> Numbers() const {
    const auto values = As<std::vector<double>>();
    if (values.size() != N) Fail(node_, "", "wrong length", std::to_string(N) + " numbers");
    std::array<double, N> out;
    for (std::size_t i = 0; i < N; ++i) out[i] = values[i];
    return out;
  }

 private:
  std::string file_;
  YAML::Node node_;
  std::string path_;
};

template <std::size_t N>
int FindName(const std::string& name, const std::string_view (&names)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<int>(i);
  return -1;
}
constexpr std::string_view kGpuRowNames[] = {"volta", "ampere", "hopper", "blackwell"};
constexpr std::string_view kHopKindNames[] = {"NVLink", "PCI", "NET"};

bool ReadAlgorithms(const Reader& reader, PerAlgorithm& out) {
  reader.ForEach([&](const std::string& key, const Reader& value) {
    const int a = FindName(key, kAlgorithmNames);
    if (a >= 0) out[static_cast<std::size_t>(a)] = value.Numbers<kProtocolCount>();
    return a >= 0;
  });
  return true;
}

bool ReadBandwidths(const Reader& reader, BandwidthTable& out) {
  reader.ForEach([&](const std::string& key, const Reader& value) {
    const int row = FindName(key, kGpuRowNames);
    if (row >= 0) out[static_cast<std::size_t>(row)] = value.Numbers<3>();
    return row >= 0;
  });
  return true;
}

template <class T>
using Fields = std::map<std::string, T*>;

template <class T>
bool Assign(const Fields<T>& fields, const std::string& key, const Reader& value) {
  const auto found = fields.find(key);
  if (found == fields.end()) return false;
  *found->second = value.As<T>();
  return true;
}
template <class T>
bool AssignMap(const Fields<T>& fields, const Reader& reader) {
  reader.ForEach(
      [&](const std::string& key, const Reader& value) { return Assign(fields, key, value); });
  return true;
}

void ApplyTuning(const Reader& entry, TuningConstants& t) {
  auto& f = t.factors;
  const Fields<double> factors = {{"ring_ll", &f.ring_ll},
                                  {"ring_ll_one_node_others", &f.ring_ll_one_node_others},
                                  {"ring_ll128", &f.ring_ll128},
                                  {"ring_ll128_one_rank_per_node", &f.ring_ll128_one_rank_per_node},
                                  {"tree", &f.tree},
                                  {"tree_ll_divisor", &f.tree_ll_divisor},
                                  {"tree_ll128_one_node", &f.tree_ll128_one_node},
                                  {"tree_ll128", &f.tree_ll128},
                                  {"tree_plain_pattern", &f.tree_plain_pattern},
                                  {"pat", &f.pat},
                                  {"collnet_direct_hopper", &f.collnet_direct_hopper},
                                  {"collnet_direct_serialisation", &f.collnet_direct_serialisation},
                                  {"ring_plateau_old_gpu", &f.ring_plateau_old_gpu},
                                  {"ring_plateau", &f.ring_plateau},
                                  {"bandwidth_limit_sm80", &f.bandwidth_limit_sm80},
                                  {"ll_over_nodes", &f.ll_over_nodes},
                                  {"net_overhead_us", &f.net_overhead_us},
                                  {"net_overhead_amd_us", &f.net_overhead_amd_us},
                                  {"net_overhead_simple", &f.net_overhead_simple}};
  const std::map<std::string, BandwidthTable*> bandwidths = {
      {"ll_bandwidth", &t.ll_bandwidth},
      {"ring_ll128_bandwidth", &t.ring_ll128_bandwidth},
      {"tree_ll128_bandwidth", &t.tree_ll128_bandwidth},
      {"tree_bandwidth", &t.tree_bandwidth},
      {"nvls_tree_bandwidth", &t.nvls_tree_bandwidth}};
  entry.ForEach([&](const std::string& key, const Reader& value) {
    if (key == "from") return true;
    if (key == "base_latency") return ReadAlgorithms(value, t.base_latency);
    if (key == "factors") return AssignMap(factors, value);
    if (const auto found = bandwidths.find(key); found != bandwidths.end())
      return ReadBandwidths(value, *found->second);
    if (key == "hop_latency") {
      value.ForEach([&](const std::string& kind, const Reader& table) {
        const int k = FindName(kind, kHopKindNames);
        return k >= 0 && ReadAlgorithms(table, t.hop_latency[static_cast<std::size_t>(k)]);
      });
      return true;
    }
    if (key == "nvls_efficiency") {
      value.ForEach([&](const std::string& gpu, const Reader& number) {
        const int row = FindName(gpu, kGpuRowNames);
        if (row >= 0) t.nvls_efficiency[static_cast<std::size_t>(row)] = number.As<double>();
        return row >= 0;
      });
      return true;
    }
    if (key == "tree_correction") {
      value.ForEach([&](const std::string& protocol, const Reader& list) {
        const int p = FindName(protocol, kProtocolNames);
        if (p >= 0) t.tree_correction[static_cast<std::size_t>(p)] = list.As<std::vector<double>>();
        return p >= 0;
      });
      return true;
    }
    return false;
  });
}

void ApplyPlanning(const Reader& entry, PlanningConstants& p) {
  const Fields<int> ints = {{"max_channels", &p.max_channels},
                            {"buffer_steps", &p.buffer_steps},
                            {"min_warps", &p.min_warps},
                            {"narrow_ring_threads", &p.narrow_ring_threads},
                            {"max_collnet_local_ranks", &p.max_collnet_local_ranks},
                            {"max_nvls_local_ranks", &p.max_nvls_local_ranks},
                            {"nvls_min_gpus", &p.nvls_min_gpus},
                            {"collectives_per_batch", &p.collectives_per_batch},
                            {"ll_traffic_factor", &p.ll_traffic_factor},
                            {"net_peer_channels", &p.net_peer_channels},
                            {"net_channel_gbps", &p.net_channel_gbps},
                            {"p2p_per_batch", &p.p2p_per_batch},
                            {"collnet_node_threshold", &p.collnet_node_threshold}};
  const Fields<std::int64_t> sizes = {{"buffer_simple_arm", &p.buffer_simple_arm},
                                      {"nvls_chunk", &p.nvls_chunk},
                                      {"nvls_tree_chunk", &p.nvls_tree_chunk},
                                      {"nvls_chunk_slow_net", &p.nvls_chunk_slow_net},
                                      {"min_channel_traffic", &p.min_channel_traffic},
                                      {"p2p_ll_threshold", &p.p2p_ll_threshold}};
  entry.ForEach([&](const std::string& key, const Reader& value) {
    if (key == "from") return true;
    if (Assign(ints, key, value) || Assign(sizes, key, value)) return true;
    if (key == "narrow_ring_gbps") {
      p.narrow_ring_gbps = value.As<double>();
      return true;
    }
    if (key == "buffer")
      return AssignMap<std::int64_t>(
          {{"LL", &p.buffer[0]}, {"LL128", &p.buffer[1]}, {"Simple", &p.buffer[2]}}, value);
    if (key == "max_threads")
      return AssignMap<int>({{"LL", &p.max_threads[0]},
                             {"LL128", &p.max_threads[1]},
                             {"Simple", &p.max_threads[2]},
                             {"block", &p.max_block_threads}},
                            value);
    if (key == "thread_threshold")
      return AssignMap<int>({{"LL", &p.thread_threshold[0]},
                             {"LL128", &p.thread_threshold[1]},
                             {"Simple", &p.thread_threshold[2]},
                             {"CollNet", &p.collnet_thread_threshold}},
                            value);
    if (key == "nvls_channels")
      return AssignMap<int>({{"sm90", &p.nvls_channels_sm90},
                             {"sm100", &p.nvls_channels_sm100},
                             {"sm100_one_node", &p.nvls_channels_sm100_one_node}},
                            value);
    if (key == "p2p_chunk")
      return AssignMap<std::int64_t>(
          {{"net", &p.p2p_chunk_net}, {"pci", &p.p2p_chunk_pci}, {"nvlink", &p.p2p_chunk_nvlink}},
          value);
    return false;
  });
}

void ApplyEntries(const std::string& name, const NcclVersion& version,
                  const std::function<void(const Reader&)>& apply) {
  const std::string file = ShippedFile(name).string();
  YAML::Node document;
  try {
    document = YAML::LoadFile(file);
  } catch (const YAML::Exception& error) {
    throw ConfigError({.file = file,
                       .line = static_cast<std::uint64_t>(error.mark.line + 1),
                       .problem = "does not read as YAML: " + error.msg});
  }
  for (const auto& entry : document) {
    const InputFault where{
        .file = file, .line = static_cast<std::uint64_t>(entry.Mark().line + 1), .field = "from"};
    if (ParseNcclVersion(entry["from"].as<std::string>(""), where) <= version)
      apply(Reader(file, entry, ""));
  }
}

}  // namespace

const Constants& ConstantsOf(const NcclVersion& version) {
  if (version < kOldestNcclVersion) {
    throw ConfigError({.field = "NCCL version",
                       .value = ToString(version),
                       .problem = "is older than the tables:",
                       .expected = ToString(kOldestNcclVersion) + " or later"});
  }
  static std::mutex mutex;
  static std::map<NcclVersion, std::unique_ptr<const Constants>> loaded;
  const std::lock_guard lock(mutex);
  auto& slot = loaded[version];
  if (slot == nullptr) {
    auto constants = std::make_unique<Constants>();
    constants->version = version;
    ApplyEntries("catalogue/nccl/tuning.yaml", version,
                 [&](const Reader& entry) { ApplyTuning(entry, constants->tuning); });
    ApplyEntries("catalogue/nccl/planning.yaml", version,
                 [&](const Reader& entry) { ApplyPlanning(entry, constants->planning); });
    slot = std::move(constants);
  }
  return *slot;
}

}  // namespace windtunnel::nccl

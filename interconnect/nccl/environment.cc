#include "interconnect/nccl/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "sim/error.h"

extern char** environ;

namespace windtunnel::nccl {
namespace {

// Every variable that some part of the model reads. One list, so that the warning about the others
// is right.
constexpr std::string_view kModelled[] = {"NCCL_ALGO",
                                          "NCCL_PROTO",
                                          "NCCL_MIN_NCHANNELS",
                                          "NCCL_MAX_NCHANNELS",
                                          "NCCL_NTHREADS",
                                          "NCCL_LL128_NTHREADS",
                                          "NCCL_BUFFSIZE",
                                          "NCCL_LL_BUFFSIZE",
                                          "NCCL_LL128_BUFFSIZE",
                                          "NCCL_P2P_LEVEL",
                                          "NCCL_P2P_DISABLE",
                                          "NCCL_NET_GDR_LEVEL",
                                          "NCCL_CROSS_NIC",
                                          "NCCL_PXN_DISABLE",
                                          "NCCL_NVLS_ENABLE",
                                          "NCCL_COLLNET_ENABLE",
                                          "NCCL_TOPO_FILE",
                                          "NCCL_GRAPH_FILE",
                                          "NCCL_GRAPH_DUMP_FILE",
                                          "NCCL_TUNER_CONFIG_FILE",
                                          "NCCL_NVB_DISABLE",
                                          "NCCL_SHM_DISABLE",
                                          "NCCL_NET_OVERHEAD",
                                          "NCCL_NVLS_CHUNKSIZE",
                                          "NCCL_P2P_READ_ENABLE",
                                          "NCCL_PXN_C2C",
                                          "NCCL_LL128_C2C",
                                          "NCCL_MIN_P2P_NCHANNELS",
                                          "NCCL_MAX_P2P_NCHANNELS",
                                          "NCCL_MIN_CTAS",
                                          "NCCL_MAX_CTAS",
                                          "NCCL_NCHANNELS_PER_NET_PEER",
                                          "NCCL_NVLS_NCHANNELS",
                                          "NCCL_PAT_ENABLE",
                                          "NCCL_TOPO_DUMP_FILE",
                                          "NCCL_P2P_PXN_LEVEL",
                                          "NCCL_P2P_NET_CHUNKSIZE",
                                          "NCCL_P2P_PCI_CHUNKSIZE",
                                          "NCCL_P2P_NVL_CHUNKSIZE",
                                          "NCCL_MNNVL_ENABLE",
                                          "NCCL_NET_DISABLE_INTRA",
                                          "NCCL_NET_GDR_C2C",
                                          "NCCL_NET_GDR_READ",
                                          "NCCL_NETDEVS_POLICY",
                                          "NCCL_MNNVL_SCATTER_NETS_ENABLE",
                                          "NCCL_MNNVL_RAIL_PER_HOST"};

}  // namespace

Environment Environment::FromProcess() {
  Environment out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != text.npos) {
      out.Set(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
    }
  }
  return out;
}

std::optional<std::string> Environment::Get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> Environment::GetInt(const std::string& name) const {
  const auto text = Get(name);
  if (!text) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text->c_str(), &end, 0);
  if (errno != 0 || end == text->c_str() || *end != '\0') {
    throw ConfigError({.field = name,
                       .value = *text,
                       .problem = "is not an integer:",
                       .expected = "a whole number (0x for hexadecimal)"});
  }
  return value;
}

std::vector<std::string> Environment::NotModelled() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : variables_) {
    if (name.starts_with("NCCL_DEBUG")) continue;  // Logging only: no influence on decisions.
    if (std::find(std::begin(kModelled), std::end(kModelled), name) == std::end(kModelled))
      out.push_back(name);
  }
  return out;
}

}  // namespace windtunnel::nccl

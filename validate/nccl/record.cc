#include "validate/nccl/record.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "sim/error.h"
#include "validate/nccl/gpu.h"

extern char** environ;

namespace windtunnel::measure {
namespace {

using Json = nlohmann::ordered_json;

std::string DottedVersion(int version, int major_unit, int minor_unit) {
  return std::to_string(version / major_unit) + "." +
         std::to_string(version % major_unit / minor_unit);
}

/// NCCL codes 2.28.9 as 22809 (nccl.h, NCCL_VERSION).
std::string NcclVersion() {
  int version = 0;
  Check(ncclGetVersion(&version), "NCCL version");
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Json NcclVariables() {
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("NCCL_") || equals == std::string::npos) continue;
    // The dump goes to a file of ours and says nothing about the run.
    if (text.starts_with("NCCL_TOPO_DUMP_FILE")) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace

Json ClockFacts(int gpu) {
  Json facts = Json::object();
  int max_khz = 0;
  if (cudaDeviceGetAttribute(&max_khz, cudaDevAttrClockRate, gpu) == cudaSuccess)
    facts["sm_max_mhz"] = max_khz / 1000;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return facts;
  // Declared here, since the toolkit's package may lack the library's header; stable since NVML 5.
  using Init = int (*)();
  using ByBusId = int (*)(const char*, void**);
  using Clock = int (*)(void*, int, unsigned*);
  using Driver = int (*)(char*, unsigned);
  const auto init = reinterpret_cast<Init>(dlsym(library, "nvmlInit_v2"));
  const auto by_bus_id =
      reinterpret_cast<ByBusId>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  const auto clock = reinterpret_cast<Clock>(dlsym(library, "nvmlDeviceGetClockInfo"));
  const auto driver = reinterpret_cast<Driver>(dlsym(library, "nvmlSystemGetDriverVersion"));
  char bus_id[32] = {};
  void* device = nullptr;
  if (init == nullptr || by_bus_id == nullptr || clock == nullptr || driver == nullptr ||
      init() != 0 || cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), gpu) != cudaSuccess)
    return facts;
  char text[96] = {};
  if (driver(text, sizeof(text)) == 0) facts["driver"] = text;
  if (by_bus_id(bus_id, &device) != 0) return facts;
  unsigned mhz = 0;
  constexpr int kSmClock = 1;      // NVML_CLOCK_SM
  constexpr int kMemoryClock = 2;  // NVML_CLOCK_MEM
  if (clock(device, kSmClock, &mhz) == 0) facts["sm_mhz"] = mhz;
  if (clock(device, kMemoryClock, &mhz) == 0) facts["memory_mhz"] = mhz;
  return facts;
}

Json MachineFacts(const std::vector<int>& gpus) {
  Json facts;
  facts["source"] = "windtunnel measure";
  facts["date"] = Today();
  Json& hardware = facts["hardware"];
  hardware["gpu"] = GpuName(gpus.front());
  hardware["gpus_per_node"] = gpus.size();
  hardware["nodes"] = 1;
  hardware["interconnect"] = "see the topology file beside";
  Json& software = facts["software"];
  software["nccl"] = NcclVersion();
  int version = 0;
  Check(cudaRuntimeGetVersion(&version), "CUDA version");
  software["cuda"] = DottedVersion(version, 1000, 10);
  Check(cudaDriverGetVersion(&version), "driver version");
  software["cuda_of_driver"] = DottedVersion(version, 1000, 10);
  software["harness"] = "windtunnel measure";
  software["env"] = NcclVariables();
  facts["clocks"] = ClockFacts(gpus.front());
  return facts;
}

void WriteRecord(const std::string& folder, const Json& record) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = folder + "/" + record.at("id").get<std::string>() + ".json";
  const std::string temporary = path + ".partial";
  std::ofstream out(temporary, std::ios::binary);
  out << record.dump(1) << "\n";
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0)
    throw ConfigError({.file = path,
                       .field = "-o",
                       .problem = std::string("cannot be written: ") + std::strerror(errno)});
  std::fprintf(stderr, "windtunnel: wrote %s\n", path.c_str());
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

std::string ShortGpuName(const std::string& name) {
  std::string out;
  for (const char c : name.starts_with("NVIDIA ") ? name.substr(7) : name)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0
               ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
               : '-';
  return out;
}

}  // namespace windtunnel::measure

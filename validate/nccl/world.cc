#include "validate/nccl/world.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel::measure {
namespace {

struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr std::array<Launcher, 3> kLaunchers = {
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}};

int Number(const char* variable, const char* text, int lowest, int highest) {
  return static_cast<int>(ParseCount(text, {.field = variable}, static_cast<unsigned>(lowest),
                                     static_cast<unsigned>(highest)));
}

}  // namespace

World FindWorld() {
  constexpr int kMost = 1 << 20;
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = std::getenv(launcher.rank);
    const char* size = std::getenv(launcher.size);
    if (rank == nullptr || size == nullptr) continue;
    World world;
    world.size = Number(launcher.size, size, 1, kMost);
    world.rank = Number(launcher.rank, rank, 0, world.size - 1);
    const char* local = std::getenv(launcher.local_rank);
    if (local != nullptr) world.local_rank = Number(launcher.local_rank, local, 0, kMost);
    return world;
  }
  throw ConfigError(
      {.field = "--join",
       .problem = "no launcher has told this process its rank",
       .expected = "a start by mpirun or srun (variables of Open MPI, PMI or Slurm)"});
}

ncclUniqueId ShareIdentity(const World& world, const std::string& file) {
  ncclUniqueId id{};
  if (world.rank == 0) {
    if (std::filesystem::exists(file))
      throw ConfigError({.file = file,
                         .field = "--join",
                         .problem = "is there already, perhaps of an earlier run",
                         .expected = "a name that is free, on a file system all hosts see"});
    Check(ncclGetUniqueId(&id), "NCCL start-up");
    const std::string partial = file + ".partial";
    std::ofstream out(partial, std::ios::binary);
    out.write(id.internal, sizeof(id.internal));
    out.close();
    if (!out || std::rename(partial.c_str(), file.c_str()) != 0)
      throw ConfigError({.file = file, .field = "--join", .problem = "cannot be written"});
    return id;
  }
  constexpr auto kPatience = std::chrono::minutes(2);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < kPatience) {
    std::ifstream in(file, std::ios::binary);
    if (in && in.read(id.internal, sizeof(id.internal))) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw GpuError("rank 0 wrote no identity to " + file + " within two minutes");
}

}  // namespace windtunnel::measure

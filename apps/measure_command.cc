// `windtunnel measure`: starts windtunnel-measure, the one program that talks to GPUs. The main
// program itself never loads a CUDA library, so it starts fast and runs anywhere.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/command.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr std::string_view kKinds[] = {"nccl", "p2p", "launch", "gemm", "hbm", "copy"};

std::filesystem::path MeasureProgram() {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return self.parent_path() / "windtunnel-measure";
}

int RunMeasure(const std::vector<std::string>& arguments) {
  const std::vector<std::string> kinds(std::begin(kKinds), std::end(kKinds));
  if (arguments.empty())
    throw ConfigError({.field = "measure",
                       .problem = "what to measure is not said",
                       .expected = "one of " + JoinNames(kinds)});
  if (std::find(kinds.begin(), kinds.end(), arguments.front()) == kinds.end())
    throw ConfigError({.field = "measure",
                       .value = arguments.front(),
                       .problem = "nothing that can be measured has this name",
                       .expected = "one of " + JoinNames(kinds),
                       .nearest = NearestName(arguments.front(), kinds)});
  std::string program = MeasureProgram().string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  if (errno == ENOENT)
    throw ConfigError(
        {.field = "measure",
         .problem = "this windtunnel was built without CUDA and NCCL, so it cannot measure",
         .expected = "a build on a machine where CMake finds both (windtunnel --version tells)"});
  throw ConfigError({.file = program,
                     .field = "measure",
                     .problem = std::string("cannot be started: ") + std::strerror(errno)});
}

constexpr std::string_view kManual = R"(NAME
  windtunnel measure - record real runs on this machine's GPUs

SYNOPSIS
  windtunnel measure {nccl|p2p|launch|gemm|hbm|copy} [OPTIONS]

DESCRIPTION
  Runs on real GPUs and writes what it measured as JSON, in the format that `windtunnel validate
  --data` reads: hardware, versions, variables, clocks, and rows of size and time. Results of a
  measurement are data about this machine; they never change the simulator by themselves.

  nccl    Collectives through NCCL over a range of sizes, in and out of place, with the algorithm
          and protocol that NCCL chooses or over the whole grid of forced ones (--grid). One process
          per GPU, or one process that drives all (--single-process). The data are checked against
          the sum computed on the host. NCCL's own description of the machine is stored beside.
  p2p     Bandwidth and latency of copies between each pair of GPUs, one way and both ways.
  launch  Time from the launch of an empty kernel to its end, and between launches in a row.
  gemm    Rate of matrix products by shape and type, as part of what the GPU can do at most.
  hbm     Rate of a device-to-device stream (read, write, copy, triad) by size.
  copy    Copies between host and GPU: pinned and pageable memory, both directions, by size.

  Without a GPU or a driver, or built without CUDA and NCCL, it says so in one line and exits 1.

OPTIONS
  -o, --output DIR  Folder for the records, one JSON file each, and for topology.xml, the machine as
                    NCCL sees it; out/measure when not given.
  --op NAME         nccl: all_reduce (default), all_gather, reduce_scatter, broadcast, reduce,
                    alltoall, sendrecv, or all of them, a file each.
  -b SIZE           Smallest size (default 8).
  -e SIZE           Largest size (default 128M, hbm and copy 1G); cut to what fits in memory.
  -f FACTOR         Growth from size to size (default 2).
  -n COUNT          Repeats that are timed together (default 20).
  -w COUNT          Repeats before that (default 5).
  -d, --type TYPE   nccl: float (default), half, bfloat16, double, int32, uint8. gemm: one of fp64,
                    fp32, tf32, fp16, bf16; default all.
  --gpus LIST       GPUs to use, as in 0,1,3; all when not given.
  --single-process  nccl: one process, all GPUs launched from one thread as a group.
  --grid            nccl: every algorithm and protocol that NCCL_ALGO and NCCL_PROTO can force, a
                    file each; pairs that do not run here are named and passed over.
  --no-check        nccl: do not check the data.
  --join FILE       nccl: this process is one rank of a job that mpirun or srun has started, on one
                    host or many, a GPU each. FILE must not exist yet and must lie where all hosts
                    see it: rank 0 tells NCCL's identity through it and removes it. Rank 0 writes
                    the records. No MPI library is needed.

EXAMPLES
  windtunnel measure nccl -b 8 -e 1G -o runs
  windtunnel measure nccl --op all --grid -e 64M -o runs
  windtunnel measure gemm -d bf16
  srun -N 2 --ntasks-per-node 8 windtunnel measure nccl --join shared/id.$SLURM_JOB_ID -e 1G
  windtunnel validate --data runs

EXIT STATUS
  0 measured and, where data are checked, correct; 1 the input is wrong, or no GPU, driver or CUDA;
  2 the measured job failed or its data were wrong.

SEE ALSO
  docs/measure.md, windtunnel help validate
)";

}  // namespace

const Command kMeasureCommand{"measure", "record real runs on this machine's GPUs", RunMeasure,
                              kManual};

}  // namespace windtunnel

#pragma once
// Ranks that somebody else has started: mpirun, srun, any launcher that says who is who.

#include <string>

#include "validate/nccl/gpu.h"

namespace windtunnel::measure {

/// This process among all. Read from the variables of Open MPI, PMI (MPICH, Intel MPI) or Slurm.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
};

/// @throws ConfigError when no launcher has told this process its rank, or a value is no number in
/// range.
World FindWorld();

/// Hands the identity that rank 0 makes to all others through `file`, on a file system that all
/// hosts see. Rank 0 refuses a file that is there already: it may be of an earlier run. Others wait
/// up to two minutes. @throws ConfigError, GpuError.
ncclUniqueId ShareIdentity(const World& world, const std::string& file);

}  // namespace windtunnel::measure

#pragma once

#include "validate/nccl/options.h"

namespace windtunnel::measure {

/// Runs collectives of NCCL and writes one record per operation (and per forced algorithm and
/// protocol). Forks one process per GPU, unless `options.single_process`.
/// Contract: called before any call of CUDA in this process, which could not be forked after.
/// @returns whether all data were right. @throws ConfigError, GpuError.
bool MeasureCollectives(const Options& options);

}  // namespace windtunnel::measure

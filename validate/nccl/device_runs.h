#pragma once
// What one GPU, or a pair, can do: launch, products, memory, copies. Each writes one record.

#include "validate/nccl/options.h"

namespace windtunnel::measure {

void MeasureLaunch(const Options& options);
void MeasureGemm(const Options& options);
void MeasureHbm(const Options& options);
void MeasureHostCopies(const Options& options);
void MeasurePeerCopies(const Options& options);

}  // namespace windtunnel::measure

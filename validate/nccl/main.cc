// windtunnel-measure: the one program of the project that talks to GPUs. Started by `windtunnel
// measure`, whose manual describes it.
#include <cstdio>
#include <string>
#include <vector>

#include "sim/error.h"
#include "validate/nccl/collective_runs.h"
#include "validate/nccl/device_runs.h"
#include "validate/nccl/gpu.h"
#include "validate/nccl/options.h"

int main(int argc, char** argv) {
  using namespace windtunnel;
  try {
    const measure::Options options =
        measure::ParseOptions(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    if (options.kind == "nccl") return measure::MeasureCollectives(options) ? 0 : 2;
    if (options.kind == "p2p") {
      measure::MeasurePeerCopies(options);
    } else if (options.kind == "launch") {
      measure::MeasureLaunch(options);
    } else if (options.kind == "gemm") {
      measure::MeasureGemm(options);
    } else if (options.kind == "hbm") {
      measure::MeasureHbm(options);
    } else if (options.kind == "copy") {
      measure::MeasureHostCopies(options);
    } else {
      throw ConfigError({.field = "measure",
                         .value = options.kind,
                         .problem = "nothing that can be measured has this name"});
    }
    return 0;
  } catch (const measure::MissingGpu& error) {
    std::fprintf(stderr, "windtunnel: error: measure: %s\n", error.what());
    return 1;
  } catch (const measure::GpuError& error) {
    std::fprintf(stderr, "windtunnel: the measured job failed: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "windtunnel: error: %s\n", error.what());
    return 1;
  }
}

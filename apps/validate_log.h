#pragma once

#include "apps/validate_options.h"

namespace windtunnel {

/// `windtunnel validate --log`: reads one log, compares or diagnoses its tables, describes other
/// kinds. Returns the exit code. @throws ConfigError.
int ValidateLog(const ValidateOptions& options);

}  // namespace windtunnel

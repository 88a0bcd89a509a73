#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// Writes a whole file by way of a temporary name, so that no partial output is ever left. "-"
/// writes to stdout. Creates missing folders.
/// @throws ConfigError naming the flag and the reason (no such folder, disk full, not permitted).
void WriteOutputFile(std::string_view flag, const std::string& path, std::string_view content);

}  // namespace windtunnel

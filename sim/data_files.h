#pragma once

#include <filesystem>
#include <string_view>

namespace windtunnel {

/// Path of a file or folder that the project ships, such as "catalogue/devices.yaml" or
/// "topologies". Looked for in $WINDTUNNEL_DATA_DIR, below the source tree this library was built
/// from, then in share/windtunnel beside the running program's bin/.
/// @throws ConfigError naming the places when it is in none.
std::filesystem::path ShippedFile(std::string_view relative);

}  // namespace windtunnel

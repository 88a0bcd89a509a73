#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace windtunnel::nccl {

/// How near two nodes of the system graph are, from near to far; NCCL's own order
/// (src/graph/topo.h, v2.28.9). The numbers differ between versions (C2C and P2C came later);
/// compare by order, print by name.
enum class PathType : std::uint8_t {
  kLoc,
  kNvl,
  kNvb,
  kC2c,
  kPix,
  kPxb,
  kP2c,
  kPxn,
  kPhb,
  kSys,
  kNet,
  kDis
};

constexpr std::string_view kPathTypeNames[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                               "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
constexpr std::string_view Name(PathType type) {
  return kPathTypeNames[static_cast<std::size_t>(type)];
}
/// Exact, upper case; nothing when unknown.
constexpr std::optional<PathType> PathTypeFromName(std::string_view name) {
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(PathType::kDis); ++i) {
    if (kPathTypeNames[i] == name) return static_cast<PathType>(i);
  }
  return std::nullopt;
}

}  // namespace windtunnel::nccl

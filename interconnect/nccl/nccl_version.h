#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "sim/error.h"

namespace windtunnel::nccl {

/// A release of NCCL. Rules and constants that changed carry the version from which they hold.
struct NcclVersion {
  int major = 2;
  int minor = 28;
  int patch = 9;
  friend constexpr auto operator<=>(const NcclVersion&, const NcclVersion&) = default;
};

/// The version that is modelled when none is asked for.
constexpr NcclVersion kDefaultNcclVersion{2, 28, 9};

/// "2.28.9", "2.28" (patch 0). @throws ConfigError.
NcclVersion ParseNcclVersion(std::string_view text, const InputFault& where);
std::string ToString(const NcclVersion& version);

}  // namespace windtunnel::nccl

#pragma once
// What the commands share in reading their flags.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel {

/// Parses and turns CLI11's errors into ConfigError with the nearest known flag. `--help` is
/// handled before commands run.
void ParseFlags(CLI::App& app, std::string_view command, const std::vector<std::string>& arguments);

/// "0,2,4" as numbers; nothing for an empty text. @throws ConfigError naming the flag.
std::vector<std::uint32_t> ParseGpuList(std::string_view flag, const std::string& text);
/// A size as files write it ("64 KiB", "1 MB") or as nccl-tests does, like -b ("16M" = 16 MiB).
/// @throws ConfigError naming the flag.
Bytes ParseSizeFlag(std::string_view flag, std::string_view text);
/// Repeated KEY=VALUE,... flags as one.
std::string JoinSettings(const std::vector<std::string>& settings);
/// Settings of the packet level at another level of fidelity.
ConfigError NetworkNeedsPackets(const std::string& settings);

/// Position of `text` in `names` as an enum value. @throws ConfigError with all names and the
/// nearest.
template <class Enum, std::size_t N>
Enum ParseName(std::string_view flag, std::string_view text, const std::string_view (&names)[N]) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
    known.emplace_back(names[i]);
  }
  throw ConfigError({.field = std::string(flag),
                     .value = std::string(text),
                     .problem = "unknown name",
                     .expected = "one of " + JoinNames(known),
                     .nearest = NearestName(text, known)});
}

}  // namespace windtunnel

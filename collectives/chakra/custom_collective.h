#pragma once
// A collective given as Chakra traces, one per rank (`<prefix>.<rank>.et`, ASTRA-sim's custom
// collectives): sends, receives and computations, as a plan.
//
// The traces name sizes and peers, but no places in the buffers. Where the metadata hold the MSCCL
// program they were made from, the transfers are compared with it and the plan is the program's,
// which can be proved. Without one the plan moves the right bytes in the right order from and to
// places that mean nothing: fit for timing, not for a proof.

#include <filesystem>
#include <string>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel::chakra {

struct CustomCollective {
  Plan plan;
  bool has_program = false;  ///< Places are known, so ProveCorrect means something.
  std::uint64_t transfers = 0;
  std::vector<std::string> warnings;
};

bool IsPrefix(const std::filesystem::path& prefix);  ///< `<prefix>.0.et` is there.

/// @throws ConfigError: as ReadTrace for every file; ranks out of range or missing; nodes other
/// than sends, receives and computations; a send that no receive meets, with rank, peer, tag and
/// sizes; transfers that are not those of the program in the metadata.
CustomCollective ReadCollective(const std::filesystem::path& prefix);

/// Empty when the collective is right (without a program: when it comes to its end), else what is
/// wrong first.
std::string Prove(const CustomCollective& collective);

}  // namespace windtunnel::chakra

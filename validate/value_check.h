#pragma once
// What a log says about the values of the result, judged by how they were added.

#include <string>
#include <vector>

#include "validate/logs/collective_tables.h"
#include "validate/scores.h"

namespace windtunnel::validate {

/// Sums in a switch (NVLS, NVLSTree) are not added in the same order by every call and release of
/// the driver (ranks of one call always agree), so values may differ by some units in the last
/// place; rings and trees add in a fixed order. Source: NVIDIA/nccl issue 1497.
struct ValueCheck {
  std::size_t checked = 0;         ///< Rows with a check, out of place and in place.
  std::size_t wrong = 0;           ///< Of these, rows that no order of addition explains.
  std::vector<std::string> notes;  ///< One line per remarkable row.
};

/// Columns "#wrong" count values beyond nccl-tests' own tolerance: above zero it is a fault for
/// ring and tree, and a note for NVLS, since a count cannot be measured in units of the last place.
/// Columns "error" (old tables) hold the largest relative error: allowed are (ranks - 1) roundings
/// of half a unit for rings and trees, whose reference adds in another order, and `ulp` units more
/// for NVLS. A check never fails a run: notes are for people. `scored`: the same table, decided.
ValueCheck CheckValues(const CollectiveTable& table, const ScoredRun& scored, double ulp);

/// "values: 52 checked, all right" and the notes; "" when the log holds no check.
std::string TextValueCheck(const ValueCheck& check);

}  // namespace windtunnel::validate

#pragma once
// Tables of nccl-tests and rccl-tests in every layout seen: NCCL 1 ("res", milliseconds), "error",
// "#wrong" narrow and wide, JSON, and tables retyped by hand.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.h"
#include "validate/run.h"

namespace windtunnel::validate {

struct CollectiveRow {
  /// Four fields of one placement; nothing where the log prints N/A or the row is cut.
  struct Group {
    std::optional<double> time_us, algbw_gbps, busbw_gbps;
    std::optional<double> wrong;  ///< Count of wrong values, or the largest error in old tables.
  };
  std::uint64_t line = 0;  ///< 1-based; of the row's head.
  std::uint64_t bytes = 0, count = 0;
  std::string type, redop;  ///< "" when the layout has no such column.
  std::optional<int> root;
  Group out_of_place, in_place;
};

struct CollectiveTable {
  struct Device {
    std::uint32_t rank = 0;
    std::string host, name;
  };
  std::string collective;    ///< "all_reduce"; "" when the log does not say.
  std::string command;       ///< The line that starts the program, where it is printed.
  std::string nccl_version;  ///< "2.28.7" out of nccl-library=22807, or as printed.
  std::optional<std::uint32_t> threads, gpus;  ///< nThread, nGpus.
  std::vector<Device> devices;
  std::vector<CollectiveRow> rows;        ///< Whole rows, in the order of the log.
  std::vector<std::uint64_t> torn_lines;  ///< Heads of rows that were never completed.
  std::size_t orphan_tails = 0;           ///< Second halves without a head.
  std::optional<double> average_busbw_gbps;
  std::optional<std::uint64_t> out_of_bounds;
  bool out_of_bounds_ok = true;
  bool milliseconds = false;  ///< The log printed milliseconds; `time_us` is converted.

  /// Rows of more than zero bytes with a time.
  std::size_t usable_rows() const;
  /// Problems worth a warning: no rows, a single rank, wrong values, torn rows.
  std::vector<std::string> warnings() const;
};

/// All tables of a text. A text without any gives an empty list.
std::vector<CollectiveTable> ReadCollectiveTables(std::string_view text);
/// The JSON file of nccl-tests. @throws ConfigError.
CollectiveTable ReadCollectiveJson(std::string_view text, const InputFault& where);
bool HoldsCollectiveTable(std::string_view text);

/// A table as a run, ready to be scored: zero-byte rows left out, ranks, hosts, GPU, launch and
/// version from what the log says. The collective comes from the log, else from the ratio of bus
/// to algorithm bandwidth.
/// @throws ConfigError when there is no usable row (every size below the resolution, one rank, or
/// no row at all), naming line and reason.
MeasuredRun RunOfTable(const CollectiveTable& table, const InputFault& where);

}  // namespace windtunnel::validate

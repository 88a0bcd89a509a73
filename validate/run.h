#pragma once
// One measured run of a collective over sizes, as run files and logs give it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel::validate {

/// healthy: counts in the bands. misconfigured: a fault is named or plain; diagnosed, not counted.
/// unknown: hardware or setting in doubt; shown, not counted.
enum class Quality : std::uint8_t { kHealthy, kMisconfigured, kUnknown };

struct MeasuredRow {
  std::uint64_t bytes = 0;  ///< As nccl-tests prints them.
  std::optional<double> out_of_place_us;
  std::optional<double> in_place_us;
  std::vector<double> repeats_us;  ///< Single collections, when the row is their median.
  /// The value that is scored: out of place; in place where that is missing or where the
  /// out-of-place value is more than 1.5 times as long (warm-up, stall). Nothing when there is
  /// none.
  std::optional<double> scored_us() const;
};

struct MeasuredRun {
  std::string id;
  std::string set;  ///< Folder or shipped set it comes from.
  std::string source;
  std::string date;
  std::string gpu;
  std::uint32_t gpus_per_node = 0;
  std::uint32_t nodes = 1;
  std::string interconnect;
  std::uint32_t links_per_gpu = 0;
  std::string nic;
  std::string cpu;
  std::uint32_t pcie_gen = 0;
  std::string nccl;  ///< As printed; empty when not stated.
  std::string command;
  std::string harness;  ///< Empty: nccl-tests.
  std::map<std::string, std::string> environment;
  std::string collective;
  std::string dtype;
  std::uint32_t ranks = 0;
  std::string topology;  ///< Optional: a name below topologies/ or a file, seen from the run file.
  std::string launch;    ///< Optional: process_per_gpu, single_process.
  Quality quality = Quality::kHealthy;
  std::string fault;  ///< Label of a misconfigured run.
  std::string notes;
  std::vector<MeasuredRow> rows;  ///< Rising sizes.
};

/// One run file ({"id", "hardware", "software", "collective", "rows", ...}) or a set file
/// ({"runs": [...]}). Rows are objects (bytes, time_us, in_place, repeats_us) or arrays [bytes, out
/// of place us, in place us]; null is "not measured".
/// @throws ConfigError naming file and field.
std::vector<MeasuredRun> ReadRunFile(const std::filesystem::path& file);
/// All *.json of a folder, sorted by name; not its sub-folders.
std::vector<MeasuredRun> ReadRunFolder(const std::filesystem::path& folder);
/// The project's own set: validate/data.
std::vector<MeasuredRun> ReadShippedRuns();

}  // namespace windtunnel::validate

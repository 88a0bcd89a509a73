#include "validate/run.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/timing/time_model.h"
#include "sim/data_files.h"
#include "sim/error.h"

namespace windtunnel::validate {
namespace {

using Json = nlohmann::json;

// A row this much longer out of place than in place holds a warm-up or a stall.
constexpr double kStallFactor = 1.5;

[[noreturn]] void Refuse(const std::filesystem::path& file, std::string field, std::string problem,
                         std::string expected = {}) {
  throw ConfigError({.file = file.string(),
                     .field = std::move(field),
                     .problem = std::move(problem),
                     .expected = std::move(expected)});
}

/// Text of an optional field: null and missing are "", numbers are printed.
std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return {};
  if (it->is_string()) return it->get<std::string>();
  return it->dump();
}

std::uint32_t Count(const Json& object, const char* key, std::uint32_t otherwise,
                    const std::filesystem::path& file) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return otherwise;
  if (!it->is_number() || it->get<double>() < 0)
    Refuse(file, key, "is no count: " + it->dump(), "a whole number");
  return static_cast<std::uint32_t>(it->get<double>());
}

std::optional<double> Microseconds(const Json& value) {
  if (!value.is_number() || value.get<double>() <= 0) return std::nullopt;
  return value.get<double>();
}

/// Where a source prints rates alone: time = size / rate. Rates are printed with two decimals, so
/// only rates of which half a digit is less than 1 % are taken.
std::optional<double> TimeFromBandwidth(const Json& row, std::uint64_t bytes, double bus_factor) {
  constexpr double kPreciseEnough = 0.5;  // GB/s
  const double size = static_cast<double>(bytes);
  const Json algbw = row.value("algbw_GBps", Json());
  if (algbw.is_number() && algbw.get<double>() >= kPreciseEnough)
    return size / (algbw.get<double>() * 1000);
  const Json busbw = row.value("busbw_GBps", Json());
  if (busbw.is_number() && busbw.get<double>() >= kPreciseEnough)
    return size * bus_factor / (busbw.get<double>() * 1000);
  return std::nullopt;
}

std::vector<MeasuredRow> Rows(const Json& rows, double bus_factor,
                              const std::filesystem::path& file) {
  if (!rows.is_array()) Refuse(file, "rows", "is no list");
  std::map<std::uint64_t, MeasuredRow> by_size;
  for (const Json& row : rows) {
    if (row.is_array()) {
      if (row.size() < 2 || !row[0].is_number())
        Refuse(file, "rows", "not readable: " + row.dump(), "[bytes, out of place, in place]");
      MeasuredRow& entry = by_size[row[0].get<std::uint64_t>()];
      entry.bytes = row[0].get<std::uint64_t>();
      entry.out_of_place_us = Microseconds(row[1]);
      if (row.size() > 2) entry.in_place_us = Microseconds(row[2]);
      if (row.size() > 3) entry.repeats_us = row[3].get<std::vector<double>>();
      continue;
    }
    const auto bytes = row.find("bytes");
    if (bytes == row.end() || !bytes->is_number()) continue;  // Labelled cells of matrices.
    MeasuredRow& entry = by_size[static_cast<std::uint64_t>(bytes->get<double>())];
    entry.bytes = static_cast<std::uint64_t>(bytes->get<double>());
    auto time = Microseconds(row.value("time_us", Json()));
    if (!time) time = TimeFromBandwidth(row, entry.bytes, bus_factor);
    auto& slot = row.value("in_place", Json(false)) == Json(true) ? entry.in_place_us
                                                                  : entry.out_of_place_us;
    if (!slot) slot = time;
    if (const auto repeats = row.find("repeats_us"); repeats != row.end() && repeats->is_array())
      entry.repeats_us = repeats->get<std::vector<double>>();
  }
  std::vector<MeasuredRow> result;
  for (auto& [size, row] : by_size) {
    if (size > 0 && row.scored_us()) result.push_back(std::move(row));
  }
  return result;
}

/// A topology file is named as seen from the run file, so that a folder can be moved; shipped names
/// and other paths stay.
std::string TopologyBeside(const std::filesystem::path& file, const std::string& name) {
  if (name.empty() || std::filesystem::path(name).is_absolute()) return name;
  const std::size_t star = name.find('*');
  const std::filesystem::path beside = file.parent_path() / name.substr(0, star);
  std::error_code error;
  if (!std::filesystem::is_regular_file(beside, error)) return name;
  return beside.string() + (star == std::string::npos ? "" : name.substr(star));
}

MeasuredRun Run(const Json& json, const std::filesystem::path& file) {
  MeasuredRun run;
  run.id = Text(json, "id");
  if (run.id.empty()) run.id = file.stem().string();
  run.source = Text(json, "source");
  run.date = Text(json, "date");
  run.collective = Text(json, "collective");
  if (run.collective.empty()) Refuse(file, "collective", "is missing");
  run.dtype = Text(json, "dtype");
  run.topology = TopologyBeside(file, Text(json, "topology"));
  run.launch = Text(json, "launch");
  run.fault = Text(json, "fault");
  const std::vector<std::string> launches = {"process_per_gpu", "single_process"};
  if (!run.launch.empty() &&
      std::find(launches.begin(), launches.end(), run.launch) == launches.end())
    Refuse(file, "launch", "unknown launch '" + run.launch + "'", JoinNames(launches, " or "));
  const std::string quality = Text(json, "quality");
  if (quality.empty() || quality == "healthy") {
    run.quality = Quality::kHealthy;
  } else if (quality == "misconfigured") {
    run.quality = Quality::kMisconfigured;
  } else if (quality == "unknown") {
    run.quality = Quality::kUnknown;
  } else {
    Refuse(file, "quality", "unknown quality '" + quality + "'",
           "healthy, misconfigured or unknown");
  }
  const Json hardware = json.value("hardware", Json::object());
  run.notes = Text(json, "notes") + " " + Text(hardware, "note");
  run.gpu = Text(hardware, "gpu");
  run.gpus_per_node = Count(hardware, "gpus_per_node", 0, file);
  run.nodes = std::max(1u, Count(hardware, "nodes", 1, file));
  run.interconnect = Text(hardware, "interconnect");
  run.links_per_gpu = Count(hardware, "links_per_gpu", 0, file);
  run.nic = Text(hardware, "nic");
  run.cpu = Text(hardware, "cpu");
  run.pcie_gen = Count(hardware, "pcie_gen", 0, file);
  const Json software = json.value("software", Json::object());
  run.nccl = Text(software, "nccl");
  run.command = Text(software, "cmd");
  run.harness = Text(software, "harness");
  if (const auto env = software.find("env"); env != software.end() && env->is_object()) {
    for (const auto& [name, value] : env->items())
      run.environment[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  run.ranks = Count(json, "ranks", run.gpus_per_node * run.nodes, file);
  // "p2p" files hold matrices of copies, no collective.
  const double bus_factor =
      run.collective == "p2p"
          ? 1.0
          : BusBandwidthFactor(timing::ParseFunction(
                                   run.collective, {.file = file.string(), .field = "collective"}),
                               std::max(2u, run.ranks));
  run.rows = Rows(json.value("rows", Json::array()), bus_factor, file);
  return run;
}

}  // namespace

std::optional<double> MeasuredRow::scored_us() const {
  if (!out_of_place_us) return in_place_us;
  if (in_place_us && *out_of_place_us > kStallFactor * *in_place_us) return in_place_us;
  return out_of_place_us;
}

std::vector<MeasuredRun> ReadRunFile(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) Refuse(file, "", "cannot be read");
  Json json;
  try {
    json = Json::parse(in);
  } catch (const Json::exception& error) {
    Refuse(file, "", error.what(), "JSON");
  }
  if (!json.is_object()) Refuse(file, "", "is no run file", "an object with collective and rows");
  std::vector<MeasuredRun> runs;
  try {
    if (const auto list = json.find("runs"); list != json.end()) {
      for (const Json& run : *list) runs.push_back(Run(run, file));
    } else {
      runs.push_back(Run(json, file));
    }
  } catch (const Json::exception& error) {
    Refuse(file, "", error.what());
  }
  const std::string set = Text(json, "set");
  for (MeasuredRun& run : runs)
    run.set = set.empty() ? file.parent_path().filename().string() : set;
  return runs;
}

std::vector<MeasuredRun> ReadRunFolder(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) Refuse(folder, "--data", "is no folder");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) Refuse(folder, "--data", "holds no run file", "*.json");
  std::vector<MeasuredRun> runs;
  for (const auto& file : files) {
    for (MeasuredRun& run : ReadRunFile(file)) runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<MeasuredRun> ReadShippedRuns() { return ReadRunFolder(ShippedFile("validate/data")); }

}  // namespace windtunnel::validate

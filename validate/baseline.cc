#include "validate/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/error.h"

namespace windtunnel::validate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "windtunnel validate baseline 1";
constexpr std::size_t kMovesShown = 40;

std::string KeyOf(const MeasuredRun& run) { return run.set + "/" + run.id; }

}  // namespace

Baseline BaselineOf(const std::vector<ScoredRun>& runs) {
  Baseline baseline;
  for (const ScoredRun& run : runs) {
    if (!run.counted) continue;
    const Bands bands =
        Summarise({run}, Predictor::kWindtunnel, [](const ScoredRun&) { return true; });
    Baseline::Run& entry = baseline.runs[KeyOf(run.run)];
    for (std::size_t band = 0; band < kBandCount; ++band) {
      entry.bias[band] = bands[band].bias;
      entry.points[band] = bands[band].points;
    }
  }
  return baseline;
}

std::string WriteBaseline(const Baseline& baseline) {
  std::string text = fmt::format("{{\"format\": \"{}\",\n \"bands\": [", kFormat);
  for (std::size_t band = 0; band < kBandCount; ++band)
    text += fmt::format("{}\"{}\"", band == 0 ? "" : ", ", kBandNames[band]);
  text += "],\n \"runs\": {";
  bool first = true;
  for (const auto& [key, run] : baseline.runs) {
    text += fmt::format("{}\n  {}: [", first ? "" : ",", Json(key).dump());
    for (std::size_t band = 0; band < kBandCount; ++band) {
      text += band == 0 ? "" : ", ";
      text += run.points[band] == 0 ? "null" : fmt::format("{:.5f}", run.bias[band]);
    }
    text += "]";
    first = false;
  }
  return text + "\n }}\n";
}

Baseline ReadBaseline(const std::filesystem::path& file) {
  const auto refuse = [&](std::string field, std::string problem, std::string expected) {
    throw ConfigError({.file = file.string(),
                       .field = std::move(field),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  };
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse("--baseline", "cannot be read", "");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    refuse("", "is no JSON object", "a file that --write-baseline wrote");
  if (!json.contains("format") || json["format"] != kFormat)
    refuse("format", "is no baseline of this version", std::string(kFormat));
  if (!json.contains("runs") || !json["runs"].is_object())
    refuse("runs", "is missing", "an object of runs");
  Baseline baseline;
  for (const auto& [key, values] : json["runs"].items()) {
    if (!values.is_array() || values.size() != kBandCount)
      refuse("runs." + key, "has not one value per band", fmt::format("{} values", kBandCount));
    Baseline::Run& run = baseline.runs[key];
    for (std::size_t band = 0; band < kBandCount; ++band) {
      if (values[band].is_null()) continue;
      if (!values[band].is_number()) refuse("runs." + key, "is no number", "a fraction or null");
      run.bias[band] = values[band].get<double>();
      run.points[band] = 1;
    }
  }
  return baseline;
}

Comparison Compare(const Baseline& baseline, const std::vector<ScoredRun>& runs, double tolerance) {
  const Baseline now = BaselineOf(runs);
  Comparison result;
  for (const auto& [key, was] : baseline.runs) {
    const auto it = now.runs.find(key);
    if (it == now.runs.end()) {
      result.missing.push_back(key);
      continue;
    }
    for (std::size_t band = 0; band < kBandCount; ++band) {
      if (was.points[band] == 0 || it->second.points[band] == 0) continue;
      ++result.compared;
      if (std::abs(it->second.bias[band] - was.bias[band]) > tolerance)
        result.moves.push_back({key, band, was.bias[band], it->second.bias[band]});
    }
  }
  for (const auto& [key, run] : now.runs)
    if (!baseline.runs.contains(key)) result.added.push_back(key);
  std::stable_sort(result.moves.begin(), result.moves.end(), [](const Move& a, const Move& b) {
    return std::abs(a.now - a.was) > std::abs(b.now - b.was);
  });
  return result;
}

std::string TextComparison(const Comparison& comparison, double tolerance) {
  std::string text =
      fmt::format("baseline: {} bands of runs compared, {} moved by more than {:g} points\n",
                  comparison.compared, comparison.moves.size(), 100 * tolerance);
  for (std::size_t i = 0; i < std::min(kMovesShown, comparison.moves.size()); ++i) {
    const Move& move = comparison.moves[i];
    text += fmt::format("  {:<56} {:<14} {:+.1f} % -> {:+.1f} %\n", move.run, kBandNames[move.band],
                        100 * move.was, 100 * move.now);
  }
  if (comparison.moves.size() > kMovesShown)
    text += fmt::format("  and {} more\n", comparison.moves.size() - kMovesShown);
  if (!comparison.missing.empty())
    text += fmt::format("  no longer counted: {}\n", JoinNames(comparison.missing));
  if (!comparison.added.empty())
    text += fmt::format("  {} runs are not in the baseline\n", comparison.added.size());
  return text;
}

std::vector<Plateau> Plateaus(const std::vector<ScoredRun>& runs) {
  std::set<std::string> names;
  const auto name = [](const ScoredRun& run) {
    return run.platform.name + ", " + run.platform.topology;
  };
  for (const ScoredRun& run : runs)
    if (run.counted && run.group != Group::kOtherHarness) names.insert(name(run));
  std::vector<Plateau> plateaus;
  for (const std::string& one : names) {
    const Bands bands = Summarise(runs, Predictor::kWindtunnel, [&](const ScoredRun& run) {
      return run.counted && run.group != Group::kOtherHarness && name(run) == one;
    });
    const Summary& top = bands[kBandCount - 1];
    if (top.points > 0) plateaus.push_back({one, top.runs, top.bias});
  }
  return plateaus;
}

std::string TextPlateaus(const std::vector<Plateau>& plateaus, double tolerance) {
  std::string text;
  for (const Plateau& plateau : plateaus) {
    if (std::abs(plateau.bias) <= tolerance) continue;
    text += fmt::format("plateau off: {} ({} runs): {:+.1f} % above 256 MiB, allowed {:g} %\n",
                        plateau.platform, plateau.runs, 100 * plateau.bias, 100 * tolerance);
  }
  return text;
}

}  // namespace windtunnel::validate

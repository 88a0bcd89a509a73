// perftest, OSU and XLA tables: sizes with one figure each.

#include <algorithm>
#include <regex>

#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::validate {
namespace {

/// "2465.901216.65" is two numbers of two decimals without the blank between them.
std::vector<std::string> UngluedWords(const std::string& line) {
  std::vector<std::string> words;
  for (std::string word : Words(line)) {
    while (std::count(word.begin(), word.end(), '.') > 1) {
      const std::size_t end = word.find('.') + 3;
      if (end >= word.size()) break;
      words.push_back(word.substr(0, end));
      word.erase(0, end);
    }
    words.push_back(word);
  }
  return words;
}

/// A row of numbers alone, behind a prefix such as "[rank 1]".
std::vector<double> NumberRow(const std::string& line) {
  static const std::regex prefix(R"(^\s*\[[^\]]*\]\s)");
  std::vector<double> numbers;
  for (const std::string& word : UngluedWords(std::regex_replace(line, prefix, ""))) {
    const auto number = NumberOf(word);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::vector<SizeSeries> ReadPerftest(std::string_view text) {
  // Columns of a latency row: bytes, iterations, min, max, typical, average, stdev, 99 %, 99.9 %.
  constexpr std::size_t kLatencyColumns = 9, kOldLatencyColumns = 5, kTypical = 4;
  // Of a bandwidth row: bytes, iterations, peak, average, message rate.
  constexpr std::size_t kBandwidthColumns = 5, kAverage = 3;
  std::vector<SizeSeries> series;
  std::string name;
  bool latency = false;
  std::uint64_t number = 0;
  for (const std::string& line : Lines(text)) {
    ++number;
    static const std::regex title(R"(((?:RDMA_\w+|Send)\s+(?:\w+\s+)?(?:BW|Latency) Test))");
    std::smatch match;
    if (std::regex_search(line, match, title)) name = match[1];
    if (Contains(line, "#bytes") && Contains(line, "#iterations")) {
      latency = Contains(line, "t_typical");
      std::string unit = "us";
      static const std::regex average(R"(BW average\[([^\]]+)\])");
      if (!latency && std::regex_search(line, match, average)) {
        unit = match[1] == "Gb/sec" ? "Gb/s" : "MB/s";
      }
      series.push_back({.name = name, .unit = unit});
      continue;
    }
    if (series.empty()) continue;
    const std::vector<double> row = NumberRow(line);
    const bool whole = latency ? row.size() == kLatencyColumns || row.size() == kOldLatencyColumns
                               : row.size() == kBandwidthColumns;
    if (!whole || row[0] < 1) continue;
    series.back().rows.push_back({.bytes = static_cast<std::uint64_t>(row[0]),
                                  .value = row[latency ? kTypical : kAverage],
                                  .line = number});
  }
  return series;
}

std::vector<SizeSeries> ReadOsu(std::string_view text) {
  std::vector<SizeSeries> series;
  bool open = false;
  std::uint64_t number = 0;
  for (const std::string& line : Lines(text)) {
    ++number;
    static const std::regex title(R"(#\s*OSU (.*?) Test v)");
    static const std::regex header(R"(#\s*Size\s+(?:Avg )?(Latency|Bandwidth)\s*\(([^)]+)\))");
    std::smatch match;
    if (std::regex_search(line, match, title)) {
      series.push_back({.name = match[1]});
      open = false;
      continue;
    }
    if (series.empty()) continue;
    if (std::regex_search(line, match, header)) {
      series.back().unit = match[2];
      open = true;
      continue;
    }
    const std::vector<std::string> words = Words(line);
    if (!open || words.size() < 2) continue;
    const auto bytes = CountOf(words[0]);
    const auto value = NumberOf(words[1]);
    if (bytes && value) series.back().rows.push_back({*bytes, *value, number});
  }
  std::erase_if(series, [](const SizeSeries& one) { return one.rows.empty(); });
  return series;
}

XlaTable ReadXlaCollectives(std::string_view text) {
  XlaTable table;
  for (const std::string& line : Lines(text)) {
    static const std::regex title(R"(Performance of (\w+) on (\d+) devices)");
    std::smatch match;
    if (std::regex_search(line, match, title)) {
      table.collective = match[1];
      table.devices = static_cast<std::uint32_t>(std::stoul(match[2]));
      continue;
    }
    static const std::regex row(
        R"(\|\s*([\d.]+ [KMG]?B)\s*\|[^|]*\|\s*([\d.]+) (us|ms|s)\s*\|\s*([\d.]+)\s*\|\s*([\d.]+)\s*\|)");
    if (!std::regex_search(line, match, row)) continue;
    const double unit = match[3] == "us" ? 1 : match[3] == "ms" ? 1e3 : 1e6;
    table.rows.push_back(
        {match[1], std::stod(match[2]) * unit, std::stod(match[4]), std::stod(match[5])});
  }
  return table;
}

}  // namespace windtunnel::validate

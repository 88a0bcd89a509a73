#include "validate/logs/log_text.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <regex>

#include "validate/logs/collective_tables.h"

namespace windtunnel::validate {

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(start, end - start);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
    start = end + 1;
  }
  return lines;
}

std::vector<std::string> Words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  std::vector<std::string> words;
  std::size_t at = line.find_first_not_of(kBlanks);
  while (at != std::string_view::npos) {
    const std::size_t end = line.find_first_of(kBlanks, at);
    words.emplace_back(
        line.substr(at, end == std::string_view::npos ? line.size() - at : end - at));
    at = end == std::string_view::npos ? end : line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<double> NumberOf(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> CountOf(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view ToString(LogKind kind) {
  constexpr std::array<std::string_view, 11> names{
      "unknown",         "nccl-tests table", "nccl-tests JSON", "NCCL INFO log",
      "nvidia-smi topo", "copy matrix",      "perftest",        "OSU micro-benchmarks",
      "XLA collectives", "throughput log",   "TF_CONFIG"};
  return names[static_cast<std::size_t>(kind)];
}

LogKind DetectLogKind(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return LogKind::kUnknown;
  if (text[first] == '{' && Contains(text, "\"results\"") &&
      (Contains(text, "out_of_place") || Contains(text, "nccl_version")))
    return LogKind::kNcclTestsJson;
  if ((text[first] == '{' || text[first] == '"') &&
      (Contains(text, "cluster") || Contains(text, "luster\"") || Contains(text, "worker")))
    return LogKind::kTfConfig;
  if (Contains(text, "# OSU ") || Contains(text, "OSU MPI")) return LogKind::kOsu;
  if (Contains(text, "t_typical[usec]") || Contains(text, "BW average[") ||
      Contains(text, "RDMA_Write") || Contains(text, "RDMA_Read") || Contains(text, "Send BW Test"))
    return LogKind::kPerftest;
  if (Contains(text, "nvbandwidth") || Contains(text, "P2P (Peer-to-Peer) GPU Bandwidth") ||
      Contains(text, "P2P=Enabled") || Contains(text, "P2P=Disabled") ||
      Contains(text, "bandwidth (GB/s)"))
    return LogKind::kCopyMatrix;
  if (Contains(text, "| Size (Bytes)") || Contains(text, "---- Performance of "))
    return LogKind::kXlaCollectives;
  // The table may hold only a header (nothing measured) or only rows.
  if (HoldsCollectiveTable(text)) return LogKind::kNcclTests;
  if (Contains(text, "NCCL INFO") || Contains(text, "NCCL TRACE")) return LogKind::kNcclInfo;
  static const std::regex topology(R"((^|\n)[^\n]*GPU0[^\n]*\n|NIC0:)");
  if (std::regex_search(text.begin(), text.end(), topology)) return LogKind::kTopologyMatrix;
  for (const char* word : {"examples/sec", "img/sec", "images/sec", "sec/batch", "global_step/sec",
                           "steps/sec", "ms/step", "s/step"})
    if (Contains(text, word)) return LogKind::kThroughput;
  return LogKind::kUnknown;
}

}  // namespace windtunnel::validate

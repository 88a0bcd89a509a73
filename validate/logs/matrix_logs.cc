// Matrices: copies between GPUs, and nvidia-smi topo.

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::validate {
namespace {

bool IsCell(const std::string& word) { return word == "N/A" || NumberOf(word).has_value(); }

/// A row of a matrix: its number, then values with decimals or N/A.
std::vector<std::optional<double>> MatrixRow(const std::string& line, std::size_t expected_row) {
  const std::vector<std::string> words = Words(line);
  if (words.size() < 2) return {};
  const auto index = CountOf(words[0]);
  if (!index || *index != expected_row) return {};
  std::vector<std::optional<double>> cells;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!IsCell(words[i])) return {};
    if (words[i] != "N/A" && words[i].find('.') == std::string::npos) return {};
    cells.push_back(NumberOf(words[i]));
  }
  return cells;
}

/// Kinds of connection that nvidia-smi prints. Cells may be glued: "NODENODE".
std::vector<std::string> SplitCells(const std::string& word) {
  static const std::regex cell(R"(NV\d+|NODE|PHB|PXB|PIX|SYS|SOC|OK|CNS|GNS|TNS|NS|X|U)");
  std::vector<std::string> cells;
  std::size_t at = 0;
  for (std::sregex_iterator it(word.begin(), word.end(), cell), end; it != end; ++it) {
    if (static_cast<std::size_t>(it->position()) != at) return {};
    cells.push_back(it->str());
    at += static_cast<std::size_t>(it->length());
  }
  return at == word.size() ? cells : std::vector<std::string>{};
}

std::vector<std::string> SplitNames(const std::string& word) {
  static const std::regex name(R"(GPU\d+|NIC\d+|mlx\d+_\d+|bnxt_re\d+|rocep\w+|ibp\w+|irdma\d+)");
  std::vector<std::string> names;
  std::size_t at = 0;
  for (std::sregex_iterator it(word.begin(), word.end(), name), end; it != end; ++it) {
    if (static_cast<std::size_t>(it->position()) != at) return {};
    names.push_back(it->str());
    at += static_cast<std::size_t>(it->length());
  }
  return at == word.size() ? names : std::vector<std::string>{};
}

std::vector<std::string> CellWords(std::string line) {
  std::replace(line.begin(), line.end(), '|', ' ');
  return Words(line);
}

}  // namespace

CopyLog ReadCopyMatrices(std::string_view text) {
  CopyLog log;
  std::string title;
  std::uint64_t number = 0;
  bool open = false;
  const auto start = [&](std::string unit) {
    log.matrices.push_back({.title = title, .unit = std::move(unit), .line = number});
    open = true;
  };
  for (const std::string& line : Lines(text)) {
    ++number;
    std::smatch match;
    static const std::regex device(R"(^\s*Device:? (\d+)[:,])");
    static const std::regex running(R"(Running (\w+)\.)");
    static const std::regex heading(R"((bandwidth|latency|Bandwidth|Latency).*\((GB/s|us|ns)\))");
    static const std::regex sum(R"(^\s*SUM \w+ ([\d.]+))");
    static const std::regex latency_head(R"(^\s*(GPU|CPU)\s+0\s)");
    if (Contains(line, "ASSERT") || Contains(line, "Invalid value") || Contains(line, "ERROR"))
      log.failures.push_back(fmt::format("line {}: {}", number, line));
    if (Contains(line, "CAN Access")) ++log.can_access;
    if (Contains(line, "CANNOT Access")) ++log.cannot_access;
    if (std::regex_search(line, match, device)) ++log.devices;
    if (std::regex_search(line, match, running)) {
      title = match[1];
      open = false;
    }
    if (std::regex_search(line, match, heading)) {
      if (Contains(line, "Matrix") || title.empty()) title = line;
      start(match[2]);
      continue;
    }
    // p2pBandwidthLatencyTest prints two tables of times below one title.
    if (!log.matrices.empty() && std::regex_search(line, match, latency_head) &&
        !log.matrices.back().cells.empty()) {
      start(log.matrices.back().unit);
      continue;
    }
    if (std::regex_search(line, match, sum)) {
      if (!log.matrices.empty()) log.matrices.back().sum = NumberOf(match[1].str());
      open = false;
      continue;
    }
    if (!open) continue;
    CopyMatrix& matrix = log.matrices.back();
    std::string row = line;
    if (const auto cpu = row.find("CPU"); cpu == row.find_first_not_of(' ')) row.erase(0, cpu + 3);
    if (auto cells = MatrixRow(row, matrix.cells.size()); !cells.empty())
      matrix.cells.push_back(std::move(cells));
  }
  std::erase_if(log.matrices, [](const CopyMatrix& matrix) { return matrix.cells.empty(); });
  for (const CopyMatrix& matrix : log.matrices) {
    const std::size_t columns = matrix.cells.front().size();
    if (log.devices > 0 && columns > log.devices) {
      log.warnings.push_back(
          fmt::format("line {}: the matrix has {} GPUs, but {} devices are listed", matrix.line,
                      columns, log.devices));
      break;
    }
  }
  return log;
}

TopologyLog ReadTopologyMatrices(std::string_view text) {
  TopologyLog log;
  bool open = false;
  for (const std::string& line : Lines(text)) {
    std::smatch match;
    static const std::regex nic(R"(^\s*(NIC\d+): (\w+_\w+)\s*$)");
    if (std::regex_search(line, match, nic)) {
      log.nic_names[match[1]] = match[2];
      continue;
    }
    const std::vector<std::string> words = CellWords(line);
    if (words.empty()) continue;
    // The header: names and no cell.
    std::vector<std::string> names;
    for (const std::string& word : words) {
      const auto split = SplitNames(word);
      names.insert(names.end(), split.begin(), split.end());
    }
    const bool has_cell = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return !SplitCells(word).empty() && word != "U";
    });
    if (!names.empty() && names.front() == "GPU0" && !has_cell) {
      TopologyMatrix matrix;
      matrix.columns = names;
      matrix.gpus = static_cast<std::size_t>(
          std::count_if(names.begin(), names.end(),
                        [](const std::string& name) { return name.starts_with("GPU"); }));
      matrix.nics = names.size() - matrix.gpus;
      log.matrices.push_back(std::move(matrix));
      open = true;
      continue;
    }
    if (!open || !has_cell) continue;
    TopologyMatrix& matrix = log.matrices.back();
    // A row: its own name, perhaps behind affinities, then a cell for each column.
    std::size_t at = 0;
    while (at < words.size() && SplitNames(words[at]).size() != 1) ++at;
    if (at == words.size()) continue;
    std::vector<std::string> cells;
    for (std::size_t i = at + 1; i < words.size() && cells.size() < matrix.columns.size(); ++i) {
      const auto split = SplitCells(words[i]);
      if (split.empty()) break;
      cells.insert(cells.end(), split.begin(), split.end());
    }
    if (cells.size() != matrix.columns.size()) continue;
    for (const std::string& cell : cells) {
      if (cell == "X") continue;
      if (cell == "OK" || cell == "NS" || cell == "CNS" || cell == "GNS" || cell == "TNS")
        matrix.peer_status = true;
      ++matrix.counts[cell];
    }
    matrix.rows.push_back(words[at]);
    matrix.cells.push_back(std::move(cells));
  }
  return log;
}

}  // namespace windtunnel::validate

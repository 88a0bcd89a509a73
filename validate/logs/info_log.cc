// NCCL_DEBUG=INFO, from 2.4 to 2.29.

#include <fmt/format.h>

#include <regex>

#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::validate {
namespace {

/// "NET/IBext/1(5)/GDRDMA" is "NET/IBext/n(PXN)/GDRDMA"; what no NCCL prints is "(torn)".
std::string LinkPath(const std::string& via) {
  static const std::regex network(
      R"(^NET/([A-Za-z][A-Za-z0-9_ -]*)/\d+(\(\d+\))?((?:/GDRDMA)?(?:/Shared)?)\s*$)");
  static const std::regex local(
      R"(^(P2P/(?:IPC|direct pointer|CUMEM|indirect/\d+\[[^\]]*\])(?:/read)?|SHM(?:/\w+)*|direct shared memory|NVLS|COLLNET/\S+)\s*$)");
  std::smatch match;
  if (std::regex_match(via, match, network))
    return fmt::format("NET/{}/n{}{}", match[1].str(), match[2].matched ? "(PXN)" : "",
                       match[3].str());
  if (std::regex_match(via, match, local)) return match[1];
  return "(torn)";
}

void ReadTuningRow(const std::string& line, const std::vector<std::string>& columns, InfoLog& log) {
  static const std::regex row(R"(NCCL INFO\s+(\w+) \|(.*))");
  static const std::regex cell(R"(\s*([\d.]+)\s*/\s*([\d.]+)\s*\|)");
  std::smatch match;
  if (!std::regex_search(line, match, row)) return;
  const std::string function = match[1];
  const std::string cells = match[2];
  std::size_t column = 0;
  for (std::sregex_iterator it(cells.begin(), cells.end(), cell), end;
       it != end && column < columns.size(); ++it, ++column) {
    log.tuning[function + " " + columns[column]] = {std::stod((*it)[1]), std::stod((*it)[2])};
  }
}

}  // namespace

InfoLog ReadInfoLog(std::string_view text) {
  InfoLog log;
  std::vector<std::string> tuning_columns;
  for (const std::string& line : Lines(text)) {
    if (Contains(line, "NCCL INFO")) ++log.info_lines;
    std::smatch match;
    static const std::regex version(R"(NCCL version (\d+\.\d+(?:\.\d+)?))");
    if (log.version.empty() && Contains(line, "NCCL version") &&
        std::regex_search(line, match, version))
      log.version = match[1];
    static const std::regex ranks(R"(nranks (\d+) )");
    if (Contains(line, "nranks ") && std::regex_search(line, match, ranks))
      log.ranks = std::max(log.ranks, static_cast<std::uint32_t>(std::stoul(match[1])));
    static const std::regex list(R"((Channel \d+/\d+ :)((?:\s+\d+)+)\s*$)");
    if (Contains(line, " :") && std::regex_search(line, match, list)) {
      std::string text_of_list = match[1];
      for (const std::string& rank : Words(match[2].str())) text_of_list += " " + rank;
      log.channel_lists.push_back(std::move(text_of_list));
      continue;
    }
    if (Contains(line, "INFO Trees [")) ++log.tree_lines;
    static const std::regex link(
        R"((?:Channel|Ring) \d+(?:/\d+)? : \d+(?:\[[0-9a-f]+\])? -> \d+(?:\[[0-9a-f]+\])?(?: \[(?:send|receive)\])? via (.*)$)");
    if (Contains(line, " via ") && std::regex_search(line, match, link)) {
      std::string via = match[1];
      // Page marks of terminals stand far to the right.
      if (const auto mark = via.find("   "); mark != std::string::npos) via.erase(mark);
      ++log.links[LinkPath(via)];
      continue;
    }
    static const std::regex channels(R"((\d+ coll channels, .*per peer))");
    if (Contains(line, "coll channels") && std::regex_search(line, match, channels))
      log.channels = match[1];
    if (Contains(line, "Connected all rings")) ++log.all_rings;
    if (Contains(line, "Connected all trees")) ++log.all_trees;
    if (Contains(line, "Init COMPLETE")) ++log.complete;
    static const std::regex call(
        R"((\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})");
    static const std::regex old_call(R"(INFO (\d+) Bytes -> Algo (\d+) proto (\d+) time ([\d.]+))");
    if (Contains(line, "Bytes -> Algo")) {
      if (std::regex_search(line, match, call)) {
        log.calls.push_back(fmt::format("{} {} B: {} {} {}..{}", match[1].str(), match[2].str(),
                                        match[3].str(), match[4].str(), match[5].str(),
                                        match[6].str()));
      } else if (std::regex_search(line, match, old_call)) {
        log.calls.push_back(fmt::format("{} B: algo {} proto {} {} us", match[1].str(),
                                        match[2].str(), match[3].str(), match[4].str()));
      }
      continue;
    }
    if (Contains(line, "Latency/AlgBw")) {
      tuning_columns.clear();
      static const std::regex name(R"((\w+)/\s*(\w+) \|)");
      for (std::sregex_iterator it(line.begin(), line.end(), name), end; it != end; ++it)
        if ((*it)[1] != "Latency") tuning_columns.push_back((*it)[1].str() + " " + (*it)[2].str());
      continue;
    }
    if (!tuning_columns.empty() && Contains(line, "/") && Contains(line, " |"))
      ReadTuningRow(line, tuning_columns, log);
  }
  return log;
}

}  // namespace windtunnel::validate

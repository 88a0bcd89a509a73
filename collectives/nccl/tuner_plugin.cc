#include "collectives/nccl/tuner_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel::nccl {
namespace {

constexpr std::string_view kFunctions[] = {"allreduce", "allgather", "reducescatter", "broadcast",
                                           "reduce"};
constexpr std::string_view kAlgorithms[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::string_view kProtocols[] = {"ll", "ll128", "simple"};
// The plugin's samples write "no limit" so.
constexpr std::uint64_t kNoLimit = 4294967295;

class RowReader {
 public:
  RowReader(std::string file, std::uint64_t line, const std::string& text)
      : file_(std::move(file)), line_(line) {
    std::stringstream stream(text);
    std::string field;
    while (std::getline(stream, field, ',')) {
      const auto begin = field.find_first_not_of(" \t\r");
      const auto end = field.find_last_not_of(" \t\r");
      fields_.push_back(begin == field.npos ? "" : field.substr(begin, end - begin + 1));
    }
  }
  std::size_t size() const { return fields_.size(); }
  InputFault Where(std::size_t column) const {
    constexpr const char* kNames[] = {"collective", "minBytes", "maxBytes", "algorithm",
                                      "protocol",   "channels", "nNodes",   "nRanks",
                                      "numPipeOps", "regBuff"};
    return {.file = file_, .line = line_, .field = column < 10 ? kNames[column] : "row"};
  }
  template <class T, std::size_t N>
  T OneOf(std::size_t column, const std::string_view (&names)[N]) const {
    for (std::size_t i = 0; i < N; ++i)
      if (fields_[column] == names[i]) return static_cast<T>(i);
    const std::vector<std::string> known(std::begin(names), std::end(names));
    InputFault fault = Where(column);
    fault.value = fields_[column];
    fault.problem = "is not known:";
    fault.expected = JoinNames(known);
    fault.nearest = NearestName(fields_[column], known);
    throw ConfigError(fault);
  }
  std::uint64_t Size(std::size_t column) const {
    return ParseCount(fields_[column], Where(column));
  }
  // -1 means any, and so does a column that is not there.
  int AnyOr(std::size_t column) const {
    if (column >= fields_.size() || fields_[column] == "-1") return -1;
    return static_cast<int>(ParseCount(fields_[column], Where(column), 0, 1'000'000));
  }

 private:
  std::string file_;
  std::uint64_t line_;
  std::vector<std::string> fields_;
};

}  // namespace

TunerPlugin TunerPlugin::FromFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    throw ConfigError({.file = path,
                       .field = "NCCL_TUNER_CONFIG_FILE",
                       .problem = "cannot be read",
                       .expected = "a CSV table of the example tuner plugin"});
  }
  std::stringstream text;
  text << in.rdbuf();
  return FromText(text.str(), path);
}

TunerPlugin TunerPlugin::FromText(const std::string& text, const std::string& name) {
  TunerPlugin out;
  std::stringstream stream(text);
  std::string line;
  for (std::uint64_t number = 1; std::getline(stream, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const RowReader row(name, number, line);
    if (row.size() < 8 || row.size() > 10) {
      InputFault fault = row.Where(10);
      fault.value = line;
      fault.problem = fmt::format("has {} columns:", row.size());
      fault.expected =
          "collective, minBytes, maxBytes, algorithm, protocol, channels, nNodes, nRanks[, "
          "numPipeOps[, regBuff]]";
      throw ConfigError(fault);
    }
    Rule rule;
    rule.function = row.OneOf<Function>(0, kFunctions);
    rule.min_bytes = row.Size(1);
    rule.max_bytes = row.Size(2);
    if (rule.max_bytes == kNoLimit) rule.max_bytes = UINT64_MAX;
    rule.algorithm = row.OneOf<AlgorithmId>(3, kAlgorithms);
    rule.protocol = row.OneOf<Protocol>(4, kProtocols);
    rule.channels = row.AnyOr(5);
    rule.nodes = row.AnyOr(6);
    rule.ranks = row.AnyOr(7);
    rule.pipelined = row.AnyOr(8);
    rule.registered = row.AnyOr(9);
    out.rules_.push_back(rule);
  }
  return out;
}

const TunerPlugin::Rule* TunerPlugin::Find(Function function, std::uint64_t bytes, int nodes,
                                           int ranks, int pipelined) const {
  const auto fits = [](int wanted, int actual) { return wanted < 0 || wanted == actual; };
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule.function == function && bytes >= rule.min_bytes && bytes <= rule.max_bytes &&
           fits(rule.nodes, nodes) && fits(rule.ranks, ranks) && fits(rule.pipelined, pipelined) &&
           fits(rule.registered, 0);
  });
  return found == rules_.end() ? nullptr : &*found;
}

}  // namespace windtunnel::nccl

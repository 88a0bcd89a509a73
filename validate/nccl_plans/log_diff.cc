#include "validate/nccl_plans/log_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "sim/error.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::nccl {

namespace {

using validate::Contains;
using validate::Words;

// A whole word as a number; nothing for everything else.
std::optional<int> IntOf(std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || word.empty()) return {};
  return value;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == separator)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::string Trimmed(std::string_view text) {
  return fmt::format("{}", fmt::join(Words(text), " "));
}

class Differ {
 public:
  explicit Differ(const Communicator& comm) : comm_(comm) {}

  void Line(std::uint64_t number, const std::string& line) {
    line_ = number;
    const auto mark = line.find("NCCL INFO ");
    if (mark == std::string::npos) return;
    Thread& thread = threads_[line.substr(0, mark)];
    const std::string text = line.substr(mark + 10);
    static const std::regex announced(R"( rank (\d+) n[rR]anks (\d+) )");
    std::smatch match;
    if (Contains(text, "comm 0x") && Contains(text, "anks ") &&
        std::regex_search(text, match, announced)) {
      thread.ranks = IntOf(match[2].str());
      if (thread.ranks) announced_.insert(*thread.ranks);
      if (Contains(text, "nNodes ") && Mine(thread)) Rank(text, IntOf(match[1].str()).value_or(-1));
      return;
    }
    if (!Decides(text)) return;
    if (!Mine(thread)) {
      ++diff_.other_communicators;
      return;
    }
    Decision(thread, text);
  }

  LogDiff Finish(const std::string& name) {
    if (diff_.agree() + diff_.differ() > 0) return std::move(diff_);
    throw ConfigError(
        {.file = name,
         .problem =
             announced_.empty()
                 ? std::string("no line that states a decision of NCCL")
                 : fmt::format("no decision of a communicator of {} ranks; the log's have {}",
                               comm_.rank_count(), fmt::join(announced_, ", ")),
         .expected = announced_.empty()
                         ? "a log with NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING"
                         : "a topology and --nodes that give as many ranks as the log"});
  }

 private:
  struct Thread {
    std::optional<int> ranks;          ///< Of the communicator announced last.
    std::vector<AlgorithmId> columns;  ///< Of the part of the tuning table that is being printed.
  };

  bool Mine(const Thread& thread) const {
    return !thread.ranks || *thread.ranks == comm_.rank_count();
  }

  static bool Decides(const std::string& text) {
    if (Contains(text, " via ")) return false;
    for (const char* part : {"Channel ", "Ring ", "Trees [", "NVLS Head ", "threadThresholds ",
                             " coll channels", "Bytes -> Algo", " | ", "/Simple |", "Pattern "})
      if (Contains(text, part)) return true;
    return false;
  }

  void Decision(Thread& thread, const std::string& text) {
    if (text.starts_with("Pattern ")) {
      Search(text);
    } else if (text.starts_with("Channel ")) {
      Ring(text);
    } else if (text.starts_with("Ring ")) {
      Neighbours(text);
    } else if (text.starts_with("Trees [")) {
      Trees(text.substr(6));
    } else if (text.starts_with("NVLS Head ")) {
      NvlsHead(text.substr(10));
    } else if (text.starts_with("threadThresholds ")) {
      Thresholds(text.substr(17));
    } else if (Contains(text, " coll channels")) {
      ChannelCounts(text);
    } else if (Contains(text, "Bytes -> Algo")) {
      Call(text);
    } else {
      Tuning(thread, text);
    }
  }

  void Hold(const char* kind, std::string where, std::string log, std::string ours) {
    LogDiff::Count& count = diff_.kinds[kind];
    if (log == ours) {
      ++count.agree;
      return;
    }
    ++count.differ;
    diff_.differences.push_back({line_, kind, std::move(where), std::move(log), std::move(ours)});
  }

  // Which of the searches a line is about is not printed: rings and NVLS have patterns of their
  // own; trees and CollNet chains share theirs, so a line agrees when either says the same.
  void Search(const std::string& text) {
    static const std::regex form(
        R"(Pattern (\d+), crossNic (\d+), nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\S+)/(\S+), sameChannels (\d))");
    std::smatch m;
    if (!std::regex_search(text, m, form)) return;
    const std::string log = Trimmed(m[0].str());
    std::string ours = "no search with this pattern";
    bool found = false;
    for (const auto& node : comm_.job().nodes) {
      for (const SearchGraph& graph : node->graphs) {
        if (std::to_string(static_cast<int>(graph.pattern)) != m[1].str() || found) continue;
        ours = fmt::format(
            "Pattern {}, crossNic {}, nChannels {}, bw {:.6f}/{:.6f}, type {}/{}, sameChannels {}",
            static_cast<int>(graph.pattern), graph.cross_nic, graph.channel_count, graph.bw_intra,
            graph.bw_inter, Name(graph.type_intra), Name(graph.type_inter),
            graph.same_channels ? 1 : 0);
        found = ours == log;
      }
    }
    Hold("search", "pattern " + m[1].str(), log, ours);
  }

  void Rank(const std::string& text, int rank) {
    static const std::regex form(R"(nNodes (\d+) localRanks (\d+) localRank (\d+))");
    std::smatch m;
    if (!std::regex_search(text, m, form) || rank < 0 || rank >= comm_.rank_count()) return;
    const Connections& c = comm_.connections();
    const auto r = static_cast<std::size_t>(rank);
    const auto node = static_cast<std::size_t>(c.rank_to_node[r]);
    Hold("rank", fmt::format("rank {}", rank), m[0].str(),
         fmt::format("nNodes {} localRanks {} localRank {}", comm_.node_count(),
                     c.node_ranks[node].size(), c.rank_to_local[r]));
  }

  void Ring(const std::string& text) {
    const std::vector<std::string> words = Words(text);
    if (words.size() < 4 || words[2] != ":") return;
    const std::vector<std::string> numbers = Split(words[1], '/');
    if (numbers.size() != 2) return;
    const auto channel = IntOf(numbers[0]);
    const auto channels = IntOf(numbers[1]);
    if (!channel || !channels) return;
    const std::vector<std::string> ranks(words.begin() + 3, words.end());
    if (!std::all_of(ranks.begin(), ranks.end(), [](const auto& w) { return IntOf(w); })) return;
    const auto& rings = comm_.connections().rings;
    const auto c = static_cast<std::size_t>(*channel);
    Hold("ring", fmt::format("channel {}", *channel), fmt::format("{}", fmt::join(ranks, " ")),
         *channel < comm_.connections().channel_count ? fmt::format("{}", fmt::join(rings[c], " "))
                                                      : "no such channel");
    if (*channel == 0)
      Hold("channel count", "coll channels", std::to_string(*channels),
           std::to_string(comm_.connections().channel_count));
  }

  void Neighbours(const std::string& text) {
    const std::vector<std::string> words = Words(text);
    if (words.size() != 8 || words[2] != ":" || words[4] != "->" || words[6] != "->") return;
    const auto channel = IntOf(words[1]);
    const auto rank = IntOf(words[5]);
    if (!channel || !rank) return;
    std::string ours = "no such channel";
    if (*channel < comm_.connections().channel_count) {
      const auto& ring = comm_.connections().rings[static_cast<std::size_t>(*channel)];
      const auto found = std::find(ring.begin(), ring.end(), *rank);
      ours = "no such rank";
      if (found != ring.end()) {
        const auto at = static_cast<std::size_t>(found - ring.begin());
        ours = fmt::format("{} -> {} -> {}", ring[(at + ring.size() - 1) % ring.size()], *rank,
                           ring[(at + 1) % ring.size()]);
      }
    }
    Hold("neighbours", fmt::format("channel {} of rank {}", *channel, *rank),
         fmt::format("{} -> {} -> {}", words[3], words[5], words[7]), ours);
  }

  // "[0] 1/-1/-1->0->-1 [1] ...".
  void Trees(const std::string& text) {
    const std::vector<std::string> words = Words(text);
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const std::string& head = words[i];
      if (head.size() < 3 || head.front() != '[' || head.back() != ']') return;
      const auto channel = IntOf(std::string_view(head).substr(1, head.size() - 2));
      const auto first = words[i + 1].find("->");
      if (!channel || first == std::string::npos) return;
      const auto second = words[i + 1].find("->", first + 2);
      // Releases before 2.8 print the two directions apart.
      if (second == std::string::npos || Contains(words[i + 1], "|") ||
          std::count(words[i + 1].begin(), words[i + 1].end(), '/') != 2 ||
          words[i + 1].find('/') > first)
        return;
      const auto rank = IntOf(words[i + 1].substr(first + 2, second - first - 2));
      if (!rank) return;
      std::string ours = "no such channel";
      if (*rank < 0 || *rank >= comm_.rank_count()) {
        ours = "no such rank";
      } else if (*channel < comm_.connections().channel_count) {
        const TreeChannel& tree = comm_.connections().tree(static_cast<std::size_t>(*channel));
        const auto r = static_cast<std::size_t>(*rank);
        const auto& down = tree.down[r];
        ours = fmt::format("{}/{}/{}->{}->{}", down[0], down[1], down[2], *rank, tree.up[r]);
      }
      Hold("tree", fmt::format("channel {} of rank {}", *channel, *rank), words[i + 1], ours);
    }
  }

  void NvlsHead(const std::string& text) {
    const auto colon = text.find(':');
    if (colon == std::string::npos) return;
    const auto head = IntOf(Trimmed(text.substr(0, colon)));
    if (!head) return;
    const auto& heads = comm_.connections().nvls.heads;
    Hold("NVLS head", fmt::format("head {}", *head), Trimmed(text.substr(colon + 1)),
         static_cast<std::size_t>(*head) < heads.size()
             ? fmt::format("{}", fmt::join(heads[static_cast<std::size_t>(*head)], " "))
             : "no such head");
  }

  // "8/8/64 | 64/8/64 | 512 | 512"; with one CollNet up to 2.13: "... | 8/8/512".
  void Thresholds(const std::string& text) {
    std::vector<std::string> groups = Split(text, '|');
    constexpr AlgorithmId kOrder[] = {AlgorithmId::kTree, AlgorithmId::kRing,
                                      AlgorithmId::kCollNetDirect, AlgorithmId::kCollNetChain};
    for (std::size_t g = 0; g < std::min(groups.size(), std::size(kOrder)); ++g) {
      const auto& ours = comm_.tuning().thread_thresholds[Index(kOrder[g])];
      const std::string log = Trimmed(groups[g]);
      Hold("threshold", std::string(Name(kOrder[g])), log,
           Contains(log, "/") ? fmt::format("{}/{}/{}", ours[0], ours[1], ours[2])
                              : std::to_string(ours[Index(windtunnel::Protocol::kSimple)]));
    }
  }

  // CollNet: as Communicator::InitLines.
  void ChannelCounts(const std::string& text) {
    const Connections& c = comm_.connections();
    const bool none = comm_.version() < NcclVersion{2, 22, 0} && !c.flags.collnet;
    const std::map<std::string, int> ours = {{"coll channels", c.channel_count},
                                             {"collnet channels", none ? 0 : c.channel_count},
                                             {"nvls channels", c.nvls_channels},
                                             {"p2p channels", c.p2p.count},
                                             {"p2p channels per peer", c.p2p.per_peer}};
    for (const std::string& part : Split(text, ',')) {
      const std::vector<std::string> words = Words(part);
      if (words.size() < 2 || !IntOf(words[0])) continue;
      const std::string what = fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " "));
      if (const auto found = ours.find(what); found != ours.end())
        Hold("channel count", what, words[0], std::to_string(found->second));
    }
  }

  // A part of the table: a head that names the algorithms, then threads and one row per function.
  // Up to 2.22 the head is "Latency/AlgBw | Tree/ LL | ...", later "Algorithm | Tree | ...".
  void Tuning(Thread& thread, const std::string& text) {
    std::vector<std::string> cells = Split(text, '|');
    for (std::string& cell : cells) cell = Trimmed(cell);
    if (!cells.empty() && cells.back().empty()) cells.pop_back();
    if (cells.size() < 2) return;
    if (cells[0] == "Algorithm" || cells[0] == "Latency/AlgBw") {
      const std::size_t step = cells[0] == "Algorithm" ? 1 : kProtocolCount;
      thread.columns.clear();
      for (std::size_t i = 1; i < cells.size(); i += step) {
        std::string name = cells[i].substr(0, cells[i].find('/'));
        if (name == "CollNet") name = "CollNetDirect";
        const auto* at = std::find(std::begin(kAlgorithmNames), std::end(kAlgorithmNames), name);
        if (at == std::end(kAlgorithmNames)) {
          thread.columns.clear();
          return;
        }
        thread.columns.push_back(static_cast<AlgorithmId>(at - std::begin(kAlgorithmNames)));
      }
      return;
    }
    const bool threads = cells[0] == "Max NThreads";
    const auto* function =
        std::find(std::begin(kTunedFunctionNames), std::end(kTunedFunctionNames), cells[0]);
    if (!threads && function == std::end(kTunedFunctionNames)) return;
    const auto f = static_cast<std::size_t>(function - std::begin(kTunedFunctionNames));
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const std::size_t column = (i - 1) / kProtocolCount;
      const std::size_t p = (i - 1) % kProtocolCount;
      if (column >= thread.columns.size()) return;
      const std::size_t a = Index(thread.columns[column]);
      const std::string where = fmt::format("{} {}", kAlgorithmNames[a], kProtocolNames[p]);
      if (threads) {
        Hold("threads", where, cells[i], std::to_string(comm_.tuning().max_threads[a][p]));
        continue;
      }
      const TuningTable::Entry& entry = comm_.tuning().entries[f][a][p];
      std::string log = cells[i];
      std::erase(log, ' ');
      Hold("tuning", fmt::format("{} {}", cells[0], where), log,
           fmt::format("{:.1f}/{:.1f}", entry.latency, entry.bandwidth));
    }
  }

  // "Broadcast: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"; before 2.24 numbers and
  // NCCL's estimate: "AllReduce: 1024 Bytes -> Algo 1 proto 0 time 9.300000". Without the name of
  // the function (up to 2.18) there is nothing to plan.
  void Call(const std::string& text) {
    static const std::regex form(
        R"((\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) (?:time ([\d.]+)|channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}))");
    std::smatch m;
    if (!std::regex_search(text, m, form)) return;
    const auto* name =
        std::find(std::begin(kTunedFunctionNames), std::end(kTunedFunctionNames), m[1].str());
    if (name == std::end(kTunedFunctionNames)) return;
    const auto function = static_cast<Function>(name - std::begin(kTunedFunctionNames));
    const std::uint64_t bytes = std::stoull(m[2].str());
    const bool per_rank = function == Function::kAllGather || function == Function::kReduceScatter;
    const std::uint64_t own =
        per_rank ? bytes / static_cast<std::uint64_t>(comm_.rank_count()) : bytes;
    const bool floats = own % 4 == 0;
    const CallPlan plan = comm_.Plan({.function = function,
                                      .count = floats ? own / 4 : own,
                                      .type = floats ? DataType::kFloat : DataType::kInt8});
    const bool numbers = IntOf(m[3].str()).has_value();
    std::string log = fmt::format("{} {}", m[3].str(), m[4].str());
    std::string ours =
        numbers ? fmt::format("{} {}", Index(plan.algorithm), Index(plan.protocol))
                : fmt::format("{} {}", Upper(Name(plan.algorithm)), Upper(Name(plan.protocol)));
    if (m[5].matched) {
      log += fmt::format(" {:.4g} us", std::stod(m[5].str()));
      ours += fmt::format(" {:.4g} us", plan.time_us);
    } else {
      log += fmt::format(" channels {}..{}", m[6].str(), m[7].str());
      ours += fmt::format(" channels {}..{}", plan.channel_lo, plan.channel_hi);
    }
    Hold("choice", fmt::format("{} of {} B", m[1].str(), bytes), log, ours);
  }

  // Names of algorithms as call lines have them: "COLLNET_DIRECT", "NVLS_TREE".
  static std::string Upper(std::string_view name) {
    if (name == "CollNetDirect") return "COLLNET_DIRECT";
    if (name == "CollNetChain") return "COLLNET_CHAIN";
    if (name == "NVLSTree") return "NVLS_TREE";
    std::string out(name);
    std::transform(out.begin(), out.end(), out.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return out;
  }

  const Communicator& comm_;
  std::uint64_t line_ = 0;
  std::map<std::string, Thread> threads_;  ///< By what stands before "NCCL INFO".
  std::set<int> announced_;
  LogDiff diff_;
};

}  // namespace

LogSetting ReadLogSetting(std::string_view log, const std::string& name) {
  const validate::InfoLog info = validate::ReadInfoLog(log);
  if (info.info_lines == 0)
    throw ConfigError({.file = name,
                       .problem = "no line of NCCL_DEBUG=INFO",
                       .expected = "lines with \"NCCL INFO\""});
  LogSetting out;
  out.ranks = static_cast<int>(info.ranks);
  if (!info.version.empty())
    out.version = ParseNcclVersion(info.version, {.file = name, .field = "NCCL version"});
  for (const std::string& line : validate::Lines(log)) {
    if (Contains(line, "NVLS multicast support is not available")) out.multicast_off = true;
    if (Contains(line, "Loaded coll plugin") || Contains(line, "/IB/SHARP"))
      out.collnet_plugin = true;
    constexpr std::string_view kSet = " set by environment to ";
    const auto at = line.find(kSet);
    const auto mark = line.find("NCCL INFO ");
    if (at == std::string::npos || mark == std::string::npos || mark + 10 >= at) continue;
    const std::string variable = line.substr(mark + 10, at - mark - 10);
    // Integers end with a full stop: "NCCL_CROSS_NIC set by environment to 0."
    std::string value = line.substr(at + kSet.size());
    while (!value.empty() && (value.back() == '.' || value.back() == ' ')) value.pop_back();
    // Files lie on the machine of the log.
    if (variable.starts_with("NCCL_") && !variable.ends_with("_FILE") && !Contains(variable, " "))
      out.variables[variable] = value;
  }
  return out;
}

LogDiff DiffLog(std::string_view log, const std::string& name, const Communicator& comm) {
  Differ differ(comm);
  std::uint64_t number = 0;
  for (const std::string& line : validate::Lines(log)) differ.Line(++number, line);
  return differ.Finish(name);
}

std::uint64_t LogDiff::agree() const {
  std::uint64_t sum = 0;
  for (const auto& [kind, count] : kinds) sum += count.agree;
  return sum;
}

std::string LogDiff::ToText() const {
  std::string out;
  for (const Difference& d : differences)
    out += fmt::format("line {}: {}, {}\n  log:  {}\n  ours: {}\n", d.line, d.kind, d.where, d.log,
                       d.ours);
  out += fmt::format("# {:<14} {:>8} {:>8}\n", "kind", "agree", "differ");
  for (const auto& [kind, count] : kinds)
    out += fmt::format("  {:<14} {:>8} {:>8}\n", kind, count.agree, count.differ);
  out += fmt::format("  {:<14} {:>8} {:>8}\n", "all", agree(), differ());
  if (other_communicators > 0)
    out += fmt::format("# {} lines of communicators with another number of ranks not compared\n",
                       other_communicators);
  return out;
}

}  // namespace windtunnel::nccl

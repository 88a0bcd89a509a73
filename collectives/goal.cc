#include "collectives/goal.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

constexpr std::uint64_t kMostRanks = 1'000'000;
constexpr std::uint64_t kMostOps = 10'000'000;

enum class Verb : std::uint8_t { kSend, kReceive, kCalc };
struct Op {
  Verb verb = Verb::kCalc;
  std::uint64_t line = 0;
  std::uint64_t amount = 0;  // Bytes or nanoseconds.
  Rank peer = 0;
  std::uint32_t tag = 0;
  std::vector<std::uint32_t> requires_end;  // Ops of the same rank.
  std::vector<std::uint32_t> requires_start;
};

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r\n";
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = line.find_first_of(kBlank);
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}
// Without comments, which stand behind // or #.
std::string_view Code(std::string_view line) {
  return line.substr(0, std::min(line.find("//"), line.find('#')));
}

class Reader {
 public:
  explicit Reader(std::string_view file_name) : file_(file_name) {}

  void Read(std::string_view text) {
    std::uint64_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      ++number;
      ReadLine(number, Words(Code(text.substr(0, end))));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    if (ranks_.empty()) Fail(0, "", "has no num_ranks");
    if (rank_ != kNoRank) Fail(number, "}", "is missing at the end of a rank");
  }

  GoalSchedule Build() {
    GoalSchedule schedule;
    Plan& plan = schedule.plan;
    plan.request = {.function = Function::kSendRecv,
                    .rank_count = static_cast<std::uint32_t>(ranks_.size()),
                    .type = DataType::kInt8};
    plan.algorithm = "GOAL";
    MatchConnections();
    std::uint32_t first = 0;
    for (Rank r = 0; r < ranks_.size(); ++r) {
      for (std::uint32_t i = 0; i < ranks_[r].size(); ++i) {
        const Op& op = ranks_[r][i];
        std::vector<Dependency> waits;
        for (const std::uint32_t other : Requirements(r, i)) waits.push_back({first + other, 0});
        const Peer peer{op.peer, op.tag};
        PlanOp step{.count = op.verb == Verb::kCalc ? 0 : op.amount, .wait_for = waits};
        if (op.verb == Verb::kSend) {
          step.send_to = {&peer, 1};
          step.has_source = true;
        } else if (op.verb == Verb::kReceive) {
          step.receive_from = {&peer, 1};
          step.has_destination = true;
        }
        auto program = std::make_shared<ListProgram>();
        program->Append(step);
        plan.blocks.push_back({.rank = r,
                               .role = op.verb == Verb::kSend      ? "send"
                                       : op.verb == Verb::kReceive ? "recv"
                                                                   : "calc",
                               .program = std::move(program)});
        schedule.work.push_back(op.verb == Verb::kCalc ? Nanoseconds(op.amount) : Picoseconds(0));
        plan.request.count = std::max(plan.request.count, step.count);
      }
      first += static_cast<std::uint32_t>(ranks_[r].size());
    }
    schedule.notes.push_back("sizes are bytes, calc times nanoseconds; cpu and nic are ignored");
    return schedule;
  }

 private:
  static constexpr Rank kNoRank = UINT32_MAX;

  [[noreturn]] void Fail(std::uint64_t line, std::string_view value, std::string problem,
                         std::string expected = {}) const {
    throw ConfigError({.file = file_,
                       .line = line,
                       .value = std::string(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }
  std::uint64_t Number(std::uint64_t line, std::string_view word, std::uint64_t highest) const {
    return ParseCount(word, {.file = file_, .line = line}, 0, highest);
  }

  void ReadLine(std::uint64_t line, std::vector<std::string_view> words) {
    if (words.empty()) return;
    if (words[0] == "num_ranks") {
      if (words.size() != 2 || !ranks_.empty())
        Fail(line, words[0], "must stand once, with a count");
      ranks_.resize(Number(line, words[1], kMostRanks));
      if (ranks_.empty()) Fail(line, words[1], "is no count of ranks", "1 to 1000000");
      return;
    }
    if (ranks_.empty()) Fail(line, words[0], "stands before num_ranks");
    if (words[0] == "rank") {
      if (words.size() != 3 || words[2] != "{" || rank_ != kNoRank) {
        Fail(line, words[0], "does not open a rank", "rank N {");
      }
      rank_ = static_cast<Rank>(Number(line, words[1], ranks_.size() - 1));
      if (!ranks_[rank_].empty()) Fail(line, words[1], "the rank is given twice:");
      labels_.clear();
      return;
    }
    if (rank_ == kNoRank) Fail(line, words[0], "stands outside a rank");
    if (words[0] == "}") {
      rank_ = kNoRank;
      return;
    }
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      Op& op = ranks_[rank_][Label(line, words[0])];
      (words[1] == "requires" ? op.requires_end : op.requires_start)
          .push_back(Label(line, words[2]));
      return;
    }
    ReadOp(line, words);
  }

  std::uint32_t Label(std::uint64_t line, std::string_view label) const {
    const auto found = labels_.find(std::string(label));
    if (found == labels_.end()) Fail(line, label, "no operation above has the label");
    return found->second;
  }

  void ReadOp(std::uint64_t line, std::span<const std::string_view> words) {
    if (++ops_ > kMostOps) Fail(line, "", "more than 10,000,000 operations");
    if (words[0].ends_with(':')) {
      const std::string label(words[0].substr(0, words[0].size() - 1));
      if (!labels_.emplace(label, static_cast<std::uint32_t>(ranks_[rank_].size())).second) {
        Fail(line, label, "the label is taken:");
      }
      words = words.subspan(1);
      if (words.empty()) Fail(line, label, "a label without an operation");
    }
    Op op{.line = line};
    std::size_t next = 2;
    if (words[0] == "calc" && words.size() >= 2) {
      op.amount = Number(line, words[1], 1'000'000'000'000'000);
    } else if ((words[0] == "send" || words[0] == "recv") && words.size() >= 4) {
      op.verb = words[0] == "send" ? Verb::kSend : Verb::kReceive;
      const std::string_view size = words[1];
      if (!size.ends_with('b') || words[2] != (op.verb == Verb::kSend ? "to" : "from")) {
        Fail(line, words[0], "is not complete", "send 8b to 1, recv 8b from 1");
      }
      op.amount = Number(line, size.substr(0, size.size() - 1), std::uint64_t{1} << 50);
      op.peer = static_cast<Rank>(Number(line, words[3], ranks_.size() - 1));
      next = 4;
    } else {
      Fail(line, words[0], "is no operation", "send, recv, calc, requires, irequires");
    }
    for (; next < words.size(); next += 2) {
      const bool known = words[next] == "tag" || words[next] == "cpu" || words[next] == "nic";
      if (!known || next + 1 == words.size())
        Fail(line, words[next], "is no option", "tag, cpu, nic");
      const std::uint64_t value = Number(line, words[next + 1], UINT32_MAX);
      if (words[next] == "tag") op.tag = static_cast<std::uint32_t>(value);
    }
    ranks_[rank_].push_back(std::move(op));
  }

  // Equal counts and sizes on both sides of each (source, target, tag).
  void MatchConnections() const {
    struct Side {
      std::vector<const Op*> sends, receives;
    };
    std::map<std::array<std::uint64_t, 3>, Side> connections;
    for (Rank r = 0; r < ranks_.size(); ++r) {
      for (const Op& op : ranks_[r]) {
        if (op.verb == Verb::kSend) connections[{r, op.peer, op.tag}].sends.push_back(&op);
        if (op.verb == Verb::kReceive) connections[{op.peer, r, op.tag}].receives.push_back(&op);
      }
    }
    for (const auto& [key, side] : connections) {
      const std::string name = "from " + std::to_string(key[0]) + " to " + std::to_string(key[1]) +
                               " tag " + std::to_string(key[2]);
      if (side.sends.size() != side.receives.size()) {
        const Op* op = side.sends.empty() ? side.receives.back() : side.sends.back();
        Fail(op->line, name,
             std::to_string(side.sends.size()) + " sends meet " +
                 std::to_string(side.receives.size()) + " receives:");
      }
      for (std::size_t i = 0; i < side.sends.size(); ++i) {
        if (side.sends[i]->amount != side.receives[i]->amount) {
          Fail(side.receives[i]->line, name, "the receive is of another size than its send:");
        }
      }
    }
  }

  // What op `i` waits for: what it requires, and what those require whose start it waits for.
  std::set<std::uint32_t> Requirements(Rank r, std::uint32_t i) const {
    std::set<std::uint32_t> result;
    std::set<std::uint32_t> seen{i};
    std::vector<std::uint32_t> open{i};
    while (!open.empty()) {
      const Op& op = ranks_[r][open.back()];
      open.pop_back();
      result.insert(op.requires_end.begin(), op.requires_end.end());
      for (const std::uint32_t other : op.requires_start) {
        if (seen.insert(other).second) open.push_back(other);
      }
    }
    if (result.contains(i)) Fail(ranks_[r][i].line, "", "the operation waits for itself");
    return result;
  }

  std::string file_;
  std::vector<std::vector<Op>> ranks_;
  Rank rank_ = kNoRank;
  std::uint64_t ops_ = 0;
  std::unordered_map<std::string, std::uint32_t> labels_;
};

}  // namespace

GoalSchedule ReadGoal(std::string_view text, std::string_view file_name) {
  Reader reader(file_name);
  reader.Read(text);
  return reader.Build();
}

bool LooksLikeGoal(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto words = Words(Code(text.substr(0, end)));
    if (!words.empty()) return words[0] == "num_ranks";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

}  // namespace windtunnel

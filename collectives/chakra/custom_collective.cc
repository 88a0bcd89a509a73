#include "collectives/chakra/custom_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "collectives/chakra/trace_reader.h"
#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "sim/error.h"

namespace windtunnel::chakra {
namespace {

constexpr std::uint32_t kMaxRanks = 65536;
constexpr std::uint64_t kMaxTag = UINT32_MAX;

std::filesystem::path FileOf(const std::filesystem::path& prefix, std::size_t rank) {
  return prefix.string() + fmt::format(".{}.et", rank);
}

[[noreturn]] void Fail(const std::string& file, std::string field, std::string value,
                       std::string problem, std::string expected) {
  throw ConfigError({.file = file,
                     .field = std::move(field),
                     .value = std::move(value),
                     .problem = std::move(problem),
                     .expected = std::move(expected)});
}

class Builder {
 public:
  Builder(std::string prefix, std::vector<Trace> traces)
      : prefix_(std::move(prefix)), traces_(std::move(traces)) {}

  CustomCollective Build() {
    for (Trace& trace : traces_) {
      for (std::string& warning : trace.warnings)
        collective_.warnings.push_back(std::move(warning));
    }
    std::optional<msccl::Program> program;
    if (const Trace& first = traces_.front(); !first.input_file.empty()) {
      program = msccl::ParseXml(first.input_file, first.file + " (input_file)");
      if (program->gpus.size() != traces_.size())
        Fail(prefix_, "files", std::to_string(traces_.size()),
             "ranks are missing, or too many: the program in the metadata has others",
             std::to_string(program->gpus.size()));
    }
    CollectTransfers();
    MatchTransfers();
    if (program) {
      CompareWith(*program);
      collective_.plan = msccl::MakePlan(*program, CountOf(*program), type_);
      collective_.has_program = true;
    } else {
      BuildPlan();
    }
    return std::move(collective_);
  }

 private:
  using Way = std::tuple<Rank, Rank, std::uint64_t>;  // From, to, tag.
  struct Ends {
    std::vector<std::uint64_t> sent;  // Bytes.
    std::vector<std::uint64_t> received;
  };

  void CollectTransfers() {
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      const Trace& trace = traces_[rank];
      for (const std::uint32_t index : trace.order) {
        const Node& node = trace.nodes[index];
        const std::string where = fmt::format("node {} '{}'", node.id, node.name);
        if (node.type == NodeType::kCompute) continue;
        if (node.type != NodeType::kSend && node.type != NodeType::kReceive) {
          Fail(trace.file, where, std::to_string(static_cast<int>(node.type)),
               "has no place in a collective", "sends, receives and computations");
        }
        const bool sends = node.type == NodeType::kSend;
        const std::uint64_t peer = sends ? *node.destination : *node.source;
        if (peer >= traces_.size() || peer == rank)
          Fail(trace.file, where, std::to_string(peer), "is no other rank of this collective",
               fmt::format("0 to {}", traces_.size() - 1));
        if (node.tag > kMaxTag)
          Fail(trace.file, where + " comm_tag", std::to_string(node.tag), "is out of range",
               "below 2^32");
        const auto self = static_cast<Rank>(rank);
        const auto other = static_cast<Rank>(peer);
        Ends& ends = ways_[sends ? Way{self, other, node.tag} : Way{other, self, node.tag}];
        (sends ? ends.sent : ends.received).push_back(*node.bytes);
        ++collective_.transfers;
      }
    }
  }

  void MatchTransfers() const {
    for (const auto& [way, ends] : ways_) {
      if (ends.sent == ends.received) continue;
      const auto& [from, to, tag] = way;
      const std::string field = fmt::format("rank {} -> rank {}, tag {}", from, to, tag);
      if (ends.sent.size() != ends.received.size())
        Fail(prefix_, field, fmt::format("{} sends", ends.sent.size()),
             "sends and receives do not meet", fmt::format("{}", ends.received.size()));
      const auto [sent, received] =
          std::mismatch(ends.sent.begin(), ends.sent.end(), ends.received.begin());
      Fail(prefix_, field, fmt::format("{} bytes sent", *sent),
           fmt::format("sizes of transfer {} differ", sent - ends.sent.begin()),
           fmt::format("{}", *received));
    }
  }

  // Compares what travels between every two ranks, in any order.
  void CompareWith(const msccl::Program& program) {
    std::map<std::pair<Rank, Rank>, std::vector<std::uint64_t>> chunks, bytes;
    for (Rank rank = 0; rank < program.gpus.size(); ++rank) {
      for (const msccl::ThreadBlock& block : program.gpus[rank].blocks) {
        for (const msccl::Step& step : block.steps) {
          using msccl::StepType;
          if (step.type == StepType::kSend || step.type == StepType::kReceiveCopySend ||
              step.type == StepType::kReceiveReduceSend ||
              step.type == StepType::kReceiveReduceCopySend)
            chunks[{rank, static_cast<Rank>(block.send)}].push_back(step.count);
        }
      }
    }
    for (const auto& [way, ends] : ways_) {
      auto& list = bytes[{std::get<0>(way), std::get<1>(way)}];
      list.insert(list.end(), ends.sent.begin(), ends.sent.end());
    }
    for (auto* sizes : {&chunks, &bytes}) {
      for (auto& [way, list] : *sizes) std::sort(list.begin(), list.end());
    }
    if (!chunks.empty() && !bytes.empty() && chunks.begin()->second.front() > 0)
      chunk_bytes_ = bytes.begin()->second.front() / chunks.begin()->second.front();
    for (auto& [way, list] : chunks) {
      for (std::uint64_t& size : list) size *= chunk_bytes_;
    }
    if (chunks != bytes)
      Fail(prefix_, "input_file", program.name,
           "the transfers are not those of the program in the metadata",
           fmt::format("chunks of {} bytes between the same ranks", chunk_bytes_));
  }
  std::uint64_t CountOf(const msccl::Program& program) {
    type_ = chunk_bytes_ % SizeOf(DataType::kFloat) == 0 ? DataType::kFloat : DataType::kUint8;
    return msccl::SmallestCount(program) * std::max<std::uint64_t>(chunk_bytes_ / SizeOf(type_), 1);
  }

  // Where a node runs: sends to one peer follow each other, so do receives from one, and
  // computations.
  struct Actor {
    NodeType type = NodeType::kCompute;
    Rank peer = 0;
    std::uint64_t tag = 0;
    friend auto operator<=>(const Actor&, const Actor&) = default;
  };
  static Actor ActorOf(const Node& node) {
    if (node.type == NodeType::kSend)
      return {node.type, static_cast<Rank>(*node.destination), node.tag};
    if (node.type == NodeType::kReceive)
      return {node.type, static_cast<Rank>(*node.source), node.tag};
    return {};
  }

  void BuildPlan() {
    std::uint64_t largest = 1;
    for (const auto& [way, ends] : ways_) {
      for (const std::uint64_t size : ends.sent) largest = std::max(largest, size);
    }
    Plan& plan = collective_.plan;
    plan.request = {.function = Function::kAllReduce,
                    .rank_count = static_cast<std::uint32_t>(traces_.size()),
                    .type = DataType::kUint8,
                    .count = largest};
    plan.algorithm = "Chakra";
    plan.scratch_count = largest;
    // Tags can be any numbers; channels are counted.
    std::map<std::uint64_t, std::uint32_t> channels;
    for (const auto& [way, ends] : ways_) channels.try_emplace(std::get<2>(way), 0);
    std::uint32_t next = 0;
    for (auto& [tag, channel] : channels) channel = next++;
    plan.channel_count = std::max(next, 1U);
    for (Rank rank = 0; rank < traces_.size(); ++rank) AddRank(rank, channels);
  }

  void AddRank(Rank rank, const std::map<std::uint64_t, std::uint32_t>& channels) {
    Plan& plan = collective_.plan;
    const Trace& trace = traces_[rank];
    std::map<Actor, std::uint32_t> blocks;
    for (const Node& node : trace.nodes) blocks.try_emplace(ActorOf(node), 0);
    std::vector<std::shared_ptr<ListProgram>> programs;
    for (auto& [actor, block] : blocks) {
      block = static_cast<std::uint32_t>(plan.blocks.size());
      programs.push_back(std::make_shared<ListProgram>());
      const bool moves = actor.type != NodeType::kCompute;
      plan.blocks.push_back({rank, moves ? channels.at(actor.tag) : 0,
                             actor.type == NodeType::kSend      ? "chakra send"
                             : actor.type == NodeType::kReceive ? "chakra receive"
                                                                : "chakra compute",
                             programs.back()});
    }
    const std::uint32_t first = plan.blocks.empty() || blocks.empty() ? 0 : blocks.begin()->second;
    std::map<std::uint64_t, Dependency> done;  // By id of node.
    for (const std::uint32_t index : trace.order) {
      const Node& node = trace.nodes[index];
      const Actor actor = ActorOf(node);
      const std::uint32_t block = blocks.at(actor);
      ListProgram& program = *programs[block - first];
      std::vector<Dependency> before;
      for (const std::uint64_t parent : node.data_deps) before.push_back(done.at(parent));
      const Peer peer{actor.peer, 0};
      PlanOp op;
      op.step = static_cast<std::uint32_t>(program.size());
      op.wait_for = before;
      if (node.type != NodeType::kCompute) {
        op.count = *node.bytes;
        op.has_source = node.type == NodeType::kSend;
        op.has_destination = !op.has_source;
        op.destination = {BufferKind::kScratch, 0};
        (op.has_source ? op.send_to : op.receive_from) = {&peer, 1};
      }
      done[node.id] = {block, program.size()};
      program.Append(op);
    }
  }

  std::string prefix_;
  std::vector<Trace> traces_;
  CustomCollective collective_;
  std::map<Way, Ends> ways_;
  std::uint64_t chunk_bytes_ = 0;
  DataType type_ = DataType::kFloat;
};

}  // namespace

bool IsPrefix(const std::filesystem::path& prefix) {
  return std::filesystem::exists(FileOf(prefix, 0));
}

CustomCollective ReadCollective(const std::filesystem::path& prefix) {
  std::vector<Trace> traces;
  while (traces.size() < kMaxRanks && std::filesystem::exists(FileOf(prefix, traces.size())))
    traces.push_back(ReadTrace(FileOf(prefix, traces.size())));
  if (traces.empty()) {
    throw ConfigError({.file = FileOf(prefix, 0).string(),
                       .problem = "cannot be read",
                       .expected = "one file per rank, from 0 up"});
  }
  return Builder(prefix.string(), std::move(traces)).Build();
}

std::string Prove(const CustomCollective& collective) {
  if (collective.has_program) return ProveCorrect(collective.plan);
  try {
    RunCounting(collective.plan);
  } catch (const SimulationError& error) {
    return error.what();
  }
  return {};
}

}  // namespace windtunnel::chakra

#include "collectives/msccl/mscclpp_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/functional.h"
#include "collectives/msccl/mscclpp_operations.h"
#include "sim/error.h"

namespace windtunnel::mscclpp {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxFileBytes = 64 << 20;
constexpr std::uint32_t kMaxRanks = 65536;
constexpr std::uint32_t kMaxChunks = 1 << 24;
constexpr std::array<std::pair<std::string_view, Function>, 6> kCollectives = {{
    {"allreduce", Function::kAllReduce},
    {"allgather", Function::kAllGather},
    {"reducescatter", Function::kReduceScatter},
    {"reduce_scatter", Function::kReduceScatter},
    {"alltoall", Function::kAllToAll},
    {"broadcast", Function::kBroadcast},
}};

class Reader {
 public:
  Reader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  ExecutionPlan Read() {
    Json root;
    try {
      root = Json::parse(text_);
    } catch (const Json::parse_error& error) {
      const std::size_t at = std::min(error.byte, text_.size());
      const auto line =
          1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      throw ConfigError({.file = file_,
                         .line = static_cast<std::uint64_t>(line),
                         .problem = fmt::format("is not JSON at byte {}", error.byte)});
    }
    if (!root.is_object()) Fail("", "", "is not an object", "an MSCCL++ execution plan");
    plan_.file = file_;
    plan_.name = Text(root, "", "name");
    const std::string collective = Text(root, "", "collective");
    const auto* found = std::find_if(kCollectives.begin(), kCollectives.end(),
                                     [&](const auto& entry) { return entry.first == collective; });
    if (found == kCollectives.end())
      Fail("collective", collective, "what it should compute is not known",
           "allreduce, allgather, reducescatter, alltoall or broadcast");
    plan_.function = found->second;
    const std::string protocol = Text(root, "", "protocol");
    if (protocol != "LL" && protocol != "Simple")
      Fail("protocol", protocol, "unknown protocol", "LL or Simple");
    plan_.protocol = protocol == "LL" ? Protocol::kLl : Protocol::kSimple;
    const Json& in_place = Get(root, "", "inplace");
    if (!in_place.is_boolean()) Fail("inplace", in_place.dump(), "is no truth value", "");
    plan_.in_place = in_place.get<bool>();
    if (root.contains("min_message_size"))
      plan_.min_bytes = Number(root, "", "min_message_size", UINT64_MAX);
    if (root.contains("max_message_size"))
      plan_.max_bytes = Number(root, "", "max_message_size", UINT64_MAX);
    const Json& gpus = List(root, "", "gpus");
    if (gpus.empty() || gpus.size() > kMaxRanks)
      Fail("gpus", std::to_string(gpus.size()), "is no number of ranks",
           fmt::format("1 to {}", kMaxRanks));
    ranks_ = static_cast<std::uint32_t>(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) ReadGpu(gpus[i], i);
    return std::move(plan_);
  }

 private:
  // Memory and switch of a rank as the thread blocks name them.
  struct Remote {
    Rank rank = 0;
    BufferKind buffer = BufferKind::kInput;
  };
  struct Group {
    BufferKind buffer = BufferKind::kInput;
    std::vector<Rank> members;
  };
  struct Shared {
    std::vector<Remote> remotes;
    std::vector<Group> groups;
  };
  // What indices in one thread block stand for.
  struct Local {
    std::map<std::string, std::vector<std::uint32_t>> channels;  // By type, ids of the rank.
    std::map<std::string, std::vector<std::uint32_t>> remotes;
  };

  [[noreturn]] void Fail(std::string field, std::string value, std::string problem,
                         std::string expected, std::string nearest = {}) const {
    throw ConfigError({.file = file_,
                       .field = std::move(field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected),
                       .nearest = std::move(nearest)});
  }
  static std::string Join(const std::string& where, std::string_view key) {
    return where.empty() ? std::string(key) : fmt::format("{}.{}", where, key);
  }
  const Json& Get(const Json& node, const std::string& where, const char* key) const {
    if (!node.is_object()) Fail(where, node.dump(), "is not an object", "");
    const auto found = node.find(key);
    if (found == node.end()) Fail(Join(where, key), "", "is missing", "");
    return *found;
  }
  const Json& List(const Json& node, const std::string& where, const char* key) const {
    const Json& list = Get(node, where, key);
    if (!list.is_array()) Fail(Join(where, key), list.dump(), "is not a list", "");
    return list;
  }
  // A list that may be left out.
  const Json& ListIfAny(const Json& node, const std::string& where, const char* key) const {
    static const Json kEmpty = Json::array();
    return node.is_object() && !node.contains(key) ? kEmpty : List(node, where, key);
  }
  std::string Text(const Json& node, const std::string& where, const char* key) const {
    const Json& text = Get(node, where, key);
    if (!text.is_string()) Fail(Join(where, key), text.dump(), "is not a text", "");
    return text.get<std::string>();
  }
  std::uint64_t Value(const Json& value, const std::string& where, std::uint64_t high) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > high)
      Fail(where, value.dump(), "is not allowed here", fmt::format("a number from 0 to {}", high));
    return value.get<std::uint64_t>();
  }
  std::uint64_t Number(const Json& node, const std::string& where, const char* key,
                       std::uint64_t high) const {
    return Value(Get(node, where, key), Join(where, key), high);
  }
  std::uint32_t Count(const Json& node, const std::string& where, const char* key,
                      std::uint32_t high) const {
    return static_cast<std::uint32_t>(Number(node, where, key, high));
  }
  BufferKind Buffer(const Json& node, const std::string& where, const char* key) const {
    const std::string text = Text(node, where, key);
    if (text == "i") return BufferKind::kInput;
    if (text == "o") return BufferKind::kOutput;
    if (text == "s") return BufferKind::kScratch;
    Fail(Join(where, key), text, "unknown buffer", "i, o or s");
  }

  void ReadGpu(const Json& node, std::size_t rank) {
    const std::string where = fmt::format("gpus[{}]", rank);
    if (Number(node, where, "id", kMaxRanks) != rank)
      Fail(where + ".id", Get(node, where, "id").dump(), "ids have a gap", std::to_string(rank));
    Gpu gpu;
    gpu.input_chunks = Count(node, where, "input_chunks", kMaxChunks);
    gpu.output_chunks = Count(node, where, "output_chunks", kMaxChunks);
    gpu.scratch_chunks = Count(node, where, "scratch_chunks", kMaxChunks);
    const Shared shared = ReadShared(node, where, gpu);
    const Json& blocks = List(node, where, "threadblocks");
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::string at = fmt::format("{}.threadblocks[{}]", where, b);
      if (Number(blocks[b], at, "id", UINT32_MAX) != b)
        Fail(at + ".id", Get(blocks[b], at, "id").dump(), "ids have a gap", std::to_string(b));
      gpu.blocks.push_back(ReadBlock(blocks[b], at, gpu, shared));
    }
    plan_.gpus.push_back(std::move(gpu));
  }

  Shared ReadShared(const Json& node, const std::string& where, Gpu& gpu) {
    Shared shared;
    std::vector<Rank> port_peers;
    const Json& channels = ListIfAny(node, where, "channels");
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const std::string at = fmt::format("{}.channels[{}]", where, c);
      const std::string type = Text(channels[c], at, "channel_type");
      if (type == "switch") {
        const BufferKind buffer = Buffer(channels[c], at, "buffer_type");
        const Json& groups = List(channels[c], at, "rank_groups");
        for (const Json& group : groups) {
          Group read{buffer, {}};
          for (const Json& member : List(group, at + ".rank_groups", "ranks"))
            read.members.push_back(RankIn(member, at + ".rank_groups.ranks"));
          if (read.members.empty()) Fail(at + ".rank_groups", "", "a group without ranks", "");
          shared.groups.push_back(std::move(read));
        }
        continue;
      }
      if (type != "memory" && type != "port")
        Fail(at + ".channel_type", type, "unknown channel", "memory, port or switch");
      for (const Json& peer : List(channels[c], at, "connected_to")) {
        (type == "memory" ? gpu.channel_peers : port_peers)
            .push_back(RankIn(peer, at + ".connected_to"));
      }
    }
    gpu.memory_channels = static_cast<std::uint32_t>(gpu.channel_peers.size());
    gpu.channel_peers.insert(gpu.channel_peers.end(), port_peers.begin(), port_peers.end());
    const Json& remotes = ListIfAny(node, where, "remote_buffers");
    for (std::size_t b = 0; b < remotes.size(); ++b) {
      const std::string at = fmt::format("{}.remote_buffers[{}]", where, b);
      shared.remotes.push_back(
          {RankIn(Get(remotes[b], at, "rank"), at + ".rank"), Buffer(remotes[b], at, "type")});
    }
    return shared;
  }
  Rank RankIn(const Json& value, const std::string& where) const {
    return static_cast<Rank>(Value(value, where, ranks_ - 1));
  }

  ThreadBlock ReadBlock(const Json& node, const std::string& where, const Gpu& gpu,
                        const Shared& shared) {
    Local local;
    for (const Json& entry : ListIfAny(node, where, "channels")) {
      const std::string at = where + ".channels";
      const std::string type = Text(entry, at, "channel_type");
      const std::size_t memory = gpu.memory_channels;
      const std::size_t have = type == "memory" ? memory
                               : type == "port" ? gpu.channel_peers.size() - memory
                                                : shared.groups.size();
      for (const Json& id : List(entry, at, "channel_ids")) {
        const auto index = Index(id, at + ".channel_ids", have);
        local.channels[type].push_back(type == "port" ? index + static_cast<std::uint32_t>(memory)
                                                      : index);
      }
    }
    for (const Json& entry : ListIfAny(node, where, "remote_buffer_refs")) {
      const std::string at = where + ".remote_buffer_refs";
      const std::string type = Text(entry, at, "access_channel_type");
      for (const Json& id : List(entry, at, "remote_buffer_ids"))
        local.remotes[type].push_back(Index(id, at + ".remote_buffer_ids", shared.remotes.size()));
    }
    ThreadBlock block;
    const Json& ops = List(node, where, "ops");
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::string at = fmt::format("{}.ops[{}]", where, i);
      block.operations.push_back(ReadOperation(ops[i], at, local, shared));
    }
    return block;
  }
  std::uint32_t Index(const Json& value, const std::string& where, std::size_t have) const {
    if (have == 0) Fail(where, value.dump(), "names something that does not exist", "none is left");
    return static_cast<std::uint32_t>(Value(value, where, have - 1));
  }

  Operation ReadOperation(const Json& node, const std::string& where, const Local& local,
                          const Shared& shared) {
    Operation op;
    op.name = Text(node, where, "name");
    const OperationForm* form = FindForm(op.name);
    if (form == nullptr)
      Fail(where, op.name, "unknown operation", JoinNames(OperationNames()),
           NearestName(op.name, OperationNames()));
    if (!form->refusal.empty())
      Fail(where, op.name, "has no counterpart here: " + std::string(form->refusal), "");
    if (node.contains("tbg_info"))
      Fail(where, op.name, "has no counterpart here: several thread blocks share it", "");
    const std::string type = node.contains("channel_type") ? Text(node, where, "channel_type") : "";
    for (const Json& entry : ListIfAny(node, where, "src_buff"))
      op.sources.push_back(ReadPlace(entry, where + ".src_buff", type, local, shared));
    for (const Json& entry : ListIfAny(node, where, "dst_buff"))
      op.destinations.push_back(ReadPlace(entry, where + ".dst_buff", type, local, shared));
    if (form->needs_channels || form->signals) {
      if (type != "memory" && type != "port")
        Fail(where + ".channel_type", type, "cannot carry signals", "memory or port");
      const auto channels = local.channels.find(type);
      const std::size_t have = channels == local.channels.end() ? 0 : channels->second.size();
      for (const Json& id : List(node, where, "channel_ids")) {
        op.channels.push_back(channels->second[Index(id, where + ".channel_ids", have)]);
      }
    }
    if (form->kind == OperationKind::kBarrier) {
      op.barrier = Count(node, where, "barrier_id", UINT32_MAX);
      op.barrier_blocks = Count(node, where, "num_threadblocks", UINT32_MAX);
    }
    if (node.contains("reduce_op")) ReadReduction(Text(node, where, "reduce_op"), where);
    CheckShape(op, *form, where);
    return op;
  }

  void ReadReduction(const std::string& name, const std::string& where) {
    if (name != "sum" && name != "min") Fail(where + ".reduce_op", name, "unknown", "sum or min");
    const ReduceOp op = name == "sum" ? ReduceOp::kSum : ReduceOp::kMin;
    if (seen_reduction_ && op != plan_.op)
      Fail(where + ".reduce_op", name, "differs from an earlier one", "one reduction per plan");
    seen_reduction_ = true;
    plan_.op = op;
  }

  Place ReadPlace(const Json& node, const std::string& where, const std::string& type,
                  const Local& local, const Shared& shared) const {
    Place place;
    place.chunk = Count(node, where, "index", kMaxChunks);
    place.count = Count(node, where, "size", kMaxChunks);
    if (node.contains("switch_channel_id")) {
      const auto groups = local.channels.find("switch");
      const std::size_t have = groups == local.channels.end() ? 0 : groups->second.size();
      const auto id = Index(node["switch_channel_id"], where + ".switch_channel_id", have);
      const Group& group = shared.groups[groups->second[id]];
      place.buffer = group.buffer;
      place.members = group.members;
    } else if (node.contains("buffer_id")) {
      const auto refs = local.remotes.find(type);
      const std::size_t have = refs == local.remotes.end() ? 0 : refs->second.size();
      const auto id = Index(node["buffer_id"], where + ".buffer_id", have);
      const Remote& remote = shared.remotes[refs->second[id]];
      place.buffer = remote.buffer;
      place.rank = static_cast<std::int32_t>(remote.rank);
    } else {
      place.buffer = Buffer(node, where, "type");
    }
    return place;
  }

  // Numbers and sizes of the places.
  void CheckShape(const Operation& op, const OperationForm& form, const std::string& where) const {
    const std::size_t in = op.sources.size();
    const std::size_t out = op.destinations.size();
    const auto fail = [&](const char* what) { Fail(where, op.name, what, ""); };
    switch (form.kind) {
      case OperationKind::kMove:
        if (in == 0 || out == 0 || (in != out && in != 1))
          fail("sources and destinations do not pair up");
        for (std::size_t i = 0; i < out; ++i) {
          if (op.sources[in == 1 ? 0 : i].count != op.destinations[i].count)
            fail("source and destination differ in size");
        }
        break;
      case OperationKind::kCombine:
      case OperationKind::kSwitchReduceStore:
      case OperationKind::kSwitchStore:
        if (in == 0 || out == 0) fail("needs sources and destinations");
        for (const auto* places : {&op.sources, &op.destinations}) {
          for (const Place& place : *places) {
            if (place.count != op.sources.front().count) fail("its buffers differ in size");
          }
        }
        break;
      default:
        break;
    }
    const bool from_switch = in > 0 && !op.sources.front().members.empty();
    const bool to_switch = out > 0 && !op.destinations.front().members.empty();
    if (from_switch != (form.kind == OperationKind::kSwitchReduceStore) ||
        to_switch != (form.kind == OperationKind::kSwitchReduceStore ||
                      form.kind == OperationKind::kSwitchStore))
      fail("names a switch where it has none, or none where it needs one");
  }

  std::string_view text_;
  std::string file_;
  std::uint32_t ranks_ = 0;
  bool seen_reduction_ = false;
  ExecutionPlan plan_;
};

}  // namespace

ExecutionPlan ParseJson(std::string_view text, const std::string& file) {
  return Reader(text, file).Read();
}

ExecutionPlan ReadJson(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError({.file = file.string(), .problem = "cannot be read"});
  std::error_code error;
  if (std::filesystem::file_size(file, error) > kMaxFileBytes && !error)
    throw ConfigError({.file = file.string(), .problem = "is too large", .expected = "64 MiB"});
  std::ostringstream text;
  text << in.rdbuf();
  return ParseJson(text.str(), file.string());
}

std::uint64_t SmallestCount(const ExecutionPlan& plan) {
  const bool by_output = plan.function == Function::kReduceScatter;
  const Gpu& first = plan.gpus.front();
  std::uint64_t chunks = by_output ? first.output_chunks : first.input_chunks;
  const std::size_t parts = plan.function == Function::kAllToAll ? plan.gpus.size() : 1;
  for (const Gpu& gpu : plan.gpus) {
    const bool reads = plan.function != Function::kBroadcast || &gpu == &first;
    if (reads && (by_output ? gpu.output_chunks : gpu.input_chunks) != chunks)
      chunks = 0;  // Answered below: ranks cut their buffers differently.
  }
  if (chunks == 0 || chunks % parts != 0) {
    throw ConfigError({.file = plan.file,
                       .field = by_output ? "output_chunks" : "input_chunks",
                       .value = std::to_string(chunks),
                       .problem = "does not give every rank the same number of chunks",
                       .expected = fmt::format("a multiple of {}, above 0", parts)});
  }
  return chunks / parts;
}

std::string Prove(const ExecutionPlan& plan) {
  const Plan smallest = MakePlan(plan, SmallestCount(plan), DataType::kInt64);
  if (std::string fault = ProveCorrect(smallest); !fault.empty()) return fault;
  // One-sided writes can race with what their target does: the other order has to agree.
  RankBuffers buffers = MakeBuffers(smallest.request);
  FillInputs(smallest.request, buffers);
  try {
    RunFunctional(smallest, buffers, {.order = BlockOrder::kNewestFirst});
  } catch (const SimulationError& error) {
    return error.what();
  }
  const std::uint64_t wrong = CountWrong(smallest.request, buffers);
  if (wrong == 0) return {};
  return fmt::format("{} chunks depend on the order in which blocks of the {} ranks run", wrong,
                     plan.gpus.size());
}

}  // namespace windtunnel::mscclpp

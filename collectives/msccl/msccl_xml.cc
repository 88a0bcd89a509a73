#include "collectives/msccl/msccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <numeric>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "collectives/functional.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::msccl {
namespace {

constexpr std::array<std::string_view, 9> kStepNames = {"s",    "r",   "rcs", "rrs", "rrc",
                                                        "rrcs", "cpy", "re",  "nop"};
constexpr std::array<std::pair<std::string_view, Function>, 5> kCollectives = {{
    {"allreduce", Function::kAllReduce},
    {"allgather", Function::kAllGather},
    {"reduce_scatter", Function::kReduceScatter},
    {"alltoall", Function::kAllToAll},
    {"broadcast", Function::kBroadcast},
}};
constexpr std::uint64_t kMaxFileBytes = 64 << 20;
constexpr std::uint32_t kMaxRanks = 65536;

class Reader {
 public:
  Reader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Program Read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_buffer(text_.data(), text_.size(), pugi::parse_default | pugi::parse_doctype);
    if (!parsed) {
      throw ConfigError({.file = file_,
                         .line = LineAt(static_cast<std::size_t>(parsed.offset)),
                         .problem = std::string("is not XML: ") + parsed.description()});
    }
    for (const pugi::xml_node node : document.children()) {
      if (node.type() == pugi::node_doctype) Fail(node, "DOCTYPE", "", "is refused", "");
    }
    const pugi::xml_node algo = document.child("algo");
    if (!algo) Fail(document.first_child(), "algo", "", "element is missing", "an MSCCL file");
    ReadAlgorithm(algo);
    Check();
    return std::move(program_);
  }

 private:
  std::uint64_t LineAt(std::size_t offset) const {
    offset = std::min(offset, text_.size());
    return 1 + static_cast<std::uint64_t>(std::count(
                   text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }
  std::uint64_t LineOf(const pugi::xml_node& node) const {
    return node && node.offset_debug() >= 0 ? LineAt(static_cast<std::size_t>(node.offset_debug()))
                                            : 0;
  }
  [[noreturn]] void Fail(const pugi::xml_node& node, std::string field, std::string value,
                         std::string problem, std::string expected,
                         std::string nearest = {}) const {
    throw ConfigError({.file = file_,
                       .line = LineOf(node),
                       .field = std::move(field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected),
                       .nearest = std::move(nearest)});
  }
  void CheckNames(const pugi::xml_node& node, const std::vector<std::string>& attributes,
                  std::string_view child) const {
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string name = attribute.name();
      if (std::find(attributes.begin(), attributes.end(), name) == attributes.end()) {
        Fail(node, node.name(), name, "unknown attribute", "one of " + JoinNames(attributes),
             NearestName(name, attributes));
      }
    }
    for (const pugi::xml_node below : node.children()) {
      if (below.type() == pugi::node_element && below.name() != child)
        Fail(below, node.name(), below.name(), "unknown element", std::string(child));
    }
  }
  std::int64_t Integer(const pugi::xml_node& node, const char* name, std::int64_t low,
                       std::int64_t high) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    const std::string field = fmt::format("<{} {}>", node.name(), name);
    if (!attribute) Fail(node, field, "", "is missing", "a number");
    const std::string_view text = attribute.value();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
      Fail(node, field, std::string(text), "is not allowed here",
           fmt::format("a number from {} to {}", low, high));
    }
    return value;
  }
  std::uint32_t Count(const pugi::xml_node& node, const char* name, std::int64_t high) const {
    return static_cast<std::uint32_t>(Integer(node, name, 0, high));
  }

  void ReadAlgorithm(const pugi::xml_node& algo) {
    CheckNames(algo,
               {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace",
                "outofplace", "minBytes", "maxBytes", "redop"},
               "gpu");
    program_.file = file_;
    program_.name = algo.attribute("name").value();
    const std::string_view protocol = algo.attribute("proto").value();
    const auto* found = std::find(std::begin(kProtocolNames), std::end(kProtocolNames), protocol);
    if (found == std::end(kProtocolNames))
      Fail(algo, "<algo proto>", std::string(protocol), "unknown protocol", "Simple, LL or LL128");
    program_.protocol = static_cast<Protocol>(found - std::begin(kProtocolNames));
    program_.channel_count = static_cast<std::uint32_t>(Integer(algo, "nchannels", 1, 1024));
    program_.chunks_per_loop =
        static_cast<std::uint32_t>(Integer(algo, "nchunksperloop", 1, 1 << 24));
    const std::string_view name = algo.attribute("coll").value();
    const auto* collective = std::find_if(kCollectives.begin(), kCollectives.end(),
                                          [&](const auto& entry) { return entry.first == name; });
    if (collective == kCollectives.end()) {
      Fail(algo, "<algo coll>", std::string(name), "what it should compute is not known",
           "allreduce, allgather, reduce_scatter, alltoall or broadcast");
    }
    program_.function = collective->second;
    program_.in_place = algo.attribute("inplace").as_int(0) != 0;
    program_.out_of_place = algo.attribute("outofplace").as_int(program_.in_place ? 0 : 1) != 0;
    if (!program_.in_place && !program_.out_of_place)
      Fail(algo, "<algo inplace>", "0", "serves no call", "inplace or outofplace 1");
    program_.min_bytes = algo.attribute("minBytes").as_ullong(0);
    program_.max_bytes = algo.attribute("maxBytes").as_ullong(UINT64_MAX);
    ranks_ = static_cast<std::int64_t>(Integer(algo, "ngpus", 1, kMaxRanks));
    for (const pugi::xml_node gpu : algo.children("gpu")) ReadGpu(gpu);
    if (static_cast<std::int64_t>(program_.gpus.size()) != ranks_) {
      Fail(algo, "<algo ngpus>", std::to_string(ranks_), "does not fit the number of gpu elements",
           std::to_string(program_.gpus.size()));
    }
  }

  void ReadGpu(const pugi::xml_node& node) {
    CheckNames(node, {"id", "i_chunks", "o_chunks", "s_chunks"}, "tb");
    const auto id = static_cast<std::int64_t>(program_.gpus.size());
    if (Integer(node, "id", 0, kMaxRanks) != id)
      Fail(node, "<gpu id>", node.attribute("id").value(), "ids have a gap", std::to_string(id));
    Gpu gpu;
    gpu.input_chunks = Count(node, "i_chunks", 1 << 24);
    gpu.output_chunks = Count(node, "o_chunks", 1 << 24);
    gpu.scratch_chunks = Count(node, "s_chunks", 1 << 24);
    for (const pugi::xml_node tb : node.children("tb")) ReadBlock(tb, gpu);
    program_.gpus.push_back(std::move(gpu));
  }

  void ReadBlock(const pugi::xml_node& node, Gpu& gpu) {
    CheckNames(node, {"id", "send", "recv", "chan"}, "step");
    const auto id = static_cast<std::int64_t>(gpu.blocks.size());
    if (Integer(node, "id", 0, 1 << 20) != id)
      Fail(node, "<tb id>", node.attribute("id").value(), "ids have a gap", std::to_string(id));
    ThreadBlock block;
    block.send = static_cast<std::int32_t>(Integer(node, "send", -1, ranks_ - 1));
    block.receive = static_cast<std::int32_t>(Integer(node, "recv", -1, ranks_ - 1));
    block.channel = Count(node, "chan", std::int64_t{program_.channel_count} - 1);
    for (const pugi::xml_node step : node.children("step")) ReadStep(step, block);
    gpu.blocks.push_back(std::move(block));
  }

  void ReadStep(const pugi::xml_node& node, ThreadBlock& block) {
    CheckNames(
        node,
        {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"},
        "");
    const auto index = static_cast<std::int64_t>(block.steps.size());
    if (Integer(node, "s", 0, 1 << 24) != index)
      Fail(node, "<step s>", node.attribute("s").value(), "steps have a gap",
           std::to_string(index));
    const std::string_view type = node.attribute("type").value();
    const auto* found = std::find(kStepNames.begin(), kStepNames.end(), type);
    if (found == kStepNames.end())
      Fail(node, "<step type>", std::string(type), "unknown step",
           "s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
    Step step;
    step.type = static_cast<StepType>(found - kStepNames.begin());
    step.line = static_cast<std::uint32_t>(LineOf(node));
    step.source = Buffer(node, "srcbuf");
    step.destination = Buffer(node, "dstbuf");
    // -1 is how some generators spell "not used".
    step.source_chunk =
        static_cast<std::uint32_t>(std::max<std::int64_t>(Integer(node, "srcoff", -1, 1 << 24), 0));
    step.destination_chunk =
        static_cast<std::uint32_t>(std::max<std::int64_t>(Integer(node, "dstoff", -1, 1 << 24), 0));
    step.count = Count(node, "cnt", 71);  // The runtime's limit: below 72.
    step.wait_block = static_cast<std::int32_t>(Integer(node, "depid", -1, 1 << 20));
    step.wait_step = static_cast<std::int32_t>(Integer(node, "deps", -1, 1 << 24));
    const bool sends = step.type == StepType::kSend || step.type == StepType::kReceiveCopySend ||
                       step.type == StepType::kReceiveReduceSend ||
                       step.type == StepType::kReceiveReduceCopySend;
    const bool receives =
        step.type >= StepType::kReceive && step.type <= StepType::kReceiveReduceCopySend;
    if (sends && block.send < 0)
      Fail(node, "<step type>", std::string(type), "the block has no peer to send to", "send >= 0");
    if (receives && block.receive < 0)
      Fail(node, "<step type>", std::string(type), "the block has no peer to receive from",
           "recv >= 0");
    block.steps.push_back(step);
  }

  BufferKind Buffer(const pugi::xml_node& node, const char* name) const {
    const std::string_view text = node.attribute(name).value();
    if (text == "i") return BufferKind::kInput;
    if (text == "o") return BufferKind::kOutput;
    if (text == "s") return BufferKind::kScratch;
    Fail(node, fmt::format("<step {}>", name), std::string(text), "unknown buffer", "i, o or s");
  }

  void FailAt(std::uint32_t line, std::string field, std::string value, std::string problem,
              std::string expected) const {
    throw ConfigError({.file = file_,
                       .line = line,
                       .field = std::move(field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }

  // What can only be seen with everything read.
  void Check() const {
    for (std::size_t rank = 0; rank < program_.gpus.size(); ++rank) {
      const Gpu& gpu = program_.gpus[rank];
      std::set<std::array<std::int64_t, 3>> ends;
      for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
        const ThreadBlock& block = gpu.blocks[b];
        const std::string where = fmt::format("gpu {} tb {}", rank, b);
        for (const auto& [peer, way] : {std::pair{block.send, 0}, std::pair{block.receive, 1}}) {
          if (peer >= 0 && !ends.insert({peer, block.channel, way}).second) {
            FailAt(0, where, std::to_string(peer),
                   "a second block on the same connection and channel", "one block per direction");
          }
        }
        for (const Step& step : block.steps) {
          if (step.wait_block < 0) continue;
          const auto other = static_cast<std::size_t>(step.wait_block);
          if (other >= gpu.blocks.size() || step.wait_step < 0 ||
              static_cast<std::size_t>(step.wait_step) >= gpu.blocks[other].steps.size()) {
            FailAt(step.line, where + " depid",
                   fmt::format("{}:{}", step.wait_block, step.wait_step),
                   "waits for a step that does not exist", "a step of a block of the same gpu");
          }
        }
      }
    }
  }

  std::string_view text_;
  std::string file_;
  std::int64_t ranks_ = 0;
  Program program_;
};

bool Sends(StepType type) {
  return type == StepType::kSend || type == StepType::kReceiveCopySend ||
         type == StepType::kReceiveReduceSend || type == StepType::kReceiveReduceCopySend;
}
bool Receives(StepType type) {
  return type >= StepType::kReceive && type <= StepType::kReceiveReduceCopySend;
}
bool ReadsSource(StepType type) {
  return type == StepType::kSend || type == StepType::kReceiveReduceSend ||
         type == StepType::kReceiveReduceCopy || type == StepType::kReceiveReduceCopySend ||
         type == StepType::kCopy;
}
bool Stores(StepType type) {
  return type == StepType::kReceive || type == StepType::kReceiveCopySend ||
         type == StepType::kReceiveReduceCopy || type == StepType::kReceiveReduceCopySend ||
         type == StepType::kCopy;
}

// Parts of the large buffer that belong to one rank each.
std::uint32_t PartsOf(const Program& program) {
  switch (program.function) {
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kAllToAll:
      return static_cast<std::uint32_t>(program.gpus.size());
    default:
      return 1;
  }
}

}  // namespace

std::string_view Name(StepType type) { return kStepNames[static_cast<std::size_t>(type)]; }

Program ParseXml(std::string_view text, const std::string& file) {
  return Reader(text, file).Read();
}

Program ReadXml(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError({.file = file.string(), .problem = "cannot be read"});
  std::error_code error;
  if (std::filesystem::file_size(file, error) > kMaxFileBytes && !error) {
    throw ConfigError({.file = file.string(), .problem = "is too large", .expected = "64 MiB"});
  }
  std::ostringstream text;
  text << in.rdbuf();
  return ParseXml(text.str(), file.string());
}

std::uint64_t SmallestCount(const Program& program) {
  const std::uint32_t parts = PartsOf(program);
  if (program.chunks_per_loop % parts != 0) {
    throw ConfigError({.file = program.file,
                       .field = "<algo nchunksperloop>",
                       .value = std::to_string(program.chunks_per_loop),
                       .problem = "does not give every rank the same number of chunks",
                       .expected = "a multiple of " + std::to_string(parts)});
  }
  return program.chunks_per_loop / parts;
}

Plan MakePlan(const Program& program, std::uint64_t count, DataType type, ReduceOp op) {
  const std::uint64_t smallest = SmallestCount(program);
  if (count % smallest != 0) {
    throw ConfigError({.file = program.file,
                       .field = "count",
                       .value = std::to_string(count),
                       .problem = "cannot be cut in the chunks of this algorithm",
                       .expected = "a multiple of " + std::to_string(smallest)});
  }
  const std::uint64_t unit = count / smallest;
  Plan plan;
  plan.request = {.function = program.function,
                  .rank_count = static_cast<std::uint32_t>(program.gpus.size()),
                  .type = type,
                  .op = op,
                  .count = count,
                  .in_place = !program.out_of_place};
  plan.algorithm = program.name;
  plan.protocol = program.protocol;
  plan.channel_count = program.channel_count;
  constexpr std::uint32_t kOwnPort = 1;  // A block's way to hand itself a second operand.
  for (Rank rank = 0; rank < program.gpus.size(); ++rank) {
    const Gpu& gpu = program.gpus[rank];
    plan.scratch_count = std::max(plan.scratch_count, gpu.scratch_chunks * unit);
    const auto first_block = static_cast<std::uint32_t>(plan.blocks.size());
    // A local reduction takes two ops, so steps and ops are numbered apart.
    std::vector<std::vector<std::uint64_t>> last_op(gpu.blocks.size());
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      std::uint64_t ops = 0;
      for (const Step& step : gpu.blocks[b].steps) {
        ops += step.type == StepType::kReduce ? 2 : 1;
        last_op[b].push_back(ops - 1);
      }
    }
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const ThreadBlock& block = gpu.blocks[b];
      auto list = std::make_shared<ListProgram>();
      // A channel of its own keeps the hand-over to oneself apart from other blocks.
      const Peer own[] = {{rank, kOwnPort + static_cast<std::uint32_t>(b)}};
      const Peer to[] = {{static_cast<Rank>(block.send), 0}};
      const Peer from[] = {{static_cast<Rank>(block.receive), 0}};
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const Step& step = block.steps[s];
        PlanOp op_out{.count = step.count * unit, .step = static_cast<std::uint32_t>(s)};
        op_out.source = {step.source, step.source_chunk * unit};
        op_out.destination = {step.destination, step.destination_chunk * unit};
        const Dependency before[] = {
            {first_block + static_cast<std::uint32_t>(std::max(step.wait_block, 0)),
             step.wait_block < 0 ? 0
                                 : last_op[static_cast<std::size_t>(step.wait_block)]
                                          [static_cast<std::size_t>(step.wait_step)]}};
        if (step.wait_block >= 0) op_out.wait_for = before;
        if (step.type == StepType::kReduce) {
          PlanOp hand_over = op_out;
          hand_over.has_source = true;
          hand_over.send_to = own;
          list->Append(hand_over);
          op_out.wait_for = {};
          op_out.receive_from = own;
          op_out.source = op_out.destination;
          op_out.has_source = op_out.has_destination = true;
          list->Append(op_out);
          continue;
        }
        if (step.type == StepType::kNop) op_out.count = 0;
        if (Sends(step.type)) op_out.send_to = to;
        if (Receives(step.type)) op_out.receive_from = from;
        op_out.has_source = ReadsSource(step.type);
        op_out.has_destination = Stores(step.type);
        list->Append(op_out);
      }
      plan.blocks.push_back({rank, block.channel, "msccl", std::move(list)});
    }
  }
  return plan;
}

std::string Prove(const Program& program) {
  return ProveCorrect(MakePlan(program, SmallestCount(program)));
}

std::string WriteXml(const Program& program) {
  const auto* collective =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [&](const auto& entry) { return entry.second == program.function; });
  WT_CHECK(collective != kCollectives.end());
  std::string out = fmt::format(
      "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\">\n",
      program.name, windtunnel::Name(program.protocol), program.channel_count,
      program.chunks_per_loop, program.gpus.size(), collective->first, program.in_place ? 1 : 0,
      program.out_of_place ? 1 : 0, program.min_bytes, program.max_bytes);
  constexpr std::string_view kBuffers[] = {"i", "o", "s"};
  for (std::size_t rank = 0; rank < program.gpus.size(); ++rank) {
    const Gpu& gpu = program.gpus[rank];
    std::set<std::pair<std::int32_t, std::int32_t>> awaited;
    for (const ThreadBlock& block : gpu.blocks) {
      for (const Step& step : block.steps) awaited.insert({step.wait_block, step.wait_step});
    }
    out += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", rank,
                       gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks);
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const ThreadBlock& block = gpu.blocks[b];
      out += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", b, block.send,
                         block.receive, block.channel);
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const Step& step = block.steps[s];
        const bool is_awaited =
            awaited.contains({static_cast<std::int32_t>(b), static_cast<std::int32_t>(s)});
        out += fmt::format(
            "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
            "dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
            s, Name(step.type), kBuffers[static_cast<std::size_t>(step.source)], step.source_chunk,
            kBuffers[static_cast<std::size_t>(step.destination)], step.destination_chunk,
            step.count, step.wait_block, step.wait_step, is_awaited ? 1 : 0);
      }
      out += "    </tb>\n";
    }
    out += "  </gpu>\n";
  }
  return out + "</algo>\n";
}

namespace {

[[noreturn]] void Unfit(const Plan& plan, const std::string& what) {
  throw ConfigError({.field = plan.algorithm,
                     .value = what,
                     .problem = "cannot be written as an MSCCL program",
                     .expected = "ops with one peer a direction, of whole chunks"});
}

StepType TypeOf(const Plan& plan, const PlanOp& op) {
  const bool receives = !op.receive_from.empty();
  const bool sends = !op.send_to.empty();
  if (op.combine != Combine::kBlock) Unfit(plan, "a reduction in a switch");
  if (op.receive_from.size() > 1 || op.send_to.size() > 1) Unfit(plan, "an op with several peers");
  if (!receives) {
    if (sends && op.has_destination) Unfit(plan, "a send that stores too");
    if (sends) return StepType::kSend;
    return op.has_destination ? StepType::kCopy : StepType::kNop;
  }
  if (!op.has_source) return sends ? StepType::kReceiveCopySend : StepType::kReceive;
  if (!op.has_destination) return StepType::kReceiveReduceSend;
  return sends ? StepType::kReceiveReduceCopySend : StepType::kReceiveReduceCopy;
}

}  // namespace

Program FromPlan(const Plan& plan, std::string name) {
  Program program;
  program.name = std::move(name);
  program.protocol = plan.protocol;
  program.channel_count = plan.channel_count;
  program.function = plan.request.function;
  program.in_place = plan.request.in_place;
  program.out_of_place = !plan.request.in_place;
  std::uint64_t unit = plan.request.count;
  for (const Block& block : plan.blocks) {
    for (std::uint64_t i = 0; i < block.program->size(); ++i) {
      const PlanOp op = block.program->At(i);
      unit = std::gcd(unit, op.count);
      if (op.has_source) unit = std::gcd(unit, op.source.offset);
      if (op.has_destination) unit = std::gcd(unit, op.destination.offset);
    }
  }
  if (unit == 0) Unfit(plan, "no elements");
  program.gpus.resize(plan.request.rank_count);
  program.chunks_per_loop =
      static_cast<std::uint32_t>(plan.request.count / unit * PartsOf(program));
  std::vector<std::int32_t> index_of(plan.blocks.size());
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    auto& blocks = program.gpus[plan.blocks[b].rank].blocks;
    index_of[b] = static_cast<std::int32_t>(blocks.size());
    blocks.push_back({.channel = plan.blocks[b].channel});
  }
  for (Rank rank = 0; rank < plan.request.rank_count; ++rank) {
    Gpu& gpu = program.gpus[rank];
    gpu.input_chunks = static_cast<std::uint32_t>(InputCount(plan.request, rank) / unit);
    gpu.output_chunks = static_cast<std::uint32_t>(OutputCount(plan.request, rank) / unit);
    gpu.scratch_chunks = static_cast<std::uint32_t>((plan.scratch_count + unit - 1) / unit);
  }
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    const Block& from = plan.blocks[b];
    ThreadBlock& block = program.gpus[from.rank].blocks[static_cast<std::size_t>(index_of[b])];
    for (std::uint64_t i = 0; i < from.program->size(); ++i) {
      const PlanOp op = from.program->At(i);
      Step step{.type = TypeOf(plan, op),
                .source = op.source.buffer,
                .source_chunk = static_cast<std::uint32_t>(op.source.offset / unit),
                .destination = op.destination.buffer,
                .destination_chunk = static_cast<std::uint32_t>(op.destination.offset / unit),
                .count = static_cast<std::uint32_t>(op.count / unit)};
      const auto attach = [&](std::span<const Peer> peers, std::int32_t& end) {
        if (peers.empty()) return;
        const auto peer = static_cast<std::int32_t>(peers.front().rank);
        if (peers.front().port != 0 || (end >= 0 && end != peer))
          Unfit(plan, "a block with several peers");
        end = peer;
      };
      attach(op.send_to, block.send);
      attach(op.receive_from, block.receive);
      if (op.wait_for.size() > 1) Unfit(plan, "an op that waits for several");
      if (!op.wait_for.empty()) {
        step.wait_block = index_of[op.wait_for.front().block];
        step.wait_step = static_cast<std::int32_t>(op.wait_for.front().op);
      }
      block.steps.push_back(step);
    }
  }
  return program;
}

}  // namespace windtunnel::msccl

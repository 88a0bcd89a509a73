#include "apps/collective_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/flags.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

std::uint32_t ParseSmall(const std::string& flag, const std::string& text, std::uint64_t lowest,
                         std::uint64_t highest) {
  return static_cast<std::uint32_t>(ParseCount(text, {.field = flag}, lowest, highest));
}

// "4x4x8".
std::vector<std::uint32_t> ParseSides(const std::string& text) {
  std::vector<std::uint32_t> sides;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t cross = std::min(text.find('x', at), text.size());
    sides.push_back(ParseSmall("--torus-sides", text.substr(at, cross - at), 1, 1u << 24));
    at = cross + 1;
  }
  return sides;
}

// Whether a choice between "auto" and one other word is "auto".
bool IsAuto(std::string_view flag, const std::string& value, std::string_view other) {
  if (value != "auto" && value != other) {
    throw ConfigError({.field = std::string(flag),
                       .value = value,
                       .problem = "is no choice:",
                       .expected = "auto or " + std::string(other)});
  }
  return value == "auto";
}

}  // namespace

// Head, tail and some spans; below it nothing of use fits.
constexpr Bytes kSmallestTrace = KiB(1);

CollectiveOptions ParseCollectiveOptions(const std::vector<std::string>& arguments) {
  CollectiveOptions out;
  CLI::App app;
  std::string function, begin, end, factor, step,
      op = "sum", type = "float", root = "0", iterations = "20", warmups = "1", gpus = "1",
      check = "1", blocking = "0", nodes, ranks, fidelity = "packet", algorithm, protocol, channels,
      seed = "1", version, trace_limit, check_limit, plan, routing, sides, symmetry = "auto",
      rates = "auto";
  std::vector<std::string> sets, networks;
  app.add_option("function", function)->required();
  app.add_option("-t,--topology", out.topology)->required();
  app.add_option("-b,--minbytes", begin);
  app.add_option("-e,--maxbytes", end);
  app.add_option("-f,--stepfactor", factor);
  app.add_option("-i,--stepbytes", step);
  app.add_option("-n,--iters", iterations);
  app.add_option("-w,--warmup_iters", warmups);
  app.add_option("-g,--ngpus", gpus);
  app.add_option("-o,--op", op);
  app.add_option("-d,--datatype", type);
  app.add_option("-r,--root", root);
  app.add_option("-c,--check", check);
  app.add_option("--check-limit", check_limit);
  app.add_option("-z,--blocking", blocking);
  app.add_option("--nodes", nodes);
  app.add_option("--ranks", ranks);
  app.add_option("--fidelity", fidelity);
  app.add_option("--algo", algorithm);
  app.add_option("--plan", plan);
  app.add_option("--proto", protocol);
  app.add_option("--channels", channels);
  app.add_option("--routing", routing);
  app.add_option("--network", networks);
  app.add_option("--nccl-version", version);
  app.add_option("--set", sets);
  app.add_option("--seed", seed);
  app.add_option("--torus-sides", sides);
  app.add_option("--symmetry", symmetry);
  app.add_option("--rates", rates);
  app.add_flag("--ideal-endpoints", out.simulation.ideal_endpoints);
  app.add_flag("--explain", out.explain);
  app.add_flag("-v,--verbose", out.verbose);
  app.add_option("--json", out.json_file);
  app.add_option("--csv", out.csv_file);
  app.add_option("--trace", out.trace_file);
  app.add_option("--vcd", out.vcd_file);
  app.add_option("--flows", out.flows_file);
  app.add_option("--trace-limit", trace_limit);
  ParseFlags(app, "collective", arguments);

  out.function = ParseName<Function>("collective", function, kFunctionNames);
  if (!begin.empty()) out.smallest = ParseNcclTestsSize(begin, {.field = "-b"});
  out.largest =
      end.empty() ? std::max(out.smallest, MiB(32)) : ParseNcclTestsSize(end, {.field = "-e"});
  if (!begin.empty() && end.empty()) out.largest = out.smallest;
  if (out.smallest > out.largest) {
    throw ConfigError({.field = "-b",
                       .value = begin,
                       .problem = "is above -e:",
                       .expected = "-b at most -e (" + FormatSize(out.largest) + ")"});
  }
  if (!factor.empty()) {
    out.factor = ParseNumber(factor, {.field = "-f"});
    if (!(out.factor > 1) || out.factor > 1e6) {
      throw ConfigError({.field = "-f",
                         .value = factor,
                         .problem = "is no step factor:",
                         .expected = "a number above 1"});
    }
  }
  if (!step.empty()) {
    out.step = ParseNcclTestsSize(step, {.field = "-i"});
    if (out.step.count() == 0)
      throw ConfigError(
          {.field = "-i", .value = step, .problem = "is zero:", .expected = "at least 1 byte"});
  }
  out.iterations = ParseSmall("-n", iterations, 1, 1'000'000);
  out.warmups = ParseSmall("-w", warmups, 0, 1'000'000);
  out.gpus_per_thread = ParseSmall("-g", gpus, 1, 1024);
  out.check = ParseSmall("-c", check, 0, 1'000'000) != 0;
  out.blocking = ParseSmall("-z", blocking, 0, 1) != 0;
  if (op == "all") {
    out.ops = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg};
  } else {
    out.ops = {ParseName<ReduceOp>("-o", op, kReduceOpNames)};
  }
  if (type == "all") {
    out.types.clear();
    for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(DataType::kBfloat16); ++i)
      out.types.push_back(static_cast<DataType>(i));
  } else {
    out.types = {ParseName<DataType>("-d", type, kDataTypeNames)};
    if (out.types.front() >= DataType::kFp8E4m3) {
      throw ConfigError({.field = "-d",
                         .value = type,
                         .problem = "fp8 arithmetic is not modelled yet:",
                         .expected = "another type"});
    }
  }
  if (root == "all" || root == "-1") {
    out.all_roots = true;
  } else {
    out.roots = {static_cast<std::int64_t>(ParseCount(root, {.field = "-r"}, 0, 1u << 24))};
  }
  if (!nodes.empty()) out.nodes = ParseSmall("--nodes", nodes, 1, 65536);
  SimulationOptions& simulation = out.simulation;
  simulation.fidelity = ParseName<Fidelity>("--fidelity", fidelity, kFidelityNames);
  simulation.gpus = ParseGpuList("--ranks", ranks);
  simulation.algorithm = algorithm;
  if (!plan.empty()) {
    if (!algorithm.empty()) {
      throw ConfigError({.field = "--plan",
                         .value = plan,
                         .problem = "and --algo contradict each other:",
                         .expected = "one of the two"});
    }
    simulation.schedule = std::make_shared<const ScheduleFile>(plan);
  }
  simulation.protocol = protocol;
  if (!routing.empty()) simulation.routing = ParseRoutePolicy(routing, {.field = "--routing"});
  simulation.network = JoinSettings(networks);
  if (!simulation.network.empty() && simulation.fidelity != Fidelity::kPacket)
    throw NetworkNeedsPackets(simulation.network);
  if (!channels.empty()) simulation.channels = ParseSmall("--channels", channels, 1, 64);
  simulation.gpus_per_thread = out.gpus_per_thread;
  simulation.seed = ParseCount(seed, {.field = "--seed"});
  if (!sides.empty()) simulation.sides = ParseSides(sides);
  simulation.fold_symmetry = IsAuto("--symmetry", symmetry, "off");
  simulation.exact_rates = !IsAuto("--rates", rates, "exact");
  if (!version.empty())
    simulation.version = nccl::ParseNcclVersion(version, {.field = "--nccl-version"});
  simulation.environment = nccl::Environment::FromProcess();
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    if (equals == std::string::npos || !set.starts_with("NCCL_")) {
      throw ConfigError({.field = "--set",
                         .value = set,
                         .problem = "is no variable:",
                         .expected = "NCCL_NAME=VALUE"});
    }
    simulation.environment.Set(set.substr(0, equals), set.substr(equals + 1));
  }
  if (!check_limit.empty()) out.check_limit = ParseSizeFlag("--check-limit", check_limit);
  if (!trace_limit.empty()) out.trace_limit = ParseSizeFlag("--trace-limit", trace_limit);
  if (out.trace_limit < kSmallestTrace) {
    throw ConfigError({.field = "--trace-limit",
                       .value = trace_limit,
                       .problem = "has no room for a trace:",
                       .expected = "at least " + FormatSize(kSmallestTrace)});
  }
  return out;
}

std::vector<Bytes> SizesOf(const CollectiveOptions& options) {
  constexpr std::size_t kMost = 100'000;
  std::vector<Bytes> sizes;
  std::uint64_t size = options.smallest.count();
  while (size <= options.largest.count()) {
    sizes.emplace_back(size);
    if (sizes.size() > kMost) {
      throw ConfigError({.field = "-i",
                         .value = fmt::to_string(options.step.count()),
                         .problem = "gives too many sizes:",
                         .expected = fmt::format("at most {} sizes from -b to -e", kMost)});
    }
    std::uint64_t next =
        options.factor > 1 ? static_cast<std::uint64_t>(static_cast<double>(size) * options.factor)
                           : size + options.step.count();
    if (next <= size) next = size + 1;  // -b 0 or a factor below the next whole byte.
    size = next;
  }
  return sizes;
}

CollectiveRequest RequestOf(Function function, DataType type, ReduceOp op, Rank root, Bytes size,
                            std::uint32_t ranks) {
  CollectiveRequest request{
      .function = function, .rank_count = ranks, .type = type, .op = op, .root = root};
  const std::uint64_t elements = size.count() / SizeOf(type);
  switch (function) {
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kAllToAll:
    case Function::kAllToAllV:
    case Function::kGather:
    case Function::kScatter:
    case Function::kHypercube: {
      const std::uint64_t granule = std::max<std::uint64_t>(16 / SizeOf(type), 1);
      request.count = elements / ranks / granule * granule;
      break;
    }
    default:
      request.count = elements;
  }
  return request;
}

}  // namespace windtunnel

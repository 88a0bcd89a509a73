#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "apps/collective_manual.h"
#include "apps/collective_options.h"
#include "apps/collective_output.h"
#include "apps/collective_trace.h"
#include "apps/command.h"
#include "apps/output_file.h"
#include "collectives/functional.h"
#include "collectives/simulation.h"
#include "interconnect/packet_options.h"
#include "interconnect/topology_file.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

// Progress on a terminal only: results on stdout stay clean, and logs of batch jobs too.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(isatty(STDERR_FILENO) != 0) {}
  void Step(std::size_t done, const std::string& what) const {
    if (shown_) fmt::print(stderr, "\r\033[K[{}/{}] {}", done, total_, what);
  }
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::size_t total_;
  bool shown_;
};

Bytes BufferBytes(const CollectiveRequest& request) {
  std::uint64_t elements = 0;
  for (Rank r = 0; r < request.rank_count; ++r)
    elements += InputCount(request, r) + OutputCount(request, r);
  return Bytes(elements * SizeOf(request.type));
}

/// Elements that are wrong after the call: counted on real data, or proved to be none.
std::uint64_t CheckCall(const Plan& plan, Bytes real_limit) {
  const CollectiveRequest& request = plan.request;  // A schedule of the user may be in place only.
  if (BufferBytes(request) <= real_limit) {
    RankBuffers buffers = MakeBuffers(request);
    FillInputs(request, buffers);
    RunFunctional(plan, buffers);
    return CountWrong(request, buffers);
  }
  const std::string fault = ProveCorrect(plan);
  if (fault.empty()) return 0;
  throw SimulationError("the plan of " + plan.algorithm + " is wrong: " + fault);
}

PlaceResult RunPlace(Simulation& simulation, const CollectiveRequest& request, Bytes size,
                     const CollectiveOptions& options) {
  PlaceResult place;
  place.outcome = simulation.Run(request);
  const double us = ToMicroseconds(place.outcome.time);
  if (us > 0) place.algbw = static_cast<double>(size.count()) / us / 1e3;
  place.busbw = place.algbw * BusBandwidthFactor(request.function, request.rank_count);
  if (options.check) place.wrong = CheckCall(simulation.PlanOf(request), options.check_limit);
  return place;
}

/// In place differs from out of place only where a rank's own part is copied, and where there is an
/// in-place form at all.
bool PlaceMatters(Function function) {
  switch (function) {
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kBroadcast:
    case Function::kGather:
    case Function::kScatter:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> DeviceLines(const Simulation& simulation) {
  std::vector<std::string> lines;
  constexpr std::size_t kShown = 16;
  const Topology& topology = simulation.cluster().topology();
  for (std::size_t r = 0; r < simulation.gpus().size(); ++r) {
    const Device& gpu = topology.devices[simulation.gpus()[r]];
    lines.push_back(fmt::format("Rank {:2} Group  0 on {:>10} device {:2} [{}] {}", r,
                                gpu.node == kNoNode ? "host" : fmt::format("node{}", gpu.node),
                                gpu.index, gpu.bus_id.empty() ? gpu.name : gpu.bus_id,
                                gpu.model.empty() ? fmt::format("sm_{}", gpu.sm) : gpu.model));
    if (r + 1 == kShown && simulation.gpus().size() > kShown + 1) {
      lines.push_back(fmt::format("... and {} more ranks", simulation.gpus().size() - kShown));
      break;
    }
  }
  return lines;
}

int RunCollective(const std::vector<std::string>& arguments) {
  CollectiveReport report{.options = ParseCollectiveOptions(arguments)};
  const CollectiveOptions& options = report.options;
  const Topology topology = LoadTopology(options.topology, {.nodes = options.nodes});
  report.topology_name = topology.name;
  report.topology_source = options.topology;
  report.input_digest = topology.digest;
  for (const std::string& warning : topology.warnings) report.notes.push_back(warning);
  Simulation simulation(Cluster(topology), options.simulation);
  for (const std::string& note : simulation.notes()) report.notes.push_back(note);
  report.device_lines = DeviceLines(simulation);
  report.rank_count = simulation.rank_count();
  for (const std::string& note : report.notes) fmt::print(stderr, "windtunnel: note: {}\n", note);
  if (options.verbose) {
    for (const std::string& line : simulation.DecisionLines()) fmt::print(stderr, "{}\n", line);
  }
  std::vector<std::int64_t> roots = options.roots;
  const bool rooted =
      options.function == Function::kBroadcast || options.function == Function::kReduce ||
      options.function == Function::kGather || options.function == Function::kScatter;
  if (!rooted) {
    roots = {-1};
  } else if (options.all_roots) {
    roots.clear();
    for (std::uint32_t r = 0; r < simulation.rank_count(); ++r) roots.push_back(r);
  }
  for (const std::int64_t root : roots) {
    if (root >= static_cast<std::int64_t>(simulation.rank_count())) {
      throw ConfigError({.field = "-r",
                         .value = fmt::to_string(root),
                         .problem = "there is no such rank:",
                         .expected = fmt::format("0 to {}", simulation.rank_count() - 1)});
    }
  }
  const std::vector<Bytes> sizes = SizesOf(options);
  const std::vector<ReduceOp> ops =
      Reduces(options.function) ? options.ops : std::vector<ReduceOp>{ReduceOp::kSum};
  std::fputs(TableHeader(report).c_str(), stdout);
  const Progress progress(sizes.size() * ops.size() * options.types.size() * roots.size());
  bool symbolic = false;
  std::set<std::string> notices;  // Each is told once.
  for (const DataType type : options.types) {
    for (const ReduceOp op : ops) {
      for (const std::int64_t root : roots) {
        for (const Bytes size : sizes) {
          progress.Step(report.rows.size(), FormatSize(size));
          CollectiveRequest request = RequestOf(options.function, type, op,
                                                static_cast<Rank>(std::max<std::int64_t>(root, 0)),
                                                size, simulation.rank_count());
          if (const auto& schedule = options.simulation.schedule; schedule != nullptr) {
            // Whole chunks, at least one element in each.
            const std::uint64_t unit = schedule->smallest_count();
            request.count = std::max<std::uint64_t>(request.count / unit, 1) * unit;
          }
          CollectiveRow row{
              .request = request, .size = Bytes(LogicalBytes(request)), .printed_root = root};
          row.out_of_place = RunPlace(simulation, request, row.size, options);
          symbolic = symbolic || (options.check && BufferBytes(request) > options.check_limit);
          if (PlaceMatters(options.function) && options.simulation.schedule == nullptr) {
            request.in_place = true;
            row.in_place = RunPlace(simulation, request, row.size, options);
          } else {
            row.in_place = row.out_of_place;
          }
          std::fputs(TableRow(row).c_str(), stdout);
          if (const std::string& notice = row.out_of_place.outcome.notice;
              !notice.empty() && notices.insert(notice).second) {
            fmt::print(stderr, "windtunnel: note: {}\n", notice);
          }
          report.rows.push_back(std::move(row));
        }
      }
    }
  }
  if (!report.rows.empty()) {
    const CollectiveRow& last = report.rows.back();
    const CallOutcome& call = last.out_of_place.outcome;
    if (call.ideal.count() != 0) {
      report.bound_busbw = static_cast<double>(last.size.count()) / ToMicroseconds(call.ideal) /
                           1e3 * BusBandwidthFactor(options.function, simulation.rank_count());
      report.bound_link = call.links.rows.empty() ? "" : call.links.rows.front().name;
    }
  }
  std::fputs(TableFooter(report).c_str(), stdout);
  if (symbolic) {
    fmt::print(
        "# #wrong above {} of buffers: the plan was proved with symbols (each element holds each "
        "rank's part once), not run on data\n",
        FormatSize(options.check_limit));
  }
  if (options.explain) std::fputs(Explanation(report).c_str(), stdout);
  if (!report.rows.empty() &&
      !(options.trace_file.empty() && options.vcd_file.empty() && options.flows_file.empty())) {
    for (const std::string& note : WriteTraces(simulation, report.rows.back().request, options)) {
      fmt::print(stderr, "windtunnel: note: {}\n", note);
    }
  }
  if (!options.json_file.empty()) WriteOutputFile("--json", options.json_file, ToJson(report));
  if (!options.csv_file.empty()) WriteOutputFile("--csv", options.csv_file, ToCsv(report));
  return kExitDone;
}

}  // namespace

const Command kCollectiveCommand{
    "collective", "simulate a collective, with the flags and the table of nccl-tests",
    RunCollective, kCollectiveManual, [] { return "\nKEYS OF --network\n" + PacketOptionHelp(); }};

}  // namespace windtunnel

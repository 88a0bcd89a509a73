#include "apps/collective_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/error.h"
#include "sim/parse_units.h"
#include "sim/trace_sink.h"

namespace windtunnel {
namespace {

std::ofstream OpenFile(std::string_view flag, const std::string& path) {
  std::error_code error;
  const std::filesystem::path target(path);
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  if (!out)
    throw ConfigError({.file = path, .field = std::string(flag), .problem = "cannot be written"});
  return out;
}

struct WireSpan {
  SimTime begin;
  SimTime end;
  std::uint32_t link;
};

// Books arrive in order per link, not over all of them; the dump wants one order, so they are kept
// until the run has ended.
class WireRecorder final : public WireObserver {
 public:
  explicit WireRecorder(std::size_t limit) : limit_(limit) {}
  void OnWireBusy(std::uint32_t link, SimTime start, SimTime end, Bytes) override {
    if (spans_.size() < limit_) {
      spans_.push_back({start, end, link});
    } else {
      ++left_out_;
    }
  }
  std::vector<WireSpan>& spans() { return spans_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  std::size_t limit_;
  std::vector<WireSpan> spans_;
  std::uint64_t left_out_ = 0;
};

std::uint64_t WriteVcd(const Simulation& simulation, WireRecorder& recorder,
                       const CallOutcome& call, const CollectiveOptions& options) {
  std::vector<std::string> names;
  const Topology& topology = simulation.cluster().topology();
  for (const Link& link : topology.links)
    names.push_back(topology.devices[link.from].name + "->" + topology.devices[link.to].name);
  auto& spans = recorder.spans();
  std::stable_sort(spans.begin(), spans.end(),
                   [](const WireSpan& a, const WireSpan& b) { return a.begin < b.begin; });
  std::ofstream out = OpenFile("--vcd", options.vcd_file);
  VcdSink sink(out, options.trace_limit, names);
  for (const WireSpan& span : spans) sink.AddHigh(span.link, span.begin, span.end);
  SimTime end(call.time);
  if (!spans.empty()) end = std::max(end, spans.back().end);
  sink.Finish(end);
  return sink.left_out() + recorder.left_out();
}

}  // namespace

std::vector<std::string> WriteTraces(Simulation& simulation, const CollectiveRequest& request,
                                     const CollectiveOptions& options) {
  if (options.simulation.fidelity == Fidelity::kAnalytic) {
    throw ConfigError({.field = "--trace",
                       .value = "analytic",
                       .problem = "a closed form has no slices to trace:",
                       .expected = "--fidelity packet or flow"});
  }
  if (!options.vcd_file.empty() && options.simulation.fidelity != Fidelity::kPacket) {
    throw ConfigError({.field = "--vcd",
                       .value = std::string(Name(options.simulation.fidelity)),
                       .problem = "wires are modelled at the packet level only:",
                       .expected = "--fidelity packet"});
  }
  std::ofstream trace_out;
  std::unique_ptr<TraceSink> trace;
  if (!options.trace_file.empty()) {
    trace_out = OpenFile("--trace", options.trace_file);
    trace = std::make_unique<TraceSink>(trace_out, options.trace_limit);
  }
  constexpr std::size_t kBytesPerChange = 16;  // Least text of one change: bounds what is kept.
  WireRecorder recorder(options.trace_limit.count() / kBytesPerChange);
  std::set<std::uint32_t> named;
  RunObservers observers;
  if (!options.vcd_file.empty()) observers.wires = &recorder;
  if (trace != nullptr) {
    observers.on_span = [&](const Plan& plan, const TimedSpan& span) {
      const Block& block = plan.blocks[span.block];
      if (named.insert(span.block).second) {
        trace->NameProcess(block.rank, fmt::format("rank {}", block.rank));
        trace->NameThread(block.rank, span.block,
                          fmt::format("channel {} {}", block.channel, block.role));
      }
      trace->AddSpan(block.rank, span.block, fmt::format("step {}", span.step), span.begin,
                     span.end, FormatSize(span.bytes));
    };
  }
  const CallOutcome call = simulation.Run(request, observers);
  std::vector<std::string> notes;
  if (trace != nullptr) {
    trace->Finish();
    if (trace->left_out() != 0)
      notes.push_back(fmt::format("{}: {} spans left out at the limit of {}", options.trace_file,
                                  trace->left_out(), FormatSize(options.trace_limit)));
  }
  if (!options.vcd_file.empty()) {
    const std::uint64_t left_out = WriteVcd(simulation, recorder, call, options);
    if (left_out != 0)
      notes.push_back(fmt::format("{}: {} changes left out at the limit of {}", options.vcd_file,
                                  left_out, FormatSize(options.trace_limit)));
  }
  return notes;
}

}  // namespace windtunnel

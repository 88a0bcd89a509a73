#include "apps/collective_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "apps/output_file.h"
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

/// Share of each link's time in use, in at most `kMostBins` equal bins over the run: neighbours are
/// joined whenever the run outgrows them.
class UseOverTime final : public WireObserver {
 public:
  explicit UseOverTime(std::size_t links) : busy_(links) {}
  void OnWireBusy(std::uint32_t link, SimTime start, SimTime end, Bytes) override {
    while (end.since_start().count() > kMostBins * width_) JoinBins();
    std::vector<std::uint64_t>& bins = busy_[link];
    if (bins.empty()) bins.resize(kMostBins);
    std::uint64_t from = start.since_start().count();
    const std::uint64_t to = end.since_start().count();
    while (from < to) {
      const std::uint64_t bin = from / width_;
      const std::uint64_t until = std::min(to, (bin + 1) * width_);
      bins[bin] += until - from;
      from = until;
    }
  }
  /// A counter track for each of the busiest links.
  void Write(const CallOutcome& call, std::uint32_t process, TraceSink& trace) const {
    constexpr std::size_t kTracks = 10;
    trace.NameProcess(process, "links, share of time in use");
    const std::size_t shown = std::min(kTracks, call.links.rows.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const LinkLoadReport::Row& row = call.links.rows[i];
      const std::vector<std::uint64_t>& bins = busy_[row.link];
      std::uint64_t last = UINT64_MAX;
      for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        const SimTime at(Picoseconds(bin * width_));
        if (at.since_start() > call.time) break;
        if (bins[bin] == last) continue;
        last = bins[bin];
        trace.AddCounter(process, row.name, at,
                         static_cast<double>(last) / static_cast<double>(width_));
      }
    }
  }

 private:
  static constexpr std::size_t kMostBins = 512;
  void JoinBins() {
    width_ *= 2;
    for (std::vector<std::uint64_t>& bins : busy_) {
      for (std::size_t i = 0; i < bins.size(); ++i)
        bins[i] = 2 * i + 1 < bins.size() ? bins[2 * i] + bins[2 * i + 1] : 0;
    }
  }

  std::uint64_t width_ = 1'000'000;  // Picoseconds of a bin.
  std::vector<std::vector<std::uint64_t>> busy_;
};

/// Hands on what it hears to all that listen.
class BothObservers final : public WireObserver {
 public:
  void Add(WireObserver* observer) { observers_.push_back(observer); }
  void OnWireBusy(std::uint32_t link, SimTime start, SimTime end, Bytes wire) override {
    for (WireObserver* observer : observers_) observer->OnWireBusy(link, start, end, wire);
  }

 private:
  std::vector<WireObserver*> observers_;
};

/// "node0/nic0 4 out 4 in, ...": whether NICs share the work. Nothing on one node.
std::string NicLine(const std::vector<FlowUse>& flows, const Topology& topology) {
  struct Count {
    std::uint64_t out = 0, in = 0;
  };
  std::map<DeviceId, Count> counts;
  for (const FlowUse& flow : flows) {
    if (flow.nic_out) ++counts[*flow.nic_out].out;
    if (flow.nic_in) ++counts[*flow.nic_in].in;
  }
  constexpr std::size_t kShown = 16;
  std::string line;
  std::size_t shown = 0;
  for (const auto& [nic, count] : counts) {
    if (shown++ == kShown) {
      line += fmt::format(", and {} more", counts.size() - kShown);
      break;
    }
    line += fmt::format("{}{} {} out {} in", line.empty() ? "" : ", ", topology.devices[nic].name,
                        count.out, count.in);
  }
  return line;
}

std::string FlowTable(const std::vector<FlowUse>& flows, const Simulation& simulation) {
  const Topology& topology = simulation.cluster().topology();
  const auto name = [&](const std::optional<DeviceId>& nic) {
    return nic ? topology.devices[*nic].name : std::string();
  };
  std::string out =
      "from_rank,to_rank,from,to,channel,port,nic_out,nic_in,messages,bytes,first_send_us,"
      "last_arrival_us,gbps\n";
  for (const FlowUse& flow : flows) {
    const ConnectionUse& use = flow.use;
    const double first = ToMicroseconds(use.first_send.since_start());
    const double last = ToMicroseconds(use.last_ready.since_start());
    const double gbps =
        last > first ? static_cast<double>(use.bytes.count()) / (last - first) / 1e3 : 0;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{:.3f}\n", use.from, use.to,
                       topology.devices[simulation.gpus()[use.from]].name,
                       topology.devices[simulation.gpus()[use.to]].name, use.channel, use.port,
                       name(flow.nic_out), name(flow.nic_in), use.messages, use.bytes.count(),
                       first, last, gbps);
  }
  return out;
}

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

namespace {

std::vector<std::string> Write(Simulation& simulation, const CollectiveRequest& request,
                               const CollectiveOptions& options) {
  if (options.simulation.fidelity == Fidelity::kAnalytic) {
    throw ConfigError({.field = options.flows_file.empty() ? "--trace" : "--flows",
                       .value = "analytic",
                       .problem = "a closed form has no slices and messages:",
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
  BothObservers both;
  UseOverTime use(simulation.cluster().topology().links.size());
  if (!options.vcd_file.empty()) both.Add(&recorder);
  if (trace != nullptr) both.Add(&use);
  observers.wires = &both;
  std::vector<FlowUse> flows;
  if (!options.flows_file.empty()) observers.flows = &flows;
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
    if (options.simulation.fidelity == Fidelity::kPacket)
      use.Write(call, simulation.rank_count(), *trace);
    trace->Finish();
    if (trace->left_out() != 0)
      notes.push_back(fmt::format("{}: {} spans left out at the limit of {}", options.trace_file,
                                  trace->left_out(), FormatSize(options.trace_limit)));
  }
  if (!options.flows_file.empty()) {
    WriteOutputFile("--flows", options.flows_file, FlowTable(flows, simulation));
    if (std::string nics = NicLine(flows, simulation.cluster().topology()); !nics.empty())
      notes.push_back("flows per NIC: " + std::move(nics));
  }
  if (!options.vcd_file.empty()) {
    const std::uint64_t left_out = WriteVcd(simulation, recorder, call, options);
    if (left_out != 0)
      notes.push_back(fmt::format("{}: {} changes left out at the limit of {}", options.vcd_file,
                                  left_out, FormatSize(options.trace_limit)));
  }
  return notes;
}

}  // namespace

std::vector<std::string> WriteTraces(Simulation& simulation, const CollectiveRequest& request,
                                     const CollectiveOptions& options) {
  try {
    return Write(simulation, request, options);
  } catch (const ConfigError& error) {
    InputFault fault = error.fault();
    if (!fault.file.empty() || !fault.field.empty()) throw;
    // A sink's stream is full; which of the two is told by both names.
    fault.file = options.trace_file.empty() ? options.vcd_file : options.trace_file;
    fault.field = options.trace_file.empty() ? "--vcd" : "--trace";
    throw ConfigError(std::move(fault));
  }
}

}  // namespace windtunnel

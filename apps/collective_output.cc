#include "apps/collective_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/command.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

// nccl-tests keeps seven columns whatever the size of the number (src/common.cu, getFloatStr).
std::string TimeColumn(double us) {
  if (us >= 10000.0) return fmt::format("{:7.0f}", us);
  if (us >= 100.0) return fmt::format("{:7.1f}", us);
  return fmt::format("{:7.2f}", us);
}

std::string PlaceColumns(const PlaceResult& place) {
  return fmt::format("  {}  {:6.2f}  {:6.2f}  {:>5}",
                     TimeColumn(ToMicroseconds(place.outcome.time)), place.algbw, place.busbw,
                     place.wrong ? fmt::to_string(*place.wrong) : "N/A");
}

std::string_view PrintedOp(const CollectiveRequest& request) {
  return Reduces(request.function) ? Name(request.op) : "none";
}

nlohmann::ordered_json PlaceJson(const PlaceResult& place) {
  nlohmann::ordered_json out;
  out["time_us"] = ToMicroseconds(place.outcome.time);
  out["algbw_gbps"] = place.algbw;
  out["busbw_gbps"] = place.busbw;
  if (place.wrong) out["wrong"] = *place.wrong;
  return out;
}

}  // namespace

double CollectiveReport::average_busbw() const {
  double sum = 0;
  for (const CollectiveRow& row : rows) sum += row.out_of_place.busbw + row.in_place.busbw;
  return rows.empty() ? 0 : sum / static_cast<double>(2 * rows.size());
}

std::string TableHeader(const CollectiveReport& report) {
  const CollectiveOptions& o = report.options;
  std::string out = fmt::format("# windtunnel {} {} on {} ({}), NCCL {}, {} level, seed {}\n",
                                Version(), Name(o.function), report.topology_name,
                                report.topology_source, nccl::ToString(o.simulation.version),
                                Name(o.simulation.fidelity), o.simulation.seed);
  out += fmt::format(
      "# nThread 1 nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: 1 validation: {} graph: 0\n#\n",
      o.gpus_per_thread, o.smallest.count(), o.largest.count(),
      o.factor > 1 ? fmt::format("{:g}", o.factor) : fmt::to_string(o.step.count()),
      o.factor > 1 ? "factor" : "bytes", o.warmups, o.iterations, o.check ? 1 : 0);
  out += "# Using devices\n";
  for (const std::string& line : report.device_lines) out += "#  " + line + "\n";
  out += fmt::format(
      "#\n# {:10}  {:12}  {:8}  {:6}  {:6}           out-of-place                       in-place   "
      "       \n",
      "", "", "", "", "");
  out += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} "
      "{:>6}\n",
      "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
      "busbw", "#wrong");
  out += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>5}  {:>7}  {:>6}  {:>6}  "
      "{:>5}\n",
      "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
      "");
  return out;
}

std::string TableRow(const CollectiveRow& row) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}", row.size.count(), row.request.count,
                     Name(row.request.type), PrintedOp(row.request), row.printed_root) +
         PlaceColumns(row.out_of_place) + PlaceColumns(row.in_place) + "\n";
}

std::string TableFooter(const CollectiveReport& report) {
  std::uint64_t wrong = 0;
  for (const CollectiveRow& row : report.rows)
    wrong += row.out_of_place.wrong.value_or(0) + row.in_place.wrong.value_or(0);
  std::string out =
      fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  out += fmt::format("# Avg bus bandwidth    : {:g} \n#\n", report.average_busbw());
  return out;
}

namespace {

/// The busiest links, as lines of the table's comments.
std::string LinkLines(LinkLoadReport links) {
  constexpr std::size_t kShown = 10;
  const std::size_t carrying = links.rows.size();
  if (carrying == 0) return "";
  // The busiest of all, and the busiest of each kind that has none among them.
  std::vector<LinkLoadReport::Row> shown(
      links.rows.begin(),
      links.rows.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, carrying)));
  for (const LinkLoadReport::Row& row : links.rows) {
    const bool kind_shown = std::any_of(shown.begin(), shown.end(),
                                        [&](const auto& other) { return other.kind == row.kind; });
    if (!kind_shown) shown.push_back(row);
  }
  links.rows = std::move(shown);
  std::istringstream lines(FormatLinkLoadReport(links));
  std::string out;
  for (std::string line; std::getline(lines, line);) out += "#   " + line + "\n";
  if (carrying > links.rows.size()) {
    out += fmt::format("#   ... and {} more links that carried bytes (all in --json)\n",
                       carrying - links.rows.size());
  }
  return out;
}

}  // namespace

std::string Explanation(const CollectiveReport& report) {
  std::string out;
  if (report.bound_busbw > 0) {
    out += fmt::format("# bound of the links: busbw {:.2f} GB/s, set by {}\n", report.bound_busbw,
                       report.bound_link);
  }
  for (const CollectiveRow& row : report.rows) {
    const CallOutcome& call = row.out_of_place.outcome;
    out += fmt::format("# {} {} {}: {}, {}/{}, {} channel{}, chunk {}\n#   bound by {}",
                       Name(row.request.function), FormatSize(row.size), Name(row.request.type),
                       FormatTime(call.time), call.algorithm, Name(call.protocol), call.channels,
                       call.channels == 1 ? "" : "s", FormatSize(call.chunk), call.bound);
    if (call.time.count() != 0 && call.ideal.count() != 0) {
      out += fmt::format(
          "; link bound {} = {:.1f} % of the time", FormatTime(call.ideal),
          100.0 * static_cast<double>(call.ideal.count()) / static_cast<double>(call.time.count()));
    }
    out += "\n#   time:";
    for (const TimeShare& share : call.shares) {
      if (share.time.count() == 0 || call.time.count() == 0) continue;
      out += fmt::format(
          " {} {} ({:.0f} %)", share.cause, FormatTime(share.time),
          100.0 * static_cast<double>(share.time.count()) / static_cast<double>(call.time.count()));
    }
    out += "\n";
    if (!call.symmetry.empty()) out += "#   symmetry used: " + call.symmetry + "\n";
    if (!call.no_symmetry.empty()) out += "#   every rank simulated: " + call.no_symmetry + "\n";
    if (!call.notice.empty()) out += "#   note: " + call.notice + "\n";
    out += LinkLines(call.links);
  }
  return out;
}

std::string ToJson(const CollectiveReport& report) {
  nlohmann::ordered_json out;
  out["version"] = Version();
  out["seed"] = report.options.simulation.seed;
  out["input_digest"] = fmt::format("{:016x}", report.input_digest);
  out["nccl_version"] = nccl::ToString(report.options.simulation.version);
  out["fidelity"] = Name(report.options.simulation.fidelity);
  out["topology"] = {{"name", report.topology_name}, {"source", report.topology_source}};
  out["collective"] = Name(report.options.function);
  out["ranks"] = report.rank_count;
  out["notes"] = report.notes;
  out["bound"] = {{"busbw_gbps", report.bound_busbw}, {"link", report.bound_link}};
  auto& rows = out["rows"] = nlohmann::ordered_json::array();
  for (const CollectiveRow& row : report.rows) {
    const CallOutcome& call = row.out_of_place.outcome;
    nlohmann::ordered_json entry;
    entry["size"] = row.size.count();
    entry["count"] = row.request.count;
    entry["type"] = Name(row.request.type);
    entry["redop"] = PrintedOp(row.request);
    entry["root"] = row.printed_root;
    entry["out_of_place"] = PlaceJson(row.out_of_place);
    entry["in_place"] = PlaceJson(row.in_place);
    entry["algorithm"] = call.algorithm;
    entry["protocol"] = Name(call.protocol);
    entry["channels"] = call.channels;
    entry["chunk_bytes"] = call.chunk.count();
    entry["bound"] = call.bound;
    entry["link_bound_us"] = ToMicroseconds(call.ideal);
    entry["messages"] = call.messages;
    entry["events"] = call.events;
    if (!call.symmetry.empty()) entry["symmetry"] = call.symmetry;
    if (!call.notice.empty()) entry["notice"] = call.notice;
    auto& shares = entry["shares"] = nlohmann::ordered_json::array();
    for (const TimeShare& share : call.shares)
      shares.push_back({{"cause", share.cause}, {"time_us", ToMicroseconds(share.time)}});
    auto& links = entry["links"] = nlohmann::ordered_json::array();
    for (const LinkLoadReport::Row& link : call.links.rows) {
      links.push_back({{"name", link.name},
                       {"utilisation", link.utilisation},
                       {"payload_bytes", link.use.payload.count()},
                       {"wire_bytes", link.use.wire.count()},
                       {"packets", link.use.packets},
                       {"deepest_queue_bytes", link.use.deepest_queue},
                       {"pauses", link.use.pauses},
                       {"marks", link.use.marks},
                       {"drops", link.use.drops}});
    }
    rows.push_back(std::move(entry));
  }
  out["average_busbw_gbps"] = report.average_busbw();
  return out.dump(1) + "\n";
}

std::string ToCsv(const CollectiveReport& report) {
  std::string out =
      "size_bytes,count,type,redop,root,out_of_place_us,out_of_place_algbw_gbps,out_of_place_busbw_"
      "gbps,in_place_us,in_place_algbw_gbps,"
      "in_place_busbw_gbps,algorithm,protocol,channels,bound\n";
  for (const CollectiveRow& row : report.rows) {
    const CallOutcome& call = row.out_of_place.outcome;
    out += fmt::format(
        "{},{},{},{},{},{:.3f},{:.4f},{:.4f},{:.3f},{:.4f},{:.4f},{},{},{},\"{}\"\n",
        row.size.count(), row.request.count, Name(row.request.type), PrintedOp(row.request),
        row.printed_root, ToMicroseconds(call.time), row.out_of_place.algbw, row.out_of_place.busbw,
        ToMicroseconds(row.in_place.outcome.time), row.in_place.algbw, row.in_place.busbw,
        call.algorithm, Name(call.protocol), call.channels, call.bound);
  }
  return out;
}

}  // namespace windtunnel

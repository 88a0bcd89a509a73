#include <fmt/format.h>

#include <algorithm>

#include "validate/logs/other_logs.h"

namespace windtunnel::validate {
namespace {

std::string Series(const std::vector<SizeSeries>& all) {
  std::string text;
  for (const SizeSeries& series : all) {
    if (series.rows.empty()) {
      text += fmt::format("  {}: no whole row\n", series.name);
      continue;
    }
    const auto& first = series.rows.front();
    const auto& last = series.rows.back();
    text +=
        fmt::format("  {}: {} rows, {} B {} {} to {} B {} {}\n", series.name, series.rows.size(),
                    first.bytes, first.value, series.unit, last.bytes, last.value, series.unit);
  }
  return text;
}

std::string Info(const InfoLog& log) {
  std::string text = fmt::format("  {} INFO lines, version {}, {} ranks\n", log.info_lines,
                                 log.version.empty() ? "not printed" : log.version, log.ranks);
  if (!log.channel_lists.empty())
    text += fmt::format("  {} channel lists, first: {}\n", log.channel_lists.size(),
                        log.channel_lists.front());
  text += fmt::format("  {} tree lines; {}\n", log.tree_lines, log.channels);
  for (const auto& [path, count] : log.links) text += fmt::format("  {} x {}\n", count, path);
  for (const std::string& call : log.calls) text += "  " + call + "\n";
  return text;
}

std::string Copies(const CopyLog& log) {
  std::string text;
  for (const CopyMatrix& matrix : log.matrices) {
    text += fmt::format("  line {}: {}: {} x {} {}{}\n", matrix.line, matrix.title,
                        matrix.cells.size(), matrix.cells.front().size(), matrix.unit,
                        matrix.sum ? fmt::format(", sum {}", *matrix.sum) : "");
  }
  for (const std::string& warning : log.warnings) text += "  warning: " + warning + "\n";
  for (const std::string& failure : log.failures) text += "  failed: " + failure + "\n";
  return text;
}

std::string TopologyText(const TopologyLog& log) {
  std::string text;
  for (const TopologyMatrix& matrix : log.matrices) {
    text += fmt::format("  {}: {} GPUs, {} NICs, {} rows;",
                        matrix.peer_status ? "peer status" : "connections", matrix.gpus,
                        matrix.nics, matrix.rows.size());
    for (const auto& [kind, count] : matrix.counts) text += fmt::format(" {} x {}", count, kind);
    text += "\n";
  }
  if (!log.nic_names.empty()) text += fmt::format("  {} NIC names\n", log.nic_names.size());
  return text;
}

std::string Throughput(const ThroughputLog& log) {
  std::string text;
  if (log.mean_per_gpu)
    text += fmt::format("  {} per GPU over {} iterations\n", *log.mean_per_gpu, log.per_gpu.size());
  if (log.total) text += fmt::format("  {} on {} GPUs\n", *log.total, log.gpus);
  for (const auto& [name, values] : {std::pair{"examples/s", &log.examples_per_second},
                                     std::pair{"steps/s", &log.steps_per_second}}) {
    if (values->empty()) continue;
    const auto [low, high] = std::minmax_element(values->begin(), values->end());
    text += fmt::format("  {} measurements of {}: {} to {}, last {}\n", values->size(), name, *low,
                        *high, values->back());
  }
  return text;
}

}  // namespace

std::string DescribeLog(std::string_view text, LogKind kind) {
  std::string head =
      fmt::format("{}: read, not compared (no times of collectives)\n", ToString(kind));
  switch (kind) {
    case LogKind::kNcclInfo:
      return head + Info(ReadInfoLog(text));
    case LogKind::kTopologyMatrix:
      return head + TopologyText(ReadTopologyMatrices(text));
    case LogKind::kCopyMatrix:
      return head + Copies(ReadCopyMatrices(text));
    case LogKind::kPerftest:
      return head + Series(ReadPerftest(text));
    case LogKind::kOsu:
      return head + Series(ReadOsu(text));
    case LogKind::kXlaCollectives: {
      const XlaTable table = ReadXlaCollectives(text);
      return head + fmt::format("  {} on {} devices: {} rows\n", table.collective, table.devices,
                                table.rows.size());
    }
    case LogKind::kThroughput:
      return head + Throughput(ReadThroughput(text));
    case LogKind::kTfConfig:
      return head + "  a TF_CONFIG text: `windtunnel train --tf-config` reads it\n";
    case LogKind::kUnknown:
    case LogKind::kNcclTests:
    case LogKind::kNcclTestsJson:
      break;
  }
  return head;
}

}  // namespace windtunnel::validate

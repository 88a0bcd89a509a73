// ASTRA-sim's analytical network: per dimension a building block, a size, a rate and a latency per
// hop; dimension 0 is the innermost. Source of the meanings: astra-sim/astra-network-analytical
// @1f4d8e6c, test_congestion_unaware.cpp (1 MiB over "50.0" takes 19,531 ns, so its GB/s are 2^30
// bytes; a switch is two hops, each with the latency).

#include <algorithm>
#include <array>

#include "interconnect/foreign/foreign_builder.h"
#include "sim/parse_units.h"

namespace windtunnel::foreign {
namespace {

struct ListOf {
  std::uint64_t line = 0;
  std::vector<std::string> items;
};

// `key: [ a, b ]` or a block of `- a` lines. Nothing else of YAML occurs in this format, and
// nothing else is taken.
std::array<ListOf, 4> ReadLists(const Builder& builder, std::string_view text) {
  static const std::vector<std::string> keys = {"topology", "npus_count", "bandwidth", "latency"};
  std::array<ListOf, 4> lists;
  ListOf* open = nullptr;
  for (const Line& line : SplitLines(text)) {
    const std::string_view body = Trim(line.text.substr(0, line.text.find('#')));
    if (body.empty()) continue;
    if (body.starts_with("- ")) {
      if (open == nullptr) builder.Fail(line.number, "", body, "a list item below no key:");
      open->items.emplace_back(Trim(body.substr(2)));
      continue;
    }
    const std::size_t colon = body.find(':');
    const std::string key(Trim(body.substr(0, colon)));
    std::size_t which = 0;
    while (which < keys.size() && keys[which] != key) ++which;
    if (colon == std::string_view::npos || which == keys.size()) {
      InputFault fault = builder.At(line.number, "", key);
      fault.problem = "unknown key";
      fault.expected = JoinNames(keys);
      fault.nearest = NearestName(key, keys);
      throw ConfigError(std::move(fault));
    }
    if (lists[which].line != 0) builder.Fail(line.number, key, "", "given twice");
    lists[which].line = line.number;
    open = &lists[which];
    std::string_view value = Trim(body.substr(colon + 1));
    if (value.empty()) continue;
    if (!value.starts_with('[') || !value.ends_with(']')) {
      builder.Fail(line.number, key, value, "is not a list", "[ a, b, ... ]");
    }
    value = value.substr(1, value.size() - 2);
    open = nullptr;
    while (true) {
      const std::size_t comma = value.find(',');
      lists[which].items.emplace_back(Trim(value.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      value.remove_prefix(comma + 1);
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (lists[i].line == 0) builder.Fail(0, keys[i], "", "is missing");
    if (lists[i].items.size() != lists[0].items.size()) {
      builder.Fail(lists[i].line, keys[i], std::to_string(lists[i].items.size()),
                   "has another number of dimensions than topology, which has " +
                       std::to_string(lists[0].items.size()));
    }
  }
  return lists;
}

}  // namespace

Topology ReadAstraSim(std::string_view text, std::string_view file_name) {
  Builder builder(text, file_name, "astra-sim analytical");
  const auto lists = ReadLists(builder, text);
  const std::size_t dimensions = lists[0].items.size();
  static const std::vector<std::string> kinds = {"Ring", "FullyConnected", "Switch"};
  std::uint64_t total = 1;
  std::vector<std::uint64_t> counts;
  std::vector<BitsPerSecond> rates;
  std::vector<Picoseconds> latencies;
  bool relay = dimensions > 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::string& kind = lists[0].items[d];
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      InputFault fault = builder.At(lists[0].line, "topology", kind);
      fault.problem = "unknown building block";
      fault.expected = JoinNames(kinds);
      fault.nearest = NearestName(kind, kinds);
      throw ConfigError(std::move(fault));
    }
    relay = relay || kind == "Ring";
    counts.push_back(ParseCount(lists[1].items[d],
                                builder.At(lists[1].line, "npus_count", lists[1].items[d]), 1,
                                kMostDevices));
    total *= counts.back();
    if (total > kMostDevices) {
      builder.Fail(lists[1].line, "npus_count", lists[1].items[d],
                   "makes more than " + std::to_string(kMostDevices) + " endpoints");
    }
    const InputFault rate_at = builder.At(lists[2].line, "bandwidth", lists[2].items[d]);
    const double gib = ParseNumber(lists[2].items[d], rate_at);
    if (!(gib > 0) || gib > 1e6) {
      builder.Fail(lists[2].line, "bandwidth", lists[2].items[d], "is no rate",
                   "a number above 0, at most 1e6, in 2^30 bytes/s");
    }
    rates.push_back(BitsPerSecond(static_cast<std::uint64_t>(gib * 8 * (1ULL << 30) + 0.5)));
    const double ns =
        ParseNumber(lists[3].items[d], builder.At(lists[3].line, "latency", lists[3].items[d]));
    if (!(ns >= 0) || ns > 1e12) {
      builder.Fail(lists[3].line, "latency", lists[3].items[d], "is no latency",
                   "nanoseconds from 0 to 1e12");
    }
    latencies.push_back(FromMicroseconds(ns * 1e-3));
  }
  double devices = static_cast<double>(total);
  double cables = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto n = static_cast<double>(counts[d]);
    const double groups = static_cast<double>(total) / n;
    const std::string& kind = lists[0].items[d];
    if (kind == "Switch") devices += groups;
    cables += groups * (kind == "FullyConnected" ? n * (n - 1) / 2 : n);
    builder.CheckSize(lists[1].line, "npus_count", lists[1].items[d], devices, cables);
  }
  for (std::uint64_t i = 0; i < total; ++i) {
    builder.AddEndpoint("npu" + std::to_string(i), static_cast<std::uint32_t>(i), 0, relay);
  }
  std::uint64_t stride = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::uint64_t n = counts[d];
    for (std::uint64_t first = 0; first < total; ++first) {
      if (first / stride % n != 0 || n == 1) continue;  // One group per endpoint with coordinate 0.
      const auto member = [&](std::uint64_t k) {
        return static_cast<DeviceId>(first + k * stride);
      };
      if (lists[0].items[d] == "Switch") {
        const DeviceId hub =
            builder.AddSwitch("switch" + std::to_string(d) + "." + std::to_string(first));
        for (std::uint64_t k = 0; k < n; ++k) {
          builder.AddCable(member(k), hub, rates[d], latencies[d]);
        }
      } else if (lists[0].items[d] == "Ring") {
        // Two endpoints are joined by one cable, not by two in parallel.
        for (std::uint64_t k = 0; k < (n == 2 ? 1 : n); ++k) {
          builder.AddCable(member(k), member((k + 1) % n), rates[d], latencies[d]);
        }
      } else {
        for (std::uint64_t a = 0; a < n; ++a) {
          for (std::uint64_t b = a + 1; b < n; ++b) {
            builder.AddCable(member(a), member(b), rates[d], latencies[d]);
          }
        }
      }
    }
    stride *= n;
  }
  builder.Note(
      "bandwidth is read as ASTRA-sim does: 1 GB/s = 2^30 bytes/s per link and direction (" +
      lists[2].items[0] + " is " + FormatRate(rates[0]) + ")");
  builder.Note("latency is per hop; a Switch is two hops");
  return builder.Finish();
}

}  // namespace windtunnel::foreign

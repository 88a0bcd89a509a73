// Link lists of packet simulators: ns-3 as ASTRA-sim's back end reads it, SimAI's variant, and the
// tiers of htsim. Rates are decimal bits per second per direction; every link is full duplex.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "interconnect/foreign/foreign_builder.h"
#include "sim/parse_units.h"

namespace windtunnel::foreign {
namespace {

// "400Gbps": decimal bits per second.
BitsPerSecond Rate(const Builder& builder, std::uint64_t line, std::string_view word) {
  if (!word.ends_with("bps")) {
    builder.Fail(line, "rate", word, "is not a rate", "a number with bps, Kbps, Mbps, Gbps, Tbps");
  }
  return ParseRate(word, builder.At(line, "rate", word));
}

// "0.0005ms", "500ns".
Picoseconds Latency(const Builder& builder, std::uint64_t line, std::string_view word) {
  return ParseTime(word, builder.At(line, "latency", word));
}

double ErrorRate(const Builder& builder, std::uint64_t line, std::string_view word) {
  const double rate = ParseNumber(word, builder.At(line, "error rate", word));
  if (rate < 0 || rate > 1) builder.Fail(line, "error rate", word, "is not between 0 and 1");
  return rate;
}

/// A cable and its share of broken frames, as the file spells it.
struct CableError {
  DeviceId a, b;
  bool network;
  double rate;
  std::string_view word;
};

/// Gives the packet level its error rates, both directions alike, as ns-3's back ends set them per
/// packet: the commonest rate of network cables for all, the others by name.
void CarryErrorRates(Builder* builder, const std::vector<CableError>& cables) {
  constexpr std::size_t kMostByName = 1000;
  std::map<std::string_view, std::size_t> counts;
  std::size_t lossy = 0;
  for (const CableError& cable : cables) {
    if (cable.network) ++counts[cable.rate > 0 ? cable.word : "0"];
    if (cable.rate > 0) ++lossy;
  }
  if (lossy == 0) return;
  std::string_view common = "0";
  for (const auto& [word, count] : counts) {
    if (count > counts[common]) common = word;
  }
  std::string settings = common == "0" ? "" : "error-rate=" + std::string(common);
  std::size_t by_name = 0;
  Topology& topology = builder->topology();
  for (const CableError& cable : cables) {
    const std::string_view word = cable.rate > 0 ? cable.word : "0";
    if (word == (cable.network ? common : "0")) continue;
    ++by_name;
    if (by_name > kMostByName) continue;
    for (const auto& [from, to] : {std::pair{cable.a, cable.b}, std::pair{cable.b, cable.a}}) {
      if (!settings.empty()) settings += ",";
      settings += "error-rate=" + std::string(word) + "@" + topology.devices[from].name + "->" +
                  topology.devices[to].name;
    }
  }
  if (by_name > kMostByName) {
    builder->Warn(std::to_string(lossy) +
                  " links have an error rate, which is not taken over: " + std::to_string(by_name) +
                  " differ from the commonest, at most " + std::to_string(kMostByName) + " may");
    return;
  }
  topology.devices.front().attributes["network"] = settings;
  builder->Note(std::to_string(lossy) +
                " links have an error rate: at packet level their frames break by it");
}

// The lines of links: "source target rate latency error".
void ReadLinks(Builder* builder, const std::vector<Line>& lines, std::size_t first,
               std::uint64_t expected) {
  std::uint64_t read = 0;
  std::vector<CableError> errors;
  const std::uint64_t devices = builder->topology().devices.size();
  for (std::size_t i = first; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.words.empty()) continue;
    if (line.words.size() != 5) {
      builder->Fail(line.number, "link", Trim(line.text),
                    "has " + std::to_string(line.words.size()) + " words",
                    "source target rate latency error");
    }
    const auto end = [&](std::size_t word) {
      return static_cast<DeviceId>(ParseCount(
          line.words[word], builder->At(line.number, "link", line.words[word]), 0, devices - 1));
    };
    const DeviceId a = end(0);
    const DeviceId b = end(1);
    if (a == b) builder->Fail(line.number, "link", line.words[0], "joins a node to itself:");
    const double error = ErrorRate(*builder, line.number, line.words[4]);
    const auto is = [&](DeviceId id, DeviceKind kind) {
      return builder->topology().devices[id].kind == kind;
    };
    const bool nvlink = is(a, DeviceKind::kNvSwitch) || is(b, DeviceKind::kNvSwitch);
    builder->AddCable(a, b, Rate(*builder, line.number, line.words[2]),
                      Latency(*builder, line.number, line.words[3]),
                      nvlink ? LinkKind::kNvlink : LinkKind::kNetwork);
    errors.push_back({a, b, !nvlink, error, line.words[4]});
    // Endpoints that are joined without a switch have to pass traffic on.
    if (is(a, DeviceKind::kGpu) && is(b, DeviceKind::kGpu)) {
      builder->topology().devices[a].relay = builder->topology().devices[b].relay = true;
    }
    ++read;
  }
  if (read != expected) {
    builder->Fail(lines[0].number, "links", std::to_string(expected),
                  "links announced, " + std::to_string(read) + " listed:");
  }
  builder->Note("rates are decimal bits per second, one direction of a full-duplex link");
  CarryErrorRates(builder, errors);
}

std::uint64_t HeaderCount(const Builder& builder, const Line& line, std::size_t word,
                          std::string field) {
  const std::uint64_t most = field == "links" ? kMostLinks / 2 : kMostDevices;
  return ParseCount(line.words[word], builder.At(line.number, std::move(field), line.words[word]),
                    0, most);
}

// Numbers of the nodes that are switches, in the order of the file.
std::vector<std::uint64_t> SwitchIds(const Builder& builder, const std::vector<Line>& lines,
                                     std::uint64_t count, std::uint64_t nodes, std::size_t* next) {
  std::vector<std::uint64_t> ids;
  std::set<std::uint64_t> seen;
  // One line in the files seen; wrapped lists are taken too. An empty line stands for no switch.
  std::size_t i = 1;
  for (; i < lines.size() && (ids.size() < count || i == 1); ++i) {
    if (i == 1 && count == 0 && !lines[1].words.empty()) break;
    for (const std::string_view word : lines[i].words) {
      const std::uint64_t id = ParseCount(word, builder.At(lines[i].number, "switches", word), 0,
                                          nodes == 0 ? 0 : nodes - 1);
      if (!seen.insert(id).second) {
        builder.Fail(lines[i].number, "switches", word, "the switch is listed twice:");
      }
      ids.push_back(id);
    }
  }
  if (ids.size() != count) {
    builder.Fail(lines.size() > 1 ? lines[1].number : 1, "switches", std::to_string(count),
                 "switches announced, " + std::to_string(ids.size()) + " listed:");
  }
  *next = i;
  return ids;
}

}  // namespace

Topology ReadNs3(std::string_view text, std::string_view file_name) {
  Builder builder(text, file_name, "ns-3 link list");
  const std::vector<Line> lines = SplitLines(text);
  if (lines.empty() || lines[0].words.size() != 3) {
    builder.Fail(1, "header", lines.empty() ? "" : lines[0].text, "is not the header of a list",
                 "nodes switches links");
  }
  const std::uint64_t nodes = HeaderCount(builder, lines[0], 0, "nodes");
  const std::uint64_t switches = HeaderCount(builder, lines[0], 1, "switches");
  const std::uint64_t links = HeaderCount(builder, lines[0], 2, "links");
  if (switches > nodes) {
    builder.Fail(lines[0].number, "switches", lines[0].words[1], "more switches than nodes");
  }
  std::size_t next = 0;
  const auto ids = SwitchIds(builder, lines, switches, nodes, &next);
  const std::set<std::uint64_t> is_switch(ids.begin(), ids.end());
  std::uint32_t endpoint = 0;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    if (is_switch.contains(i)) {
      builder.AddSwitch("switch" + std::to_string(i));
    } else {
      builder.AddEndpoint("node" + std::to_string(i), endpoint++, 0, false);
    }
  }
  ReadLinks(&builder, lines, next, links);
  builder.Note(std::to_string(endpoint) + " endpoints; " + std::to_string(switches) +
               " switches are not ranks");
  return builder.Finish();
}

Topology ReadSimAi(std::string_view text, std::string_view file_name) {
  Builder builder(text, file_name, "SimAI link list");
  const std::vector<Line> lines = SplitLines(text);
  if (lines.empty() || lines[0].words.size() != 6) {
    builder.Fail(1, "header", lines.empty() ? "" : lines[0].text, "is not the header of a list",
                 "nodes gpus_per_server nv_switches switches links gpu_type");
  }
  const Line& head = lines[0];
  const std::uint64_t nodes = HeaderCount(builder, head, 0, "nodes");
  const std::uint64_t per_server = HeaderCount(builder, head, 1, "gpus_per_server");
  const std::uint64_t nv_switches = HeaderCount(builder, head, 2, "nv_switches");
  const std::uint64_t switches = HeaderCount(builder, head, 3, "switches");
  const std::uint64_t links = HeaderCount(builder, head, 4, "links");
  if (per_server == 0) builder.Fail(head.number, "gpus_per_server", "0", "must be at least 1");
  if (nv_switches + switches > nodes) {
    builder.Fail(head.number, "switches", head.words[3], "more switches than nodes");
  }
  std::size_t next = 0;
  const auto ids = SwitchIds(builder, lines, nv_switches + switches, nodes, &next);
  const std::set<std::uint64_t> nv(ids.begin(),
                                   ids.begin() + static_cast<std::ptrdiff_t>(nv_switches));
  const std::set<std::uint64_t> other(ids.begin() + static_cast<std::ptrdiff_t>(nv_switches),
                                      ids.end());
  std::uint64_t gpu = 0;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    if (nv.contains(i)) {
      builder.AddSwitch("nvswitch" + std::to_string(i), DeviceKind::kNvSwitch);
    } else if (other.contains(i)) {
      builder.AddSwitch("switch" + std::to_string(i));
    } else {
      const DeviceId id = builder.AddEndpoint("gpu" + std::to_string(i),
                                              static_cast<std::uint32_t>(gpu / per_server),
                                              static_cast<std::uint32_t>(gpu % per_server), false);
      builder.topology().devices[id].attributes["gpu_type"] = head.words[5];
      ++gpu;
    }
  }
  ReadLinks(&builder, lines, next, links);
  builder.Note(std::to_string(gpu) + " GPUs of type " + std::string(head.words[5]) + "; " +
               std::to_string(nv_switches + switches) + " switches are not ranks");
  return builder.Finish();
}

Topology ReadHtsim(std::string_view text, std::string_view file_name) {
  Builder builder(text, file_name, "htsim fat tree");
  struct Tier {
    std::uint64_t line = 0;
    std::uint64_t gbps = 0;
    std::uint64_t down = 0;
    std::uint64_t up = 0;
    std::uint64_t latency_ns = 0;
    std::uint64_t bundle = 1;
  };
  std::uint64_t nodes = 0;
  std::uint64_t tier_count = 0;
  std::uint64_t pod = 0;
  std::vector<Tier> tiers;
  static const std::vector<std::string> keys = {"Nodes",
                                                "Tiers",
                                                "Podsize",
                                                "Tier",
                                                "Downlink_speed_Gbps",
                                                "Radix_Down",
                                                "Radix_Up",
                                                "Downlink_Latency_ns",
                                                "Bundle"};
  for (const Line& line : SplitLines(text)) {
    if (line.words.empty() || line.words[0].starts_with('#')) continue;
    const std::string key(line.words[0]);
    if (line.words.size() != 2) {
      builder.Fail(line.number, key, Trim(line.text), "is not a key and a number");
    }
    const std::uint64_t value =
        ParseCount(line.words[1], builder.At(line.number, key, line.words[1]), 0, 1'000'000'000);
    if (key == "Nodes") {
      nodes = value;
    } else if (key == "Tiers") {
      tier_count = value;
    } else if (key == "Podsize") {
      pod = value;
    } else if (key == "Tier") {
      if (value != tiers.size()) builder.Fail(line.number, key, line.words[1], "out of order:");
      tiers.push_back({.line = line.number});
    } else if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      InputFault fault = builder.At(line.number, "", key);
      fault.problem = "unknown key";
      fault.expected = JoinNames(keys);
      fault.nearest = NearestName(key, keys);
      throw ConfigError(std::move(fault));
    } else if (tiers.empty()) {
      builder.Fail(line.number, key, line.words[1], "stands before the first Tier");
    } else {
      Tier& tier = tiers.back();
      (key == "Downlink_speed_Gbps"   ? tier.gbps
       : key == "Radix_Down"          ? tier.down
       : key == "Radix_Up"            ? tier.up
       : key == "Downlink_Latency_ns" ? tier.latency_ns
                                      : tier.bundle) = value;
    }
  }
  if (nodes == 0 || nodes > kMostDevices) {
    builder.Fail(0, "Nodes", std::to_string(nodes), "is not a count from 1 to 1000000");
  }
  if (tier_count != tiers.size() || (tier_count != 2 && tier_count != 3)) {
    builder.Fail(0, "Tiers", std::to_string(tier_count),
                 "tiers announced, " + std::to_string(tiers.size()) + " described", "2 or 3");
  }
  for (const Tier& tier : tiers) {
    if (tier.gbps == 0 || tier.down == 0 || tier.bundle == 0) {
      builder.Fail(tier.line, "Tier", "",
                   "needs Downlink_speed_Gbps, Radix_Down and Bundle above 0");
    }
  }
  const std::uint64_t leaves = nodes / tiers[0].down;
  if (leaves * tiers[0].down != nodes) {
    builder.Fail(tiers[0].line, "Radix_Down", std::to_string(tiers[0].down),
                 "does not divide Nodes");
  }
  const auto rate = [&](std::size_t t) {
    return GigabitsPerSecond(tiers[t].gbps * tiers[t].bundle);
  };
  const auto latency = [&](std::size_t t) { return Nanoseconds(tiers[t].latency_ns); };
  std::vector<DeviceId> leaf_ids;
  const auto build_leaves = [&] {
    for (std::uint64_t i = 0; i < nodes; ++i) {
      builder.AddEndpoint("node" + std::to_string(i), static_cast<std::uint32_t>(i), 0, false);
    }
    for (std::uint64_t l = 0; l < leaves; ++l) {
      leaf_ids.push_back(builder.AddSwitch("tor" + std::to_string(l)));
      for (std::uint64_t k = 0; k < tiers[0].down; ++k) {
        builder.AddCable(static_cast<DeviceId>(l * tiers[0].down + k), leaf_ids.back(), rate(0),
                         latency(0));
      }
    }
  };
  // Ports up of a switch spread evenly over the switches above; `bundle` cables make one port.
  const auto ports_up = [&](std::size_t t) {
    const std::uint64_t ports = tiers[t].up / tiers[t + 1].bundle;
    if (ports == 0 || ports * tiers[t + 1].bundle != tiers[t].up) {
      builder.Fail(
          tiers[t].line, "Radix_Up", std::to_string(tiers[t].up),
          "is no multiple of the Bundle above, which is " + std::to_string(tiers[t + 1].bundle));
    }
    return ports;
  };
  const auto ports_down = [&](std::size_t t) {
    const std::uint64_t ports = tiers[t].down / tiers[t].bundle;
    if (ports == 0) builder.Fail(tiers[t].line, "Radix_Down", "", "is smaller than Bundle");
    return ports;
  };
  const auto check = [&](std::size_t tier, std::uint64_t switches, double cables) {
    builder.CheckSize(tiers[tier].line, "Tier", std::to_string(tier),
                      static_cast<double>(nodes + leaves) + static_cast<double>(switches),
                      static_cast<double>(nodes) + cables);
  };
  if (tier_count == 2) {
    const std::uint64_t spines = ports_up(0);
    check(1, spines, static_cast<double>(spines) * static_cast<double>(leaves));
    build_leaves();
    for (std::uint64_t s = 0; s < spines; ++s) {
      const DeviceId id = builder.AddSwitch("core" + std::to_string(s));
      for (const DeviceId leaf : leaf_ids) builder.AddCable(leaf, id, rate(1), latency(1));
    }
  } else {
    if (pod == 0 || nodes % pod != 0 || pod % tiers[0].down != 0) {
      builder.Fail(0, "Podsize", std::to_string(pod),
                   "must divide Nodes and be a multiple of the leaves' Radix_Down");
    }
    const std::uint64_t pods = nodes / pod;
    const std::uint64_t pod_leaves = pod / tiers[0].down;
    const std::uint64_t aggs = ports_up(0);
    if (ports_down(1) < pod_leaves) {
      builder.Fail(tiers[1].line, "Radix_Down", std::to_string(tiers[1].down),
                   "cannot reach the " + std::to_string(pod_leaves) + " leaves of a pod");
    }
    const std::uint64_t agg_up = ports_up(1);
    const std::uint64_t cores = aggs * agg_up * pods / ports_down(2);
    if (cores == 0 || cores % aggs != 0) {
      builder.Fail(tiers[2].line, "Radix_Down", std::to_string(tiers[2].down),
                   "does not fit the ports of the tier below");
    }
    check(2, pods * aggs + cores,
          static_cast<double>(pods) * static_cast<double>(aggs * pod_leaves + cores));
    build_leaves();
    std::vector<DeviceId> agg_ids;
    for (std::uint64_t p = 0; p < pods; ++p) {
      for (std::uint64_t a = 0; a < aggs; ++a) {
        agg_ids.push_back(builder.AddSwitch("agg" + std::to_string(p) + "." + std::to_string(a)));
        for (std::uint64_t l = 0; l < pod_leaves; ++l) {
          builder.AddCable(leaf_ids[p * pod_leaves + l], agg_ids.back(), rate(1), latency(1));
        }
      }
    }
    // Plane a of the core serves switch a of every pod.
    const std::uint64_t per_plane = cores / aggs;
    for (std::uint64_t c = 0; c < cores; ++c) {
      const DeviceId id = builder.AddSwitch("core" + std::to_string(c));
      const std::uint64_t plane = c / per_plane;
      for (std::uint64_t p = 0; p < pods; ++p) {
        builder.AddCable(agg_ids[p * aggs + plane], id,
                         BitsPerSecond(rate(2).count() * agg_up / per_plane), latency(2));
      }
    }
  }
  builder.Note("rates are decimal Gb/s per cable and direction; Bundle cables are one faster link");
  builder.Note("latency is that of the cable; htsim's own queues are not part of the file");
  return builder.Finish();
}

}  // namespace windtunnel::foreign

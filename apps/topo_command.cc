#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output_file.h"
#include "apps/topo_report.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr std::string_view kManual = R"(NAME
  windtunnel topo - look at, verify, convert and compare clusters

SYNOPSIS
  windtunnel topo show FILE
  windtunnel topo check FILE
  windtunnel topo convert FILE [-o OUT] [--to FORMAT]
  windtunnel topo diff A B
  windtunnel topo list

DESCRIPTION
  show     prints devices, links, how near the devices of each host are to each other (the matrix of
           `nvidia-smi topo -m`, in NCCL's words LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET), the
           bisection, and the bus bandwidth that no run of a collective can pass.
  check    lists what is odd and what it costs: NVLinks of unequal directions, slots with few lanes,
           NICs on the other socket or behind too slow a slot, peer-to-peer switched off, parts
           without a link between them, links that are down, and every default that was filled in.
  convert  writes the cluster in another format.
  diff     lists devices and links that differ: "-" only in A, "+" only in B, "~" changed.
  list     names the systems that windtunnel ships.

  FILE is a path, the name of a shipped system (hgx-h200), or a short form of several hosts:
  'hgx-h100*4' is four of them on one switch that never blocks, 'hgx-h100*4:FABRIC' on that fabric.
  Read are YAML, JSON, protobuf text and binary (docs/topology-files.md), NCCL topology XML
  (docs/formats-nccl-xml.md) and the text of `nvidia-smi topo -m`.

OPTIONS
  -o, --output OUT     convert: the file to write; without it, or with -, stdout
  --to FORMAT          convert: yaml, json, textproto, binary, xml, dot or svg; without it, from the
                       name of OUT, else yaml
  --nodes N            take the host of FILE N times, on one switch that never blocks
  --complete-as MODEL  GPU model (and NIC, as in h100-sxm+connectx-7) of files that do not say it:
                       skeletons of cloud images, nvidia-smi text
  --strict             NCCL XML: refuse what NCCL would take by a silent default

EXAMPLES
  windtunnel topo show hgx-h200
  windtunnel topo check two-socket-x4-slot
  windtunnel topo convert hgx-h200 -o hgx-h200.xml
  windtunnel topo convert topo.txt --complete-as a100-sxm4+connectx-6 -o box.yaml
  windtunnel topo diff hgx-h100 hgx-h200

EXIT STATUS
  0 done (also when check found something, or diff a difference), 1 the input is wrong, 3 a fault of
  windtunnel itself

SEE ALSO
  windtunnel help collective
)";

constexpr std::string_view kFormats[] = {"yaml", "json",       "textproto", "binary",
                                         "xml",  "nvidia-smi", "dot",       "svg"};

int Show(const Cluster& cluster) {
  for (const std::string& warning : cluster.topology().warnings)
    fmt::print(stderr, "windtunnel: warning: {}\n", warning);
  std::fputs(ShowTopology(cluster).c_str(), stdout);
  return kExitDone;
}

int Check(const Cluster& cluster) {
  const std::vector<TopologyFinding> findings = CheckTopology(cluster);
  for (const TopologyFinding& finding : findings) {
    fmt::print("{}\n", finding.what);
    if (!finding.cost.empty()) fmt::print("    costs: {}\n", finding.cost);
  }
  fmt::print("{}: {} finding{}\n", cluster.topology().name, findings.size(),
             findings.size() == 1 ? "" : "s");
  return kExitDone;
}

int Run(const std::vector<std::string>& arguments) {
  std::string action, output, to;
  std::vector<std::string> files;
  TopologyReadOptions options;
  CLI::App app;
  app.add_option("ACTION", action)->required();
  app.add_option("FILE", files);
  app.add_option("-o,--output", output);
  app.add_option("--to", to);
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1u, 1'000'000u));
  app.add_option("--complete-as", options.complete_as);
  app.add_flag("--strict", options.strict);
  ParseFlags(app, "topo", arguments);
  static const std::vector<std::string> kActions = {"show", "check", "convert", "diff", "list"};
  if (std::find(kActions.begin(), kActions.end(), action) == kActions.end()) {
    throw ConfigError({.field = "topo",
                       .value = action,
                       .problem = "unknown action",
                       .expected = "one of " + JoinNames(kActions),
                       .nearest = NearestName(action, kActions)});
  }
  const std::size_t wanted = action == "list" ? 0 : action == "diff" ? 2 : 1;
  if (files.size() != wanted) {
    throw ConfigError({.field = "topo " + action,
                       .value = fmt::format("{}", files.size()),
                       .problem = "takes another number of files than",
                       .expected = fmt::format("{}", wanted)});
  }
  if (action != "convert" && (!output.empty() || !to.empty())) {
    throw ConfigError({.field = output.empty() ? "--to" : "--output",
                       .problem = fmt::format("has no meaning for topo {}", action),
                       .expected = "topo convert"});
  }
  if (action == "list") {
    for (const std::string& name : ShippedTopologyNames()) fmt::print("{}\n", name);
    return kExitDone;
  }
  Topology first = LoadTopology(files[0], options);
  if (action == "diff") {
    const auto lines = DiffTopologies(first, LoadTopology(files[1], options));
    for (const std::string& line : lines) fmt::print("{}\n", line);
    if (lines.empty()) fmt::print("no difference\n");
    return kExitDone;
  }
  if (action == "convert") {
    TopologyFormat format = TopologyFormat::kYaml;
    if (!to.empty()) {
      format = ParseName<TopologyFormat>("--to", to, kFormats);
    } else if (!output.empty() && output != "-") {
      format = TopologyFormatOf(output, "");
    }
    for (const std::string& warning : first.warnings)
      fmt::print(stderr, "windtunnel: warning: {}\n", warning);
    WriteOutputFile("--output", output.empty() ? "-" : output, WriteTopologyText(first, format));
    return kExitDone;
  }
  const Cluster cluster(std::move(first));
  return action == "show" ? Show(cluster) : Check(cluster);
}

}  // namespace

const Command kTopoCommand = {.name = "topo",
                              .summary = "look at, verify, convert and compare clusters",
                              .run = Run,
                              .manual = kManual};

}  // namespace windtunnel

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "apps/command.h"
#include "apps/output_file.h"
#include "collectives/nccl/communicator.h"
#include "collectives/nccl/job_from_search.h"
#include "collectives/nccl/node_search.h"
#include "interconnect/nccl/xml.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "validate/nccl_plans/log_diff.h"
#include "validate/nccl_plans/verify.h"

namespace windtunnel {

namespace {

constexpr std::string_view kManual = R"(NAME
  windtunnel nccl - what NCCL decides on a machine, and proof that we decide the same

SYNOPSIS
  windtunnel nccl {table|choice|channels|verify|diff} ...
  windtunnel nccl table    -t TOPOLOGY [--nodes N] [--nccl-version V]
  windtunnel nccl choice   -t TOPOLOGY [--nodes N] [--nccl-version V] [--function F] [-b MIN] [-e MAX]
  windtunnel nccl channels -t TOPOLOGY [--nodes N] [--nccl-version V] [--rank R]
  windtunnel nccl verify DIR [--version V] [--kind K] [--case TEXT] [--json FILE]
                             [--from-recorded-search]
  windtunnel nccl diff LOG -t TOPOLOGY [--nodes N] [--nccl-version V]

DESCRIPTION
  table     latency (us) and bandwidth (GB/s) per function, algorithm and protocol, as NCCL prints
            it with NCCL_DEBUG_SUBSYS=TUNING
  choice    per size: algorithm, protocol, channels, threads, chunk and NCCL's own estimate
  channels  rings and trees of one rank, channel counts and thresholds, as in NCCL's log
  verify    holds our decisions against recorded ones of the real NCCL: a folder with
            nccl-VERSION/CASE.json and topo/. Every stage is fed with our own stage before it, from
            the topology file on. Prints per version and kind how many fields agree and differ, and
            the first differences.
  diff      holds our decisions against a log of a real run with NCCL_DEBUG=INFO: search results,
            rings, trees, NVLS heads, channel counts, thresholds, the tuning table and the choice
            per call, as far as the log prints them (NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING prints
            all). Each difference with its line, then counts by kind. Version, NCCL_* variables,
            the lack of NVLS multicast and a CollNet plugin are taken from the log where it prints
            them.

  NCCL_* variables of the process act as they do on NCCL.

OPTIONS
  -t, --topology NAME      file of any format, or name of a shipped system
  --nodes N                so many hosts like the one of the file
  --nccl-version V         2.10.3 to 2.30.7; default 2.28.9; diff: the one the log prints
  --function F             all_reduce (default), all_gather, reduce_scatter, broadcast, reduce
  -b, -e SIZE              smallest and largest size of `choice` (8, 8G), steps of two
  --rank R                 whose lines `channels` prints (0)
  --version V, --kind K, --case TEXT
                           verify only this version, report only this kind, only cases whose name
                           contains the text
  --json FILE              the report of verify as JSON; "-" is stdout
  --from-recorded-search   feed connection, tuning and planning with the recorded search: tells
                           where a difference begins

EXAMPLES
  windtunnel nccl choice -t topo.xml --nodes 4
  NCCL_ALGO=Ring windtunnel nccl table -t hgx-h100
  windtunnel nccl verify /data/nccl-plans --version 2.28.9
  windtunnel nccl diff nccl.log -t topo.xml --nodes 2

EXIT STATUS
  0 done, verify and diff: all agree; 1 the input is wrong; 2 verify and diff: some differ or a case
  did not run; 3 a fault of windtunnel

SEE ALSO
  docs/nccl-plan.md
)";

struct Options {
  std::string what;
  std::string topology;
  std::uint32_t nodes = 0;
  std::string version;
  std::string function = "all_reduce";
  std::string smallest = "8", largest = "8G";
  Rank rank = 0;
  std::string data, only_version, json;
  std::string log;
  nccl::VerifyOptions verify;
};

Options Parse(const std::vector<std::string>& arguments) {
  Options out;
  CLI::App app;
  app.set_help_flag();
  app.require_subcommand(1);
  for (const char* name : {"table", "choice", "channels"}) {
    CLI::App* sub = app.add_subcommand(name);
    sub->set_help_flag();
    sub->add_option("-t,--topology", out.topology)->required();
    sub->add_option("--nodes", out.nodes);
    sub->add_option("--nccl-version", out.version);
    sub->add_option("--function", out.function);
    sub->add_option("-b", out.smallest);
    sub->add_option("-e", out.largest);
    sub->add_option("--rank", out.rank);
  }
  CLI::App* diff = app.add_subcommand("diff");
  diff->set_help_flag();
  diff->add_option("LOG", out.log)->required();
  diff->add_option("-t,--topology", out.topology)->required();
  diff->add_option("--nodes", out.nodes);
  diff->add_option("--nccl-version", out.version);
  CLI::App* verify = app.add_subcommand("verify");
  verify->set_help_flag();
  verify->add_option("DIR", out.data)->required();
  verify->add_option("--version", out.only_version);
  verify->add_option("--kind", out.verify.kind);
  verify->add_option("--case", out.verify.case_filter);
  verify->add_option("--json", out.json);
  verify->add_flag("--from-recorded-search", out.verify.from_recorded_search);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw ConfigError({.field = "nccl", .problem = error.what()});
  }
  out.what = app.get_subcommands().front()->get_name();
  return out;
}

// One search per distinct host; hosts with the same file share it.
nccl::Job JobOfTopology(const Options& options, const nccl::NodeSearchRequest& base) {
  if (options.topology.ends_with(".xml")) {
    nccl::NodeSearchRequest request = base;
    request.nodes = static_cast<int>(std::max(options.nodes, 1U));
    return nccl::JobOfEqualHosts(nccl::SearchNode(nccl::ReadXmlFile(options.topology), request),
                                 request);
  }
  const Topology topology = LoadTopology(options.topology, {.nodes = options.nodes});
  std::map<std::string, nccl::SearchedHost> distinct;
  std::vector<const nccl::SearchedHost*> hosts;
  std::vector<std::vector<Rank>> places;
  Rank next = 0;
  for (std::uint32_t n = 0; n < topology.node_count; ++n) {
    const std::string xml = NodeNcclXml(topology, n);
    auto found = distinct.find(xml);
    if (found == distinct.end()) {
      nccl::NodeSearchRequest request = base;
      request.nodes = static_cast<int>(topology.node_count);
      const std::string name = fmt::format("{} (host {})", options.topology, n);
      found = distinct
                  .emplace(xml, nccl::DescribeHost(
                                    nccl::SearchNode(nccl::ParseXml(xml, name), request), request))
                  .first;
    }
    hosts.push_back(&found->second);
    auto& ranks = places.emplace_back();
    for (const auto& part : found->second.parts)
      for (std::size_t i = 0; i < part.seats.size(); ++i) ranks.push_back(next++);
  }
  return nccl::JobOfHosts(hosts, places);
}

nccl::Communicator CommunicatorOf(const Options& options) {
  nccl::NodeSearchRequest request;
  if (!options.version.empty())
    request.version = nccl::ParseNcclVersion(options.version, {.field = "--nccl-version"});
  request.environment = nccl::Environment::FromProcess();
  return nccl::Communicator(JobOfTopology(options, request), request.version, request.environment);
}

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

void PrintChoices(const Options& options) {
  constexpr std::pair<const char*, Function> kFunctions[] = {
      {"all_reduce", Function::kAllReduce},
      {"all_gather", Function::kAllGather},
      {"reduce_scatter", Function::kReduceScatter},
      {"broadcast", Function::kBroadcast},
      {"reduce", Function::kReduce}};
  const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                      [&](const auto& f) { return f.first == options.function; });
  if (function == std::end(kFunctions))
    throw ConfigError({.field = "--function",
                       .value = options.function,
                       .problem = "NCCL's tables do not have it;",
                       .expected = "all_reduce, all_gather, reduce_scatter, broadcast or reduce"});
  const std::uint64_t smallest = ParseNcclTestsSize(options.smallest, {.field = "-b"}).count();
  const std::uint64_t largest = ParseNcclTestsSize(options.largest, {.field = "-e"}).count();
  const nccl::Communicator comm = CommunicatorOf(options);
  const bool per_rank =
      function->second == Function::kAllGather || function->second == Function::kReduceScatter;
  const auto ranks = static_cast<std::uint64_t>(comm.rank_count());
  fmt::print("# {} float, {} ranks on {} nodes, NCCL {}\n", options.function, ranks,
             comm.node_count(), nccl::ToString(comm.version()));
  fmt::print("# {:>12} {:>14} {:>8} {:>8} {:>7} {:>12} {:>12}\n", "bytes", "algorithm", "protocol",
             "channels", "threads", "chunk bytes", "estimate us");
  for (std::uint64_t bytes = std::max<std::uint64_t>(smallest, 4); bytes <= largest; bytes *= 2) {
    const std::uint64_t count = bytes / 4 / (per_rank ? ranks : 1);
    if (count == 0) continue;
    const nccl::CallPlan plan =
        comm.Plan({.function = function->second, .count = count, .type = DataType::kFloat});
    fmt::print("  {:>12} {:>14} {:>8} {:>8} {:>7} {:>12} {:>12.2f}\n", bytes, Name(plan.algorithm),
               Name(plan.protocol), plan.channel_hi - plan.channel_lo + 1, plan.warps * 32,
               plan.shares.empty() ? 0 : plan.shares.front().chunk_bytes, plan.time_us);
  }
}

int RunVerify(Options options) {
  options.verify.data = options.data;
  if (!options.only_version.empty())
    options.verify.version = nccl::ParseNcclVersion(options.only_version, {.field = "--version"});
  const nccl::VerifyReport report = nccl::Verify(options.verify);
  if (!options.json.empty()) WriteOutputFile("--json", options.json, report.ToJson());
  if (options.json != "-") std::fputs(report.ToText().c_str(), stdout);
  return report.AllAgree() ? kExitDone : kExitJobFailed;
}

int RunDiff(const Options& options) {
  std::ifstream in(options.log, std::ios::binary);
  if (!in) throw ConfigError({.file = options.log, .problem = "cannot be read"});
  const std::string log((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const nccl::LogSetting setting = nccl::ReadLogSetting(log, options.log);
  nccl::NodeSearchRequest request;
  if (!options.version.empty())
    request.version = nccl::ParseNcclVersion(options.version, {.field = "--nccl-version"});
  else if (setting.version)
    request.version = *setting.version;
  request.environment = nccl::Environment::FromProcess();
  for (const auto& [name, value] : setting.variables) request.environment.Set(name, value);
  if (setting.multicast_off) request.multicast = false;
  request.collnet_plugin = setting.collnet_plugin;
  const nccl::Communicator comm(JobOfTopology(options, request), request.version,
                                request.environment);
  const nccl::LogDiff diff = nccl::DiffLog(log, options.log, comm);
  fmt::print("# {} against {}, {} ranks on {} nodes, NCCL {}\n", options.log, options.topology,
             comm.rank_count(), comm.node_count(), nccl::ToString(comm.version()));
  std::fputs(diff.ToText().c_str(), stdout);
  return diff.AllAgree() ? kExitDone : kExitJobFailed;
}

int RunNccl(const std::vector<std::string>& arguments) {
  const Options options = Parse(arguments);
  if (options.what == "verify") return RunVerify(options);
  if (options.what == "diff") return RunDiff(options);
  if (options.what == "choice") {
    PrintChoices(options);
    return kExitDone;
  }
  const nccl::Communicator comm = CommunicatorOf(options);
  PrintLines(options.what == "table" ? comm.TuningLines() : comm.InitLines(options.rank));
  return kExitDone;
}

}  // namespace

const Command kNcclCommand{"nccl", "what NCCL decides on a machine; verify against recorded plans",
                           RunNccl, kManual};

}  // namespace windtunnel

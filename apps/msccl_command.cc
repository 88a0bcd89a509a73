// `windtunnel msccl`: reads a synthesised schedule, proves it, writes it in canonical form.

#include <cstdio>
#include <filesystem>

#include "apps/command.h"
#include "collectives/chakra/custom_collective.h"
#include "collectives/chakra/trace_reader.h"
#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "collectives/msccl/schedule_file.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr std::string_view kManual = R"(NAME
    windtunnel msccl - check and convert MSCCL and MSCCL++ files, Chakra collectives

SYNOPSIS
    windtunnel msccl check FILE...
    windtunnel msccl convert FILE

DESCRIPTION
    check    Reads each file (MSCCL XML or MSCCL++ execution plan in JSON, told by the first
             character), runs it on symbolic chunks and prints one line: what was proved, with
             ranks, channels, steps and chunks sent; or the first thing that is wrong, with rank,
             chunk and step. A deadlock is named with the ranks that wait for each other.
             A file PREFIX.N.et is read as a Chakra trace: one line with its nodes. PREFIX alone is
             read as a collective of ASTRA-sim, PREFIX.0.et and up: transfers are matched, and
             where the metadata hold the program it was made from, that is proved.
    convert  Prints an MSCCL XML file in canonical spelling: every attribute, two blanks of
             indentation. Only a schedule that reads without a fault is printed; it need not be proved.

OPTIONS
    --help   This text.

EXAMPLES
    windtunnel msccl check algorithm.xml execution_plan.json
    windtunnel msccl check custom_ring_allreduce_8npus_1MB
    windtunnel msccl convert algorithm.xml > canonical.xml

EXIT STATUS
    0 every file proved; 1 a file cannot be read; 2 a schedule is wrong.

SEE ALSO
    windtunnel help collective
)";

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

struct Checked {
  std::string fault;
  Plan plan;
  std::string_view verdict = "proved";
  std::string_view unit = "chunks";
};
Checked ReadAndProve(const std::string& file) {
  if (!std::filesystem::exists(file) && chakra::IsPrefix(file)) {
    chakra::CustomCollective collective = chakra::ReadCollective(file);
    PrintWarnings(collective.warnings);
    return {
        chakra::Prove(collective), std::move(collective.plan),
        collective.has_program ? "proved" : "comes to its end (its places are not in the files)",
        "elements"};
  }
  const ScheduleFile schedule(file);
  return {schedule.Prove(), schedule.MakePlan(schedule.smallest_count())};
}

void DescribeTrace(const std::string& file) {
  const chakra::Trace trace = chakra::ReadTrace(file);
  PrintWarnings(trace.warnings);
  std::size_t counts[8] = {};
  for (const chakra::Node& node : trace.nodes) ++counts[static_cast<std::size_t>(node.type)];
  const auto of = [&](chakra::NodeType type) { return counts[static_cast<std::size_t>(type)]; };
  std::printf(
      "%s: read: Chakra trace '%s' of %zu nodes: %zu computations, %zu sends, %zu receives, %zu "
      "collectives; ordered by data dependencies\n",
      file.c_str(), trace.version.c_str(), trace.nodes.size(), of(chakra::NodeType::kCompute),
      of(chakra::NodeType::kSend), of(chakra::NodeType::kReceive),
      of(chakra::NodeType::kCollective));
}

int Check(const std::vector<std::string>& files) {
  int code = kExitDone;
  for (const std::string& file : files) {
    if (std::filesystem::path(file).extension() == ".et") {
      DescribeTrace(file);
      continue;
    }
    const Checked checked = ReadAndProve(file);
    if (!checked.fault.empty()) {
      std::printf("%s: wrong: %s\n", file.c_str(), checked.fault.c_str());
      code = kExitJobFailed;
      continue;
    }
    const Plan& plan = checked.plan;
    const FunctionalResult result = RunCounting(plan);
    std::printf(
        "%s: %s: %s '%s' on %u ranks, %u channels, %u steps, %llu %s sent\n", file.c_str(),
        std::string(checked.verdict).c_str(), std::string(Name(plan.request.function)).c_str(),
        plan.algorithm.c_str(), plan.request.rank_count, plan.channel_count, result.steps,
        static_cast<unsigned long long>(result.elements_sent), std::string(checked.unit).c_str());
  }
  return code;
}

int RunMsccl(const std::vector<std::string>& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments.front();
  const std::vector<std::string> files(
      arguments.empty() ? arguments.begin() : arguments.begin() + 1, arguments.end());
  if (verb != "check" && verb != "convert") {
    throw ConfigError({.field = "msccl",
                       .value = verb,
                       .problem = "unknown verb",
                       .expected = "check or convert",
                       .nearest = NearestName(verb, {"check", "convert"})});
  }
  if (files.empty() || (verb == "convert" && files.size() != 1)) {
    throw ConfigError({.field = "msccl " + verb,
                       .value = std::to_string(files.size()),
                       .problem = "wrong number of files",
                       .expected = verb == "check" ? "one or more" : "one"});
  }
  if (verb == "check") return Check(files);
  std::fputs(msccl::WriteXml(msccl::ReadXml(files.front())).c_str(), stdout);
  return kExitDone;
}

}  // namespace

const Command kMscclCommand = {
    .name = "msccl",
    .summary = "check MSCCL, MSCCL++ and Chakra collectives",
    .run = RunMsccl,
    .manual = kManual,
};

}  // namespace windtunnel

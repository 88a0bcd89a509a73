// `windtunnel msccl`: reads a synthesised schedule, proves it, writes it in canonical form.

#include <cstdio>
#include <fstream>

#include "apps/command.h"
#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "collectives/msccl/mscclpp_json.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr std::string_view kManual = R"(NAME
    windtunnel msccl - check and convert MSCCL algorithm files

SYNOPSIS
    windtunnel msccl check FILE...
    windtunnel msccl convert FILE

DESCRIPTION
    check    Reads each file (MSCCL XML or MSCCL++ execution plan in JSON, told by the first
             character), runs it on symbolic chunks and prints one line: what was proved, with
             ranks, channels, steps and chunks sent; or the first thing that is wrong, with rank,
             chunk and step. A deadlock is named with the ranks that wait for each other.
    convert  Prints an MSCCL XML file in canonical spelling: every attribute, two blanks of indentation.
             Only a schedule that reads without a fault is printed; it need not be proved.

OPTIONS
    --help   This text.

EXAMPLES
    windtunnel msccl check algorithm.xml execution_plan.json
    windtunnel msccl convert algorithm.xml > canonical.xml

EXIT STATUS
    0 every file proved; 1 a file cannot be read; 2 a schedule is wrong.

SEE ALSO
    windtunnel help collective
)";

// The first character that is no white space.
char FirstCharacter(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  char c = 0;
  in >> c;
  return c;
}

struct Checked {
  std::string fault;
  Plan smallest;
};
Checked ReadAndProve(const std::string& file) {
  if (FirstCharacter(file) == '{') {
    const mscclpp::ExecutionPlan plan = mscclpp::ReadJson(file);
    return {mscclpp::Prove(plan), mscclpp::MakePlan(plan, mscclpp::SmallestCount(plan))};
  }
  const msccl::Program program = msccl::ReadXml(file);
  return {msccl::Prove(program), msccl::MakePlan(program, msccl::SmallestCount(program))};
}

int Check(const std::vector<std::string>& files) {
  int code = kExitDone;
  for (const std::string& file : files) {
    const Checked checked = ReadAndProve(file);
    if (!checked.fault.empty()) {
      std::printf("%s: wrong: %s\n", file.c_str(), checked.fault.c_str());
      code = kExitJobFailed;
      continue;
    }
    const Plan& plan = checked.smallest;
    const FunctionalResult result = RunCounting(plan);
    std::printf("%s: proved: %s '%s' on %u ranks, %u channels, %u steps, %llu chunks sent\n",
                file.c_str(), std::string(Name(plan.request.function)).c_str(),
                plan.algorithm.c_str(), plan.request.rank_count, plan.channel_count, result.steps,
                static_cast<unsigned long long>(result.elements_sent));
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
    .summary = "check and convert MSCCL algorithm files",
    .run = RunMsccl,
    .manual = kManual,
};

}  // namespace windtunnel

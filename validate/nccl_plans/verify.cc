#include "validate/nccl_plans/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collectives/nccl/job_from_search.h"
#include "sim/error.h"
#include "validate/nccl_plans/case.h"
#include "validate/nccl_plans/verify_plan.h"
#include "validate/nccl_plans/verify_search.h"

namespace windtunnel::nccl {
namespace {

FieldCount& CountOf(std::vector<FieldCount>& counts, std::string_view kind) {
  for (FieldCount& count : counts)
    if (count.kind == kind) return count;
  return counts.emplace_back(FieldCount{.kind = std::string(kind)});
}

std::vector<FieldCount> EmptyPlanCounts() {
  std::vector<FieldCount> counts;
  for (const std::string_view kind : kPlanKinds) counts.push_back({.kind = std::string(kind)});
  return counts;
}

void AddTo(std::vector<FieldCount>& sums, const std::vector<FieldCount>& counts) {
  for (const FieldCount& count : counts) {
    FieldCount& sum = CountOf(sums, count.kind);
    sum.agree += count.agree;
    sum.differ += count.differ;
    for (const std::string& text : count.first_differences)
      if (sum.first_differences.size() < FieldCount::kKept) sum.first_differences.push_back(text);
  }
}

// Stages 1 to 4 by our own rules, from the topology file of the case.
Job JobOfOwnSearch(const PlanCase& plan_case, const VerifyOptions& options) {
  const NodeSearchRequest request = RequestOfCase(plan_case.document, plan_case.version);
  const auto topology = plan_case.document.at("topology").get<std::string>();
  const XmlDocument document = ReadXmlFile(ResolveTopology(topology, options.data));
  Job job = JobOfEqualHosts(SearchNode(document, request), request);
  job.collnet_plugin = plan_case.collnet_plugin;
  job.ranks_of_a_host_share_a_process = true;  // The harness runs all ranks as threads.
  return job;
}

}  // namespace

VerifyReport Verify(const VerifyOptions& options) {
  VerifyReport report;
  for (const auto& file : FindPlanCases(options.data)) {
    if (file.stem().string().find(options.case_filter) == std::string::npos) continue;
    const NcclVersion version =
        ParseNcclVersion(file.parent_path().filename().string().substr(5), {.file = file.string()});
    if (options.version && version != *options.version) continue;
    if (report.versions.empty() || report.versions.back().version != version)
      report.versions.push_back({version, 0, EmptyPlanCounts()});
    VerifyReport::Version& sum = report.versions.back();
    ++sum.cases;
    try {
      const PlanCase plan_case = ReadPlanCase(file);
      if (!options.from_recorded_search)
        AddTo(sum.kinds, VerifySearch(plan_case.document, options.data, version));
      auto counts = EmptyPlanCounts();
      VerifyPlan(plan_case,
                 Communicator(options.from_recorded_search ? JobFromRecordedSearch(plan_case)
                                                           : JobOfOwnSearch(plan_case, options),
                              version, plan_case.environment),
                 counts);
      AddTo(sum.kinds, counts);
    } catch (const std::exception& error) {
      report.failures.push_back(
          fmt::format("{} {}: {}", ToString(version), file.stem().string(), error.what()));
    }
  }
  if (!options.kind.empty()) {
    for (auto& version : report.versions)
      std::erase_if(version.kinds,
                    [&](const FieldCount& count) { return count.kind != options.kind; });
  }
  return report;
}

std::uint64_t VerifyReport::agree() const {
  std::uint64_t sum = 0;
  for (const Version& version : versions)
    for (const FieldCount& count : version.kinds) sum += count.agree;
  return sum;
}

std::uint64_t VerifyReport::differ() const {
  std::uint64_t sum = 0;
  for (const Version& version : versions)
    for (const FieldCount& count : version.kinds) sum += count.differ;
  return sum;
}

std::string VerifyReport::ToJson() const {
  nlohmann::ordered_json out;
  out["agree"] = agree();
  out["differ"] = differ();
  for (const Version& version : versions) {
    auto& entry = out["versions"][ToString(version.version)];
    entry["cases"] = version.cases;
    for (const FieldCount& count : version.kinds)
      entry["kinds"][count.kind] = {{"agree", count.agree},
                                    {"differ", count.differ},
                                    {"first_differences", count.first_differences}};
  }
  out["failures"] = failures;
  return out.dump(2) + "\n";
}

std::string VerifyReport::ToText() const {
  std::string out = fmt::format("{:<9} {:>5}  {:<10} {:>9} {:>7}  {:>8}\n", "version", "cases",
                                "kind", "agree", "differ", "equal %");
  const auto percent = [](std::uint64_t same, std::uint64_t other) {
    return same + other == 0
               ? 100.0
               : 100.0 * static_cast<double>(same) / static_cast<double>(same + other);
  };
  for (const Version& version : versions)
    for (const FieldCount& count : version.kinds) {
      if (count.agree + count.differ == 0) continue;
      out += fmt::format("{:<9} {:>5}  {:<10} {:>9} {:>7}  {:>8.3f}\n", ToString(version.version),
                         version.cases, count.kind, count.agree, count.differ,
                         percent(count.agree, count.differ));
    }
  out += fmt::format("all: {} fields agree, {} differ ({:.4f} %)\n", agree(), differ(),
                     percent(agree(), differ()));
  for (const Version& version : versions)
    for (const FieldCount& count : version.kinds)
      for (const std::string& text : count.first_differences)
        out += fmt::format("differs [{}] {}\n", count.kind, text);
  for (const std::string& failure : failures) out += "did not run: " + failure + "\n";
  return out;
}

}  // namespace windtunnel::nccl

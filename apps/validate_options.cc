#include "apps/validate_options.h"

#include <algorithm>
#include <utility>

#include "apps/flags.h"
#include "sim/data_files.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "validate/board_decisions.h"
#include "validate/topology_decisions.h"

namespace windtunnel {
namespace {

/// A share in per cent, 0 to 100, as a fraction.
double Percent(const char* flag, const std::string& text) {
  constexpr double kMost = 100;
  const double value = ParseNumber(text, {.field = flag});
  if (value < 0 || value > kMost)
    throw ConfigError({.field = flag,
                       .value = text,
                       .problem = "is out of range",
                       .expected = "per cent, 0 to 100"});
  return value / 100;
}

void Exclude(const char* flag, bool given, const char* other, bool other_given) {
  if (given && other_given)
    throw ConfigError({.field = flag, .problem = std::string("does not go with ") + other});
}

}  // namespace

ValidateOptions ParseValidateOptions(const std::vector<std::string>& arguments) {
  ValidateOptions options;
  std::string tolerance, plateau, fidelity;
  validate::FidelityOptions levels;
  bool leave_out = false, no_leave_out = false;
  CLI::App app;
  app.add_option("SET", options.set);
  app.add_option("--data", options.data);
  app.add_option("--log", options.log);
  app.add_option("-t,--topology", options.topology);
  app.add_option("--op", options.collective);
  app.add_option("--nccl", options.version);
  app.add_option("--json", options.json);
  app.add_option("--csv", options.csv);
  app.add_option("--html", options.html);
  app.add_option("--baseline", options.baseline);
  app.add_option("--write-baseline", options.write_baseline);
  app.add_option("--tolerance", tolerance);
  app.add_option("--ulp", options.ulp)->check(CLI::Range(0.0, 1e6));
  app.add_option("--require-plateau", plateau);
  app.add_option("--gpu-constants", options.gpu_constants);
  app.add_option("--fabric-constants", options.fabric_constants);
  app.add_option("-j,--threads", options.threads)->check(CLI::Range(0u, 256u));
  app.add_option("--fidelity", fidelity);
  auto* max_ranks = app.add_option("--max-ranks", levels.max_ranks)->check(CLI::Range(2u, 65536u));
  auto* sizes = app.add_option("--sizes", levels.sizes_per_band)->check(CLI::Range(0u, 1000u));
  app.add_flag("--diagnose", options.diagnose);
  app.add_flag("--leave-out", leave_out);
  app.add_flag("--no-leave-out", no_leave_out);
  app.add_flag("--markdown", options.markdown);
  app.add_flag("--runs", options.report.runs);
  app.add_flag("--repeats", options.report.repeats);
  app.add_flag("--steps", options.report.steps);
  app.add_flag("--search-topology", options.search_topology);
  app.add_flag("--require-goals", options.require_goals);
  ParseFlags(app, "validate", arguments);
  if (!tolerance.empty()) options.tolerance = Percent("--tolerance", tolerance);
  if (!plateau.empty()) options.require_plateau = Percent("--require-plateau", plateau);

  constexpr std::string_view kLevels[] = {"packet", "flow", "analytic"};
  if (!fidelity.empty()) {
    levels.level = ParseName<Fidelity>("--fidelity", fidelity, kLevels);
    levels.processes = options.threads;
    if (levels.level != Fidelity::kAnalytic) options.levels = levels;
  }
  for (const auto& [flag, option] : {std::pair{"--max-ranks", max_ranks}, {"--sizes", sizes}}) {
    if (option->count() > 0 && !options.levels)
      throw ConfigError(
          {.field = flag, .problem = "belongs to --fidelity flow and --fidelity packet"});
  }
  const bool log = !options.log.empty();
  Exclude("--leave-out", leave_out, "--no-leave-out", no_leave_out);
  const bool whole_set = !log && options.set.empty() && options.data.empty();
  options.leave_out = leave_out || options.markdown || (whole_set && !no_leave_out);
  if (!log) {
    for (const auto& [flag, value] :
         {std::pair{"-t", &options.topology}, std::pair{"--op", &options.collective},
          std::pair{"--nccl", &options.version}}) {
      if (!value->empty())
        throw ConfigError({.field = flag, .value = *value, .problem = "belongs to --log"});
    }
  }
  for (const auto& [flag, given] :
       {std::pair{"SET", !options.set.empty()}, std::pair{"--data", !options.data.empty()},
        std::pair{"--baseline", !options.baseline.empty()},
        std::pair{"--write-baseline", !options.write_baseline.empty()},
        std::pair{"--require-goals", options.require_goals},
        std::pair{"--require-plateau", options.require_plateau.has_value()}})
    Exclude("--log", log, flag, given);
  Exclude("--log", log, "--leave-out", leave_out);
  Exclude("--diagnose", options.diagnose, "--leave-out", leave_out);
  for (const auto& [flag, given] :
       {std::pair{"--log", log}, std::pair{"--diagnose", options.diagnose},
        std::pair{"--markdown", options.markdown}, std::pair{"--leave-out", leave_out},
        std::pair{"--csv", !options.csv.empty()}, std::pair{"--html", !options.html.empty()},
        std::pair{"--baseline", !options.baseline.empty()},
        std::pair{"--write-baseline", !options.write_baseline.empty()},
        std::pair{"--require-goals", options.require_goals},
        std::pair{"--require-plateau", options.require_plateau.has_value()}})
    Exclude("--fidelity", options.levels.has_value(), flag, given);
  Exclude("--log", log, "--markdown", options.markdown);
  Exclude("--diagnose", options.diagnose, "--markdown", options.markdown);
  Exclude("--markdown", options.markdown, "--no-leave-out", no_leave_out);
  // Faults change the usual graph of a board; a searched topology would not follow them.
  Exclude("--diagnose", options.diagnose, "--search-topology", options.search_topology);
  Exclude("--diagnose", options.diagnose, "--csv", !options.csv.empty());
  Exclude("--diagnose", options.diagnose, "--baseline", !options.baseline.empty());
  Exclude("--diagnose", options.diagnose, "--write-baseline", !options.write_baseline.empty());
  Exclude("--diagnose", options.diagnose, "--require-goals", options.require_goals);
  if (!tolerance.empty() && options.baseline.empty())
    throw ConfigError({.field = "--tolerance", .problem = "belongs to --baseline"});
  return options;
}

ChosenConstants::ChosenConstants(const ValidateOptions& options) {
  if (options.gpu_constants.empty() && options.fabric_constants.empty()) return;
  own_.emplace(options.gpu_constants.empty() ? ShippedFile("catalogue/timing/gpu.yaml")
                                             : std::filesystem::path(options.gpu_constants),
               options.fabric_constants.empty() ? ShippedFile("catalogue/timing/fabric.yaml")
                                                : std::filesystem::path(options.fabric_constants));
}

std::unique_ptr<validate::DecisionSource> ChosenDecisions(const ValidateOptions& options) {
  if (options.search_topology) return std::make_unique<validate::TopologyDecisions>();
  return std::make_unique<validate::BoardDecisions>();
}

}  // namespace windtunnel

// `windtunnel report`: results as a page for a browser.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/collective_result.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/html_report.h"
#include "apps/output_file.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

int RunReport(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  std::string out = "out/report.html";
  CLI::App app;
  app.add_option("RESULT", files);
  app.add_option("-o,--output", out);
  ParseFlags(app, "report", arguments);
  if (files.empty())
    throw ConfigError({.field = "RESULT",
                       .problem = "no result is named",
                       .expected = "files that `windtunnel collective --json FILE` wrote"});
  std::vector<CollectiveResult> results;
  for (const std::string& file : files) results.push_back(ReadCollectiveResult(file));
  WriteOutputFile("--output", out, HtmlReport(results));
  if (out != "-") fmt::print(stderr, "windtunnel: wrote {}\n", out);
  return kExitDone;
}

constexpr std::string_view kManual = R"(NAME
  windtunnel report - a page for a browser from one result or several

SYNOPSIS
  windtunnel report RESULT... [-o FILE]

DESCRIPTION
  Reads results that `windtunnel collective --json FILE` wrote and writes one HTML page that stands
  by itself: it loads nothing and runs no script, so it can be mailed or kept beside the result.

  The page shows bus bandwidth and time over the message size (both axes logarithmic, all results
  in one drawing), and for each result: what it was run with, what bounds it in words, where the
  time went per size, the table, the use of the busiest links per size, a picture of the devices
  with their links coloured by use, and the bytes each link carried.

OPTIONS
  -o, --output FILE  File to write; out/report.html when not given. "-" is standard output.

EXAMPLES
  windtunnel collective all_reduce -t hgx-h200 -b 8 -e 8G -f 2 --json out/h200.json
  windtunnel report out/h200.json
  windtunnel report out/a100.json out/h100.json out/h200.json -o out/generations.html

EXIT STATUS
  0 written; 1 a file cannot be read or written, or is not a result.

SEE ALSO
  windtunnel help collective, docs/report.md
)";

}  // namespace

const Command kReportCommand{"report", "a page for a browser from one result or several", RunReport,
                             kManual};

}  // namespace windtunnel

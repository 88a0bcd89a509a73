#include "validate/value_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/parse_units.h"

namespace windtunnel::validate {
namespace {

/// Distance from one to the next value of a type; 0: sums are exact (integers) or unknown.
double UnitInLastPlace(const std::string& type) {
  static const std::map<std::string, double> units = {
      {"float", std::ldexp(1.0, -23)},   {"double", std::ldexp(1.0, -52)},
      {"half", std::ldexp(1.0, -10)},    {"bfloat16", std::ldexp(1.0, -7)},
      {"f8e4m3", std::ldexp(1.0, -3)},   {"f8e5m2", std::ldexp(1.0, -2)},
      {"fp8_e4m3", std::ldexp(1.0, -3)}, {"fp8_e5m2", std::ldexp(1.0, -2)}};
  const auto it = units.find(type);
  return it == units.end() ? 0 : it->second;
}

bool InSwitch(timing::Algorithm algorithm) {
  return algorithm == timing::Algorithm::kNvls || algorithm == timing::Algorithm::kNvlsTree;
}

}  // namespace

ValueCheck CheckValues(const CollectiveTable& table, const ScoredRun& scored, double ulp) {
  ValueCheck check;
  for (const CollectiveRow& row : table.rows) {
    const auto point = std::find_if(scored.points.begin(), scored.points.end(),
                                    [&](const Point& p) { return p.bytes == row.bytes; });
    if (point == scored.points.end()) continue;
    const bool in_switch = InSwitch(point->facts.algorithm);
    const double unit = UnitInLastPlace(row.type.empty() ? scored.run.dtype : row.type);
    for (const auto* group : {&row.out_of_place, &row.in_place}) {
      if (!group->wrong) continue;
      ++check.checked;
      const double value = *group->wrong;
      if (value == 0) continue;
      const std::string place =
          fmt::format("line {}, {}, {}", row.line, FormatSize(Bytes(row.bytes)),
                      group == &row.in_place ? "in place" : "out of place");
      const std::string_view algorithm = timing::ToString(point->facts.algorithm);
      const bool is_count = value == std::floor(value);
      if (is_count) {
        if (in_switch && unit > 0) {
          check.notes.push_back(
              fmt::format("{}: {:g} values differ; {} adds in no fixed order: compare the values "
                          "themselves within {:g} units in the last place",
                          place, value, algorithm, ulp));
        } else {
          ++check.wrong;
          check.notes.push_back(fmt::format(
              "{}: {:g} wrong values; {} adds in a fixed order: a fault", place, value, algorithm));
        }
        continue;
      }
      if (unit == 0) {
        ++check.wrong;
        check.notes.push_back(
            fmt::format("{}: error {:g} where sums are exact: a fault", place, value));
        continue;
      }
      const double units = value / unit;
      const double roundings = 0.5 * std::max(1.0, scored.platform.facts.ranks - 1.0);
      const double allowed = roundings + (in_switch ? ulp : 0);
      if (units <= allowed) continue;
      ++check.wrong;
      check.notes.push_back(
          fmt::format("{}: error {:g} is {:.1f} units in the last place, {} over {} ranks explains "
                      "{:.1f}",
                      place, value, units, algorithm, scored.platform.facts.ranks, allowed));
    }
  }
  return check;
}

std::string TextValueCheck(const ValueCheck& check) {
  if (check.checked == 0) return {};
  std::string text = fmt::format(
      "values: {} checked, {}\n", check.checked,
      check.wrong == 0 ? std::string("none wrong") : fmt::format("{} wrong", check.wrong));
  for (const std::string& note : check.notes) text += "  " + note + "\n";
  return text;
}

}  // namespace windtunnel::validate

#include "validate/logs/collective_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "validate/logs/log_text.h"

namespace windtunnel::validate {
namespace {

constexpr std::string_view kTypes =
    "float|half|double|bfloat16|bf16|int8|uint8|int32|uint32|int64|uint64|char|int|fp8_e4m3|"
    "fp8_e5m2|f8e4m3|f8e5m2|float16|float32|float64|fp16|fp32|fp64|f16|f32|f64|u8|i8";
constexpr std::size_t kGroupFields = 4;
constexpr std::size_t kFields = 2 * kGroupFields;

/// MPI tags stand at the start of a line and also between the pieces of a row.
std::string WithoutMpiTags(const std::string& line) {
  if (!Contains(line, "]<std")) return line;
  static const std::regex tag(R"(\[\d+,\d+\]<std(out|err)>:)");
  return std::regex_replace(line, tag, " ");
}

const std::regex& HeadPattern() {
  // The size stands at the start or behind a prefix: "0: ", "nccl_1  | ", "[0] ", "#".
  static const std::regex pattern("(?:^|[\\s#|:>\\]])(\\d+)\\s+(\\d+)\\s+(" + std::string(kTypes) +
                                  ")(?=\\s|$)");
  return pattern;
}

std::uint64_t ElementBytes(const std::string& type) {
  if (type == "double" || type == "int64" || type == "uint64" || Contains(type, "64")) return 8;
  if (type == "half" || type == "bf16" || Contains(type, "16")) return 2;
  if (type == "char" || Contains(type, "8")) return 1;
  return 4;
}

bool IsField(const std::string& word) { return word == "N/A" || NumberOf(word).has_value(); }

std::optional<double> FieldValue(const std::string& word) { return NumberOf(word); }

/// The head of a row and as many of its fields as stand behind it.
struct PartialRow {
  CollectiveRow row;
  std::vector<std::string> fields;
};

std::optional<PartialRow> ReadHead(const std::string& line, std::uint64_t number) {
  std::smatch match;
  if (!std::regex_search(line, match, HeadPattern())) return std::nullopt;
  PartialRow partial;
  partial.row.line = number;
  const auto bytes = CountOf(match[1].str());
  const auto count = CountOf(match[2].str());
  if (!bytes || !count) return std::nullopt;
  partial.row.bytes = *bytes;
  partial.row.count = *count;
  partial.row.type = match[3];
  std::vector<std::string> words = Words(match.suffix().str());
  static const std::set<std::string> operations{"sum", "prod", "min", "max",    "avg",
                                                "all", "none", "any", "mulsum", "premulsum"};
  std::size_t at = 0;
  if (at < words.size() && operations.contains(words[at])) partial.row.redop = words[at++];
  std::vector<std::string> rest;
  for (; at < words.size() && IsField(words[at]); ++at) rest.push_back(words[at]);
  // A root stands before the two groups: nine fields, or a lone whole number at the tear.
  const bool torn = at < words.size();
  if (rest.size() == kFields + 1) {
    if (const auto root = NumberOf(rest[0])) partial.row.root = static_cast<int>(*root);
    rest.erase(rest.begin());
  } else if (rest.size() < kFields && !rest.empty() &&
             rest[0].find_first_of(".eN") == std::string::npos) {
    partial.row.root = static_cast<int>(*NumberOf(rest[0]));
    rest.erase(rest.begin());
  } else if (rest.empty() && torn) {
    // The root is glued to what another writer printed: "-1[0] node0".
    static const std::regex glued(R"(^(-?\d+)[^\d.])");
    std::smatch root;
    if (std::regex_search(words[at], root, glued)) partial.row.root = std::stoi(root[1]);
  }
  if (rest.size() > kFields) return std::nullopt;
  partial.fields = std::move(rest);
  return partial;
}

void Fill(CollectiveRow& row, const std::vector<std::string>& fields, double to_us) {
  const auto group = [&](std::size_t first) {
    CollectiveRow::Group result;
    result.time_us = FieldValue(fields[first]);
    if (result.time_us) *result.time_us *= to_us;
    result.algbw_gbps = FieldValue(fields[first + 1]);
    result.busbw_gbps = FieldValue(fields[first + 2]);
    result.wrong = FieldValue(fields[first + 3]);
    return result;
  };
  row.out_of_place = group(0);
  row.in_place = group(kGroupFields);
}

/// A line that holds nothing but fields: the second half of a torn row.
std::vector<std::string> LoneFields(const std::string& line) {
  static const std::regex tag(R"(^\s*(\[\d+\]|\d+:)\s)");
  const std::vector<std::string> words = Words(std::regex_replace(line, tag, ""));
  if (words.size() < kGroupFields || words.size() > kFields + 1) return {};
  bool decimal = false;
  for (const std::string& word : words) {
    if (!IsField(word)) return {};
    if (word.find('.') != std::string::npos) decimal = true;
  }
  return decimal ? words : std::vector<std::string>{};
}

std::string CollectiveOfProgram(const std::string& line) {
  static const std::regex program(
      R"((all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall|sendrecv|scatter|gather|hypercube)_perf)");
  std::smatch match;
  if (std::regex_search(line, match, program)) return match[1];
  static const std::regex gib(R"(run_nccl_tests\.sh.* -t +(\w+))");
  if (std::regex_search(line, match, gib)) return match[1];
  return {};
}

std::string VersionOfCode(const std::string& digits) {
  const auto code = CountOf(digits);
  if (!code) return digits;
  // 22807 is 2.28.7, 2408 is 2.4.8.
  if (*code >= 10000) return fmt::format("{}.{}.{}", *code / 10000, *code / 100 % 100, *code % 100);
  return fmt::format("{}.{}.{}", *code / 1000, *code / 100 % 10, *code % 100);
}

void ReadNotes(const std::string& line, CollectiveTable& table) {
  std::smatch match;
  static const std::regex device(
      R"(Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*))");
  static const std::regex old_device(R"(Device\s+(\d+)\s+->\s+\d+\s+\[0x[0-9a-f]+\]\s*(.*))");
  if (Contains(line, " device ") && std::regex_search(line, match, device)) {
    std::string name = match[3];
    name.erase(name.find_last_not_of(" \t") + 1);
    table.devices.push_back({static_cast<std::uint32_t>(std::stoul(match[1])), match[2], name});
    return;
  }
  if (Contains(line, " -> ") && std::regex_search(line, match, old_device)) {
    table.devices.push_back({static_cast<std::uint32_t>(std::stoul(match[1])), "", match[2]});
    return;
  }
  if (Contains(line, "nThread")) {
    static const std::regex launch(R"(nThread\s+(\d+)\s+nGpus\s+(\d+))");
    if (std::regex_search(line, match, launch)) {
      table.threads = static_cast<std::uint32_t>(std::stoul(match[1]));
      table.gpus = static_cast<std::uint32_t>(std::stoul(match[2]));
    }
  }
  static const std::regex library(R"(nccl-library=(\d+))");
  static const std::regex compiled(R"(compiled with NCCL (\d[\d.]*))");
  static const std::regex printed(R"((?:NCCL|RCCL) version\s*:?\s*(\d+\.\d+(?:\.\d+)?))");
  if (std::regex_search(line, match, library)) {
    table.nccl_version = VersionOfCode(match[1]);
  } else if (table.nccl_version.empty() && (std::regex_search(line, match, compiled) ||
                                            std::regex_search(line, match, printed))) {
    table.nccl_version = match[1];
  }
  static const std::regex bounds(R"(Out of bounds values\s*:\s*(\d+)\s*(\w+))");
  if (std::regex_search(line, match, bounds)) {
    table.out_of_bounds = CountOf(match[1].str());
    table.out_of_bounds_ok = match[2] == "OK";
  }
  static const std::regex average(R"(Avg bus bandwidth\s*:\s*([\d.eE+-]+))");
  if (std::regex_search(line, match, average)) table.average_busbw_gbps = NumberOf(match[1].str());
}

bool IsHeader(const std::string& line) {
  return Contains(line, "algbw") && Contains(line, "busbw") &&
         (Contains(line, "size") || Contains(line, "bytes"));
}

/// A table retyped by hand: size, time, algbw, busbw.
std::optional<CollectiveRow> ReadRetyped(const std::string& line, std::uint64_t number) {
  const std::vector<std::string> words = Words(line);
  if (words.size() != 4) return std::nullopt;
  std::string digits = words[0];
  std::erase(digits, '_');
  std::erase(digits, ',');
  const auto bytes = CountOf(digits);
  const auto time = NumberOf(words[1]);
  const auto algbw = NumberOf(words[2]);
  const auto busbw = NumberOf(words[3]);
  if (!bytes || !time || !algbw || !busbw) return std::nullopt;
  CollectiveRow row;
  row.line = number;
  row.bytes = *bytes;
  row.out_of_place = {time, algbw, busbw, std::nullopt};
  return row;
}

}  // namespace

std::size_t CollectiveTable::usable_rows() const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const CollectiveRow& row) {
        return row.bytes > 0 && (row.out_of_place.time_us || row.in_place.time_us);
      }));
}

std::vector<std::string> CollectiveTable::warnings() const {
  std::vector<std::string> result;
  if (rows.empty()) result.emplace_back("the table has no rows");
  const auto zero = std::count_if(rows.begin(), rows.end(),
                                  [](const CollectiveRow& row) { return row.bytes == 0; });
  if (zero > 0) result.push_back(fmt::format("{} rows of zero bytes are no data", zero));
  if (devices.size() == 1) result.emplace_back("a single rank: nothing moved, not a measurement");
  if (!out_of_bounds_ok)
    result.push_back(fmt::format("the check of values failed: {}", out_of_bounds.value_or(0)));
  for (const std::uint64_t line : torn_lines)
    result.push_back(fmt::format("line {}: row torn by another writer, left out", line));
  return result;
}

std::vector<CollectiveTable> ReadCollectiveTables(std::string_view text) {
  std::vector<CollectiveTable> tables;
  CollectiveTable table;
  std::optional<PartialRow> torn;
  bool retyped = false;
  bool header_seen = false;
  bool summary_seen = false;
  std::string command;
  const auto close_torn = [&] {
    if (torn) table.torn_lines.push_back(torn->row.line);
    torn.reset();
  };
  const auto close = [&] {
    close_torn();
    if (!table.rows.empty() || header_seen || !table.torn_lines.empty() || !table.devices.empty())
      tables.push_back(std::move(table));
    table = {};
    header_seen = summary_seen = retyped = false;
  };
  std::uint64_t number = 0;
  for (const std::string& raw : Lines(text)) {
    ++number;
    const std::string line = WithoutMpiTags(raw);
    const bool begins = Contains(line, "nThread ") || Contains(line, "Collective test starting");
    if ((begins || IsHeader(line)) && (!table.rows.empty() || summary_seen)) {
      const std::string version = table.nccl_version;
      close();
      table.nccl_version = version;
    }
    if (const std::string collective = CollectiveOfProgram(line);
        !collective.empty() && !Contains(line, "concluded")) {
      // The command line of the next table follows the summary of this one.
      if (summary_seen) close();
      table.collective = collective;
      if (!begins) table.command = line;
    }
    if (IsHeader(line)) {
      header_seen = true;
      // NCCL 1 and the first tests print milliseconds beside a column "res".
      table.milliseconds = Contains(line, " res");
      retyped = !Contains(line, "count") && !Contains(line, " N ") && !Contains(line, "type");
      continue;
    }
    const double to_us = table.milliseconds ? 1000.0 : 1.0;
    if (auto head = ReadHead(line, number)) {
      close_torn();
      if (head->fields.size() == kFields) {
        Fill(head->row, head->fields, to_us);
        table.rows.push_back(std::move(head->row));
      } else {
        torn = std::move(head);
      }
      continue;
    }
    if (const auto fields = LoneFields(line); !fields.empty() && !retyped) {
      if (torn && torn->fields.size() + fields.size() == kFields) {
        torn->fields.insert(torn->fields.end(), fields.begin(), fields.end());
        Fill(torn->row, torn->fields, to_us);
        table.rows.push_back(std::move(torn->row));
        torn.reset();
      } else {
        ++table.orphan_tails;
      }
      continue;
    }
    if (retyped) {
      if (auto row = ReadRetyped(line, number)) {
        table.rows.push_back(std::move(*row));
        continue;
      }
    }
    ReadNotes(line, table);
    if (Contains(line, "Avg bus bandwidth")) summary_seen = true;
  }
  close();
  return tables;
}

CollectiveTable ReadCollectiveJson(std::string_view text, const InputFault& where) {
  using Json = nlohmann::json;
  CollectiveTable table;
  const auto refuse = [&](std::string problem) -> ConfigError {
    InputFault fault = where;
    fault.problem = std::move(problem);
    fault.expected = "the JSON file of nccl-tests";
    return ConfigError(std::move(fault));
  };
  try {
    const Json json = Json::parse(text);
    const auto results = json.find("results");
    if (results == json.end()) throw refuse("has no results");
    const Json config = json.value("config", Json::object());
    const auto version = json.value("nccl_version", Json());
    if (version.is_number()) table.nccl_version = VersionOfCode(version.dump());
    if (version.is_string()) table.nccl_version = version.get<std::string>();
    if (config.contains("nthreads")) table.threads = config["nthreads"].get<std::uint32_t>();
    if (config.contains("ngpus")) table.gpus = config["ngpus"].get<std::uint32_t>();
    const auto arguments = json.value("args", Json());
    table.command = arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
    table.collective = CollectiveOfProgram(table.command);
    const Json devices =
        json.contains("devices") ? json["devices"] : config.value("devices", Json::array());
    for (const Json& device : devices) {
      table.devices.push_back({device.value("rank", 0u), device.value("hostname", std::string()),
                               device.value("device_info", std::string())});
    }
    for (const Json& result : *results) {
      CollectiveRow row;
      row.bytes = result.value("size", std::uint64_t{0});
      row.count = result.value("count", std::uint64_t{0});
      row.type = result.value("type", std::string());
      row.redop = result.value("redop", std::string());
      const auto group = [&](const char* key) {
        CollectiveRow::Group out;
        const auto it = result.find(key);
        if (it == result.end() || !it->is_object()) return out;
        const auto number = [&](const char* name) -> std::optional<double> {
          const auto field = it->find(name);
          if (field == it->end() || field->is_null()) return std::nullopt;
          if (field->is_string()) return NumberOf(field->get<std::string>());
          return field->get<double>();
        };
        out.time_us = number("time");
        if (!out.time_us) out.time_us = number("cpu_time");
        out.algbw_gbps = number("alg_bw");
        out.busbw_gbps = number("bus_bw");
        out.wrong = number("nwrong");
        return out;
      };
      row.out_of_place = group("out_of_place");
      row.in_place = group("in_place");
      table.rows.push_back(std::move(row));
    }
    if (const auto bounds = json.find("out_of_bounds"); bounds != json.end()) {
      table.out_of_bounds = bounds->value("count", std::uint64_t{0});
      table.out_of_bounds_ok = bounds->value("okay", true);
    }
    if (const auto average = json.find("average_bus_bandwidth"); average != json.end())
      table.average_busbw_gbps = average->value("bandwidth", 0.0);
  } catch (const Json::exception& error) {
    throw refuse(error.what());
  }
  return table;
}

bool HoldsCollectiveTable(std::string_view text) {
  if (Contains(text, "busbw") && Contains(text, "algbw")) return true;
  for (const std::string& raw : Lines(text)) {
    const auto head = ReadHead(WithoutMpiTags(raw), 0);
    if (head && head->fields.size() == kFields) return true;
  }
  return false;
}

MeasuredRun RunOfTable(const CollectiveTable& table, const InputFault& where) {
  const auto refuse = [&](std::uint64_t line, std::string problem, std::string expected) {
    InputFault fault = where;
    fault.line = line;
    fault.problem = std::move(problem);
    fault.expected = std::move(expected);
    return ConfigError(std::move(fault));
  };
  if (table.rows.empty())
    throw refuse(0, "the table has no rows", "rows of size, count, type, times");
  if (table.devices.size() == 1)
    throw refuse(table.rows.front().line, "a single rank moves nothing", "two ranks or more");
  MeasuredRun run;
  run.id = where.file;
  run.set = "log";
  run.nccl = table.nccl_version;
  run.command = table.command;
  std::map<std::string, std::uint32_t> hosts;
  for (const auto& device : table.devices) ++hosts[device.host];
  run.ranks = static_cast<std::uint32_t>(table.devices.size());
  run.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(1, hosts.size()));
  if (!hosts.empty()) run.gpus_per_node = hosts.begin()->second;
  if (!table.devices.empty()) run.gpu = table.devices.front().name;
  if (table.gpus && *table.gpus > 1) {
    run.launch = "single_process";
    run.command += fmt::format(" -g {}", *table.gpus);
  } else if (table.threads && *table.threads > 1) {
    run.launch = "single_process";
    run.command += fmt::format(" -t {}", *table.threads);
  }
  double factor = 0;
  double largest = 0;
  double parts = 0;  // Ranks among which the size is split, by the count column.
  bool in_place_checked = false;
  for (const CollectiveRow& row : table.rows) {
    if (row.bytes == 0) continue;
    run.dtype = row.type;
    if (row.in_place.wrong) in_place_checked = true;
    if (row.count > 0) {
      parts = static_cast<double>(row.bytes) /
              (static_cast<double>(row.count) * static_cast<double>(ElementBytes(row.type)));
    }
    const auto& place = row.out_of_place;
    if (place.algbw_gbps && place.busbw_gbps && *place.algbw_gbps > largest) {
      largest = *place.algbw_gbps;
      factor = *place.busbw_gbps / *place.algbw_gbps;
    }
    MeasuredRow measured{.bytes = row.bytes};
    if (place.time_us && *place.time_us > 0) measured.out_of_place_us = place.time_us;
    if (row.in_place.time_us && *row.in_place.time_us > 0)
      measured.in_place_us = row.in_place.time_us;
    if (measured.scored_us()) run.rows.push_back(measured);
  }
  if (largest == 0 || run.rows.empty())
    throw refuse(table.rows.front().line,
                 "no usable rows: no size moves enough bytes to show a bandwidth",
                 "sizes with an algbw above 0.00");
  run.collective = table.collective;
  // The count is that of one rank where the size is split among ranks.
  const std::string& redop = table.rows.back().redop;
  const bool adds = !redop.empty() && redop != "none";
  const bool split = parts > 1.5;
  if (run.ranks == 0 && split) run.ranks = static_cast<std::uint32_t>(std::lround(parts));
  if (run.ranks == 0 && factor > 1 && factor < 2)
    run.ranks = static_cast<std::uint32_t>(std::lround(2 / (2 - factor)));
  if (run.collective.empty()) {
    if (split) {
      run.collective = adds ? "reduce_scatter" : in_place_checked ? "all_gather" : "alltoall";
    } else if (factor > 1.01 || (run.ranks == 2 && adds)) {
      run.collective = "all_reduce";
    } else if (factor < 0.98) {
      run.collective = adds ? "reduce_scatter" : in_place_checked ? "all_gather" : "alltoall";
    } else {
      run.collective = adds ? "reduce" : "broadcast";
    }
  }
  std::sort(run.rows.begin(), run.rows.end(),
            [](const MeasuredRow& a, const MeasuredRow& b) { return a.bytes < b.bytes; });
  return run;
}

}  // namespace windtunnel::validate

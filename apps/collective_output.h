#pragma once
// The results of `windtunnel collective`: rows, and their spellings as table, JSON and CSV.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/collective_options.h"
#include "collectives/simulation.h"

namespace windtunnel {

struct PlaceResult {
  CallOutcome outcome;
  double algbw = 0;  ///< GB/s of 10^9.
  double busbw = 0;
  std::optional<std::uint64_t> wrong;  ///< Nothing when not checked.
};

struct CollectiveRow {
  CollectiveRequest request;
  Bytes size;  ///< As printed: the large buffer.
  std::int64_t printed_root = -1;
  PlaceResult out_of_place;
  PlaceResult in_place;
};

struct CollectiveReport {
  CollectiveOptions options;
  std::string topology_name;
  std::string topology_source;
  std::uint64_t input_digest = 0;
  std::uint32_t rank_count = 0;
  std::vector<std::string> device_lines;  ///< "Rank  0 ...".
  std::vector<std::string> notes;
  std::vector<CollectiveRow> rows;
  double bound_busbw = 0;  ///< GB/s
  std::string bound_link;
  double average_busbw() const;
};

std::string TableHeader(const CollectiveReport& report);
std::string TableRow(const CollectiveRow& row);
std::string TableFooter(const CollectiveReport& report);
/// Per row: what bound the time, its shares, the busiest links, the theoretical bound and the ratio
/// to it.
std::string Explanation(const CollectiveReport& report);
/// One object as proto/result.proto describes it (message CollectiveResult).
std::string ToJson(const CollectiveReport& report);
std::string ToCsv(const CollectiveReport& report);

}  // namespace windtunnel

#pragma once
// What `windtunnel collective --json` wrote, read back.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel {

struct PlaceFigures {
  double time_us = 0;
  double algbw = 0;                    ///< GB/s of 10^9.
  double busbw = 0;                    ///< GB/s of 10^9.
  std::optional<std::uint64_t> wrong;  ///< Nothing when the data were not checked.
};

struct ResultLink {
  std::string name;        ///< "node0/gpu0 -> node0/nvswitch0"
  double utilisation = 0;  ///< 0 to 1.
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;
};

struct ResultShare {
  std::string cause;
  double time_us = 0;
};

struct ResultRow {
  std::uint64_t size = 0;  ///< Bytes, as the table prints it.
  std::uint64_t count = 0;
  std::string type;
  std::string redop;
  std::int64_t root = -1;
  PlaceFigures out_of_place;
  PlaceFigures in_place;
  std::string algorithm;
  std::string protocol;
  std::uint64_t channels = 0;
  std::string bound;
  double link_bound_us = 0;  ///< 0 when the bound is not known.
  std::string symmetry;
  std::string notice;
  std::vector<ResultShare> shares;
  std::vector<ResultLink> links;  ///< Those that carried bytes, busiest first.
};

struct CollectiveResult {
  std::string file;  ///< As the user gave it.
  std::string version;
  std::uint64_t seed = 0;
  std::string input_digest;
  std::string nccl_version;
  std::string fidelity;
  std::string topology_name;
  std::string topology_source;
  std::string collective;
  std::uint64_t ranks = 0;
  double bound_busbw = 0;  ///< GB/s; 0 when not known.
  std::string bound_link;
  double average_busbw = 0;  ///< GB/s.
  std::vector<std::string> notes;
  std::vector<ResultRow> rows;
};

/// Reads a result. Keys that it does not know are passed over: a newer windtunnel may have written
/// more.
/// @throws ConfigError: no such file, no JSON (with the line), not the result of a collective, or a
/// field that is missing or of the wrong type (with its path).
CollectiveResult ReadCollectiveResult(const std::string& path);

}  // namespace windtunnel

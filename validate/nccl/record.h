#pragma once
// What a measurement leaves behind: one JSON file per run, in the form `windtunnel validate --data`
// reads.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace windtunnel::measure {

/// Facts about the machine that every record carries: GPU, versions, clocks, the variables that
/// begin with NCCL_. Contract: calls CUDA; only in a process that measures.
nlohmann::ordered_json MachineFacts(const std::vector<int>& gpus);
/// Current clocks from the driver's management library: {"sm_mhz", "memory_mhz"} and "driver", or
/// fewer where that library does not answer.
nlohmann::ordered_json ClockFacts(int gpu);
/// Writes `record` to FOLDER/ID.json by way of a temporary name and says so on stderr.
/// @throws ConfigError when the folder cannot be written.
void WriteRecord(const std::string& folder, const nlohmann::ordered_json& record);
/// Today in UTC, "2026-05-18".
std::string Today();
/// "h200" of "NVIDIA H200": lower case, without the maker, dashes between words.
std::string ShortGpuName(const std::string& name);

}  // namespace windtunnel::measure

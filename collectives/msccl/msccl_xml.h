#pragma once
// Collectives that a user brings: MSCCL algorithm files (XML), as programs of thread blocks on
// chunks. Source of the grammar: microsoft/msccl, Azure/msccl-scheduler.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel::msccl {

enum class StepType : std::uint8_t {
  kSend,
  kReceive,
  kReceiveCopySend,
  kReceiveReduceSend,
  kReceiveReduceCopy,
  kReceiveReduceCopySend,
  kCopy,
  kReduce,
  kNop
};
/// As files spell them: s, r, rcs, rrs, rrc, rrcs, cpy, re, nop.
std::string_view Name(StepType type);

struct Step {
  StepType type = StepType::kNop;
  BufferKind source = BufferKind::kInput;
  std::uint32_t source_chunk = 0;
  BufferKind destination = BufferKind::kOutput;
  std::uint32_t destination_chunk = 0;
  std::uint32_t count = 0;       ///< Chunks.
  std::int32_t wait_block = -1;  ///< Block of the same rank whose step `wait_step` comes first.
  std::int32_t wait_step = -1;
  std::uint32_t line = 0;
};
struct ThreadBlock {
  std::int32_t send = -1;  ///< Peer, -1 = none.
  std::int32_t receive = -1;
  std::uint32_t channel = 0;
  std::vector<Step> steps;
};
struct Gpu {
  std::uint32_t input_chunks = 0;
  std::uint32_t output_chunks = 0;
  std::uint32_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;
};
struct Program {
  std::string file;
  std::string name;
  Protocol protocol = Protocol::kSimple;
  std::uint32_t channel_count = 1;
  std::uint32_t chunks_per_loop = 1;
  Function function = Function::kAllReduce;
  bool in_place = false;
  bool out_of_place = true;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = UINT64_MAX;
  std::vector<Gpu> gpus;
};

/// Reads a file of at most 64 MiB. @throws ConfigError with file, line and attribute: not XML, a
/// DOCTYPE, unknown names, ids with gaps, peers or chunks out of range, two blocks on one
/// connection, waits for steps that do not exist, a collective that is not known.
Program ReadXml(const std::filesystem::path& file);
Program ParseXml(std::string_view text, const std::string& file);
/// The canonical spelling: reading it gives the same program, writing that the same text.
std::string WriteXml(const Program& program);

/// Elements of `count` (NCCL's meaning) that one loop of one element per chunk needs.
std::uint64_t SmallestCount(const Program& program);
/// The program as a plan. Chunks have request.count / SmallestCount elements; one loop.
/// @throws ConfigError when `count` is not a multiple of SmallestCount.
Plan MakePlan(const Program& program, std::uint64_t count, DataType type = DataType::kFloat,
              ReduceOp op = ReduceOp::kSum);
/// Runs the program on symbolic chunks. Empty when it computes its collective, else the wrong
/// chunk, rank and step.
std::string Prove(const Program& program);

/// A plan as an MSCCL program. The unit of a chunk is the largest that divides all positions.
/// @throws ConfigError for plans with ops of several peers, switches, or empty pieces.
Program FromPlan(const Plan& plan, std::string name);

}  // namespace windtunnel::msccl

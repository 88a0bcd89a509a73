#pragma once
// MSCCL++ execution plans (JSON): thread blocks that put into, read from and signal to the memory
// of other ranks, as plans of this simulator. Source of the grammar: microsoft/mscclpp,
// src/core/executor/execution_plan.cc.
//
// One-sided access becomes two-sided: for every pair (thread block, rank it writes to) that rank
// gets a block "mscclpp landing", which takes what arrives in the order it was sent; for reads a
// block "mscclpp serving", for operations of a switch a block "mscclpp member". A wait is a
// dependency on the landing of the signal, a read of packets one on the landing of the packets.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel::mscclpp {

/// A range of chunks in a buffer: of the own rank, of another one, or of all members of a group.
struct Place {
  BufferKind buffer = BufferKind::kInput;
  std::uint32_t chunk = 0;
  std::uint32_t count = 0;    ///< Chunks.
  std::int32_t rank = -1;     ///< -1 = own.
  std::vector<Rank> members;  ///< Of the switch group; empty = no switch.
};

struct Operation {
  std::string name;  ///< As the file spells it.
  std::vector<Place> sources;
  std::vector<Place> destinations;
  std::vector<std::uint32_t> channels;  ///< Of the rank, both kinds counted through.
  std::uint32_t barrier = 0;
  std::uint32_t barrier_blocks = 0;
};

struct ThreadBlock {
  std::vector<Operation> operations;
};

struct Gpu {
  std::uint32_t input_chunks = 0;
  std::uint32_t output_chunks = 0;
  std::uint32_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;
  /// Peer of every channel, memory channels first.
  std::vector<Rank> channel_peers;
  std::uint32_t memory_channels = 0;
};

struct ExecutionPlan {
  std::string file;
  std::string name;
  Function function = Function::kAllReduce;
  Protocol protocol = Protocol::kSimple;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = UINT64_MAX;
  std::vector<Gpu> gpus;
};

/// Reads a file of at most 64 MiB. @throws ConfigError with file and field
/// ("gpus[0].threadblocks[1].ops[2]"): not JSON, keys missing, ids out of range, collectives or
/// operations that are not known, and operations that are known but have no counterpart here
/// (pipeline, thread block groups, semaphores, packets through a switch): block, index, name.
ExecutionPlan ReadJson(const std::filesystem::path& file);
ExecutionPlan ParseJson(std::string_view text, const std::string& file);

/// Elements of `count` (NCCL's meaning) with one element per chunk.
std::uint64_t SmallestCount(const ExecutionPlan& plan);
/// @throws ConfigError when `count` is not a multiple of SmallestCount, when a channel is signalled
/// or awaited by several thread blocks, when packets go twice to one chunk, or when one operation
/// names the same rank twice.
Plan MakePlan(const ExecutionPlan& plan, std::uint64_t count, DataType type = DataType::kFloat);
/// Empty when it computes its collective (by symbols, and on numbers with the blocks in the
/// opposite order), else what is wrong first.
std::string Prove(const ExecutionPlan& plan);

}  // namespace windtunnel::mscclpp

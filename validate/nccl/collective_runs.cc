#include "validate/nccl/collective_runs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "sim/error.h"
#include "validate/nccl/gpu.h"
#include "validate/nccl/kernels.h"
#include "validate/nccl/record.h"
#include "validate/nccl/world.h"

namespace windtunnel::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 64;  // Sums of Contribution() stay exact in bfloat16 up to here.
constexpr std::size_t kMostSizes = 64;

struct TypeEntry {
  const char* name;
  Element element;
  ncclDataType_t nccl;
  std::size_t bytes;
};
constexpr std::array<TypeEntry, 6> kTypes = {{{"float", Element::kFloat, ncclFloat32, 4},
                                              {"half", Element::kHalf, ncclFloat16, 2},
                                              {"bfloat16", Element::kBfloat16, ncclBfloat16, 2},
                                              {"double", Element::kDouble, ncclFloat64, 8},
                                              {"int32", Element::kInt32, ncclInt32, 4},
                                              {"uint8", Element::kUint8, ncclUint8, 1}}};

enum class Op : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendRecv
};
const std::vector<std::string>& OpNames() {
  static const std::vector<std::string> names = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"};
  return names;
}

/// Bus bandwidth over algorithm bandwidth. Source: nccl-tests, doc/PERFORMANCE.md.
double BusFactor(Op op, int ranks) {
  switch (op) {
    case Op::kAllReduce:
      return 2.0 * (ranks - 1) / ranks;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll:
      return 1.0 * (ranks - 1) / ranks;
    default:
      return 1;
  }
}

bool HasInPlace(Op op) { return op != Op::kAllToAll && op != Op::kSendRecv; }

/// What one operation of one size needs on each rank.
struct Call {
  Op op;
  TypeEntry type;
  int ranks;
  std::uint64_t part;  ///< Elements of one rank's part; the whole buffer for unsplit operations.
  bool in_place;
  bool Split() const {
    return op == Op::kAllGather || op == Op::kReduceScatter || op == Op::kAllToAll;
  }
  std::uint64_t Whole() const { return Split() ? part * static_cast<std::uint64_t>(ranks) : part; }
  std::uint64_t InputCount() const { return op == Op::kAllGather ? part : Whole(); }
  std::uint64_t OutputCount() const { return op == Op::kReduceScatter ? part : Whole(); }
};

/// One rank: a GPU with its communicator, buffers for the largest size and a stream.
struct RankState {
  int rank = 0;
  int gpu = 0;
  ncclComm_t comm = nullptr;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> send;
  std::unique_ptr<Buffer> recv;
  std::unique_ptr<Buffer> wrong;

  /// Input and output of a call; both lie in `recv` in place, the part at the rank's offset.
  std::pair<void*, void*> Addresses(const Call& call) const {
    if (!call.in_place) return {send->data(), recv->data()};
    char* base = static_cast<char*>(recv->data());
    char* own = base + static_cast<std::uint64_t>(rank) * call.part * call.type.bytes;
    if (call.op == Op::kAllGather) return {own, base};
    if (call.op == Op::kReduceScatter) return {base, own};
    return {base, base};
  }
};

void Allocate(RankState& state, std::uint64_t largest) {
  Check(cudaSetDevice(state.gpu), "choosing a GPU");
  state.stream = std::make_unique<Stream>();
  // Some operations round up to one element per rank.
  const std::uint64_t bytes = std::max<std::uint64_t>(largest, 4096);
  state.send = std::make_unique<Buffer>(bytes);
  state.recv = std::make_unique<Buffer>(bytes);
  state.wrong = std::make_unique<Buffer>(sizeof(unsigned long long));
}

void Enqueue(const RankState& state, const Call& call) {
  const auto [input, output] = state.Addresses(call);
  const ncclDataType_t type = call.type.nccl;
  const cudaStream_t stream = state.stream->get();
  switch (call.op) {
    case Op::kAllReduce:
      Check(ncclAllReduce(input, output, call.part, type, ncclSum, state.comm, stream),
            "all_reduce");
      break;
    case Op::kAllGather:
      Check(ncclAllGather(input, output, call.part, type, state.comm, stream), "all_gather");
      break;
    case Op::kReduceScatter:
      Check(ncclReduceScatter(input, output, call.part, type, ncclSum, state.comm, stream),
            "reduce_scatter");
      break;
    case Op::kBroadcast:
      Check(ncclBroadcast(input, output, call.part, type, 0, state.comm, stream), "broadcast");
      break;
    case Op::kReduce:
      Check(ncclReduce(input, output, call.part, type, ncclSum, 0, state.comm, stream), "reduce");
      break;
    case Op::kAllToAll:
      Check(ncclGroupStart(), "group");
      for (int peer = 0; peer < call.ranks; ++peer) {
        const std::uint64_t at = static_cast<std::uint64_t>(peer) * call.part * call.type.bytes;
        Check(ncclSend(static_cast<char*>(input) + at, call.part, type, peer, state.comm, stream),
              "send");
        Check(ncclRecv(static_cast<char*>(output) + at, call.part, type, peer, state.comm, stream),
              "receive");
      }
      Check(ncclGroupEnd(), "alltoall");
      break;
    case Op::kSendRecv:
      Check(ncclGroupStart(), "group");
      Check(ncclSend(input, call.part, type, (state.rank + 1) % call.ranks, state.comm, stream),
            "send");
      Check(ncclRecv(output, call.part, type, (state.rank + call.ranks - 1) % call.ranks,
                     state.comm, stream),
            "receive");
      Check(ncclGroupEnd(), "sendrecv");
      break;
  }
}

void FillInput(const RankState& state, const Call& call) {
  LaunchFill(call.type.element, state.Addresses(call).first, call.InputCount(), state.rank, 0,
             state.stream->get());
}

/// Elements of this rank's output that are wrong.
std::uint64_t CountWrong(const RankState& state, const Call& call) {
  const cudaStream_t stream = state.stream->get();
  auto* counter = static_cast<unsigned long long*>(state.wrong->data());
  Check(cudaMemsetAsync(counter, 0, sizeof(*counter), stream), "clearing a counter");
  char* output = static_cast<char*>(state.Addresses(call).second);
  const auto compare = [&](std::uint64_t at, std::uint64_t count, Expectation expected) {
    LaunchCompare(call.type.element, output + at * call.type.bytes, count, expected, counter,
                  stream);
  };
  const auto own = static_cast<std::uint64_t>(state.rank) * call.part;
  switch (call.op) {
    case Op::kAllReduce:
      compare(0, call.part, {.rank = 0, .rank_count = call.ranks});
      break;
    case Op::kReduceScatter:
      compare(0, call.part, {.rank = 0, .rank_count = call.ranks, .first = own});
      break;
    case Op::kBroadcast:
      compare(0, call.part, {.rank = 0});
      break;
    case Op::kReduce:
      if (state.rank == 0) compare(0, call.part, {.rank = 0, .rank_count = call.ranks});
      break;
    case Op::kAllGather:
    case Op::kAllToAll:
      for (int peer = 0; peer < call.ranks; ++peer)
        compare(static_cast<std::uint64_t>(peer) * call.part, call.part,
                {.rank = peer, .first = call.op == Op::kAllToAll ? own : 0});
      break;
    case Op::kSendRecv:
      compare(0, call.part, {.rank = (state.rank + call.ranks - 1) % call.ranks});
      break;
  }
  unsigned long long wrong = 0;
  Check(cudaMemcpyAsync(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost, stream), "copy");
  state.stream->Wait();
  return wrong;
}

struct Row {
  std::uint64_t bytes = 0;
  double time_us[2] = {0, 0};  ///< Out of place, in place: mean over ranks.
  std::uint64_t wrong = 0;
};

Call MakeCall(Op op, const TypeEntry& type, int ranks, std::uint64_t size, bool in_place) {
  Call call{
      .op = op, .type = type, .ranks = ranks, .part = size / type.bytes, .in_place = in_place};
  if (call.Split()) call.part /= static_cast<std::uint64_t>(ranks);
  return call;
}

/// Meets the other ranks: a barrier across processes, or nothing in a single process.
using Meet = std::function<void()>;

/// One size on the ranks of this process. Returns the time of a call in microseconds.
double TimeCall(std::vector<RankState>& states, const Call& call, const Options& options,
                const Meet& meet, std::uint64_t* wrong) {
  const auto once = [&] {
    if (states.size() > 1) Check(ncclGroupStart(), "group");
    for (const RankState& state : states) Enqueue(state, call);
    if (states.size() > 1) Check(ncclGroupEnd(), "group");
  };
  const auto wait = [&] {
    for (const RankState& state : states) state.stream->Wait();
  };
  for (int i = 0; i < options.warmups; ++i) once();
  wait();
  meet();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.repeats; ++i) once();
  wait();
  const double time_us = MicrosecondsSince(start) / options.repeats;
  meet();
  if (options.check) {
    for (const RankState& state : states) {
      Check(cudaSetDevice(state.gpu), "choosing a GPU");
      FillInput(state, call);
    }
    wait();
    meet();
    once();
    wait();
    for (const RankState& state : states) {
      Check(cudaSetDevice(state.gpu), "choosing a GPU");
      *wrong += CountWrong(state, call);
    }
    meet();
  }
  return time_us;
}

/// What processes share: an identity to meet under, a barrier, and each rank's figures.
struct Shared {
  ncclUniqueId id;
  pthread_barrier_t barrier;
  double time_us[kMostSizes][2][kMostRanks];
  std::uint64_t wrong[kMostSizes][kMostRanks];
  char failure[256];
};

/// The ranks of this process over all sizes, into `shared`.
void RunRanks(std::vector<RankState>& states, Op op, const TypeEntry& type, int ranks,
              const std::vector<std::uint64_t>& sizes, const Options& options, const Meet& meet,
              Shared& shared) {
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    std::uint64_t wrong = 0;
    for (const bool in_place : {false, true}) {
      if (in_place && !HasInPlace(op)) continue;
      const Call call = MakeCall(op, type, ranks, sizes[s], in_place);
      const double time_us = TimeCall(states, call, options, meet, &wrong);
      for (const RankState& state : states)
        shared.time_us[s][in_place ? 1 : 0][state.rank] = time_us;
    }
    shared.wrong[s][states.front().rank] = wrong;
  }
}

struct Force {
  std::string algorithm;  ///< Empty = NCCL's choice.
  std::string protocol;
  std::string Suffix() const {
    std::string suffix;
    for (const std::string& part : {algorithm, protocol})
      if (!part.empty()) suffix += "-" + part;
    std::ranges::transform(suffix, suffix.begin(),
                           [](char c) { return static_cast<char>(std::tolower(c)); });
    return suffix;
  }
};

/// Starts one process per entry of `work`, waits for all, and ends the rest as soon as one fails.
/// The text of the first failure is what it wrote into `failure`.
void RunProcesses(int count, char* failure, const std::function<void(int)>& work) {
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) throw GpuError("a process cannot be started: " + std::string(strerror(errno)));
    if (child == 0) {
      int code = 0;
      try {
        work(i);
      } catch (const std::exception& error) {
        if (failure[0] == '\0') std::snprintf(failure, 256, "%s", error.what());
        code = 1;
      }
      std::fflush(nullptr);
      _exit(code);
    }
    children.push_back(child);
  }
  bool failed = false;
  for (std::size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t done = waitpid(-1, &status, 0);
    const auto found = std::ranges::find(children, done);
    if (found == children.end()) continue;
    children.erase(found);
    --left;
    if ((!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !failed) {
      failed = true;
      // The others would wait for it in a barrier for ever.
      for (const pid_t child : children) kill(child, SIGKILL);
      if (failure[0] == '\0')
        std::snprintf(failure, 256, "a rank ended without a word (status %d)", status);
    }
  }
  if (failed) throw GpuError(failure);
}

Shared& NewShared(unsigned processes) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw GpuError("shared memory cannot be had");
  Shared& shared = *static_cast<Shared*>(memory);  // Zero-filled by the kernel.
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes, processes);
  return shared;
}

struct RunPlan {
  Op op;
  TypeEntry type;
  std::vector<int> gpus;
  std::vector<std::uint64_t> sizes;
  Force force;
};

/// Where the ranks of a record are.
struct Places {
  int ranks = 1;
  int nodes = 1;
};

std::string RecordId(const RunPlan& plan, const Places& places, const std::string& gpu_name) {
  const std::string nodes = places.nodes > 1 ? std::to_string(places.nodes) + "n-" : "";
  return "nccl-" + OpNames()[static_cast<std::size_t>(plan.op)] + "-" + nodes +
         std::to_string(places.ranks) + "x" + ShortGpuName(gpu_name) + plan.force.Suffix();
}

void Record(const RunPlan& plan, const Options& options, const Shared& shared,
            const Places& places) {
  nlohmann::ordered_json record;
  record["id"] = RecordId(plan, places, GpuName(plan.gpus.front()));
  record.update(MachineFacts(plan.gpus));
  record["hardware"]["nodes"] = places.nodes;
  record["hardware"]["gpus_per_node"] = places.ranks / places.nodes;
  record["software"]["cmd"] =
      std::string("-g ") + (options.single_process ? std::to_string(plan.gpus.size()) : "1") +
      " -n " + std::to_string(options.repeats) + " -w " + std::to_string(options.warmups);
  record["launch"] = options.single_process ? "single_process" : "process_per_gpu";
  record["collective"] = OpNames()[static_cast<std::size_t>(plan.op)];
  record["dtype"] = plan.type.name;
  record["ranks"] = places.ranks;
  auto& rows = record["rows"] = nlohmann::ordered_json::array();
  const int ranks = places.ranks;
  for (std::size_t s = 0; s < plan.sizes.size(); ++s) {
    const Call call = MakeCall(plan.op, plan.type, ranks, plan.sizes[s], false);
    const std::uint64_t bytes = call.Whole() * plan.type.bytes;
    std::uint64_t wrong = 0;
    for (int r = 0; r < ranks; ++r) wrong += shared.wrong[s][r];
    for (const bool in_place : {false, true}) {
      if (in_place && !HasInPlace(plan.op)) continue;
      double time_us = 0;
      for (int r = 0; r < ranks; ++r) time_us += shared.time_us[s][in_place ? 1 : 0][r] / ranks;
      const double algbw = time_us > 0 ? static_cast<double>(bytes) / time_us / 1e3 : 0;
      rows.push_back({{"bytes", bytes},
                      {"time_us", time_us},
                      {"algbw_GBps", algbw},
                      {"busbw_GBps", algbw * BusFactor(plan.op, ranks)},
                      {"in_place", in_place},
                      {"wrong", wrong}});
    }
  }
  record["notes"] = plan.force.algorithm.empty()
                        ? ""
                        : "forced: " + plan.force.algorithm + " " + plan.force.protocol;
  record["quality"] = "unknown";
  record["confidence"] = "measured here";
  WriteRecord(options.folder, record);
}

/// One record: all sizes of one operation. Returns whether all data were right.
bool RunOne(const RunPlan& plan, const Options& options) {
  const int ranks = static_cast<int>(plan.gpus.size());
  const bool single = options.single_process;
  Shared& shared = NewShared(single ? 1u : static_cast<unsigned>(ranks));
  const std::unique_ptr<Shared, void (*)(Shared*)> unmapped(
      &shared, [](Shared* memory) { munmap(memory, sizeof(Shared)); });
  const auto set_up = [&] {
    if (!plan.force.algorithm.empty()) setenv("NCCL_ALGO", plan.force.algorithm.c_str(), 1);
    if (!plan.force.protocol.empty()) setenv("NCCL_PROTO", plan.force.protocol.c_str(), 1);
    setenv("NCCL_TOPO_DUMP_FILE", (options.folder + "/topology.xml").c_str(), 0);
  };
  // Also the single process is a child: the parent never touches CUDA, so that it can fork again.
  RunProcesses(single ? 1 : ranks, shared.failure, [&](int process) {
    set_up();
    std::vector<RankState> states;
    for (int r = single ? 0 : process; r < (single ? ranks : process + 1); ++r) {
      states.emplace_back();
      states.back().rank = r;
      states.back().gpu = plan.gpus[static_cast<std::size_t>(r)];
      Allocate(states.back(), plan.sizes.back());
    }
    const Meet meet = [&] {
      if (!single) pthread_barrier_wait(&shared.barrier);
    };
    if (process == 0) Check(ncclGetUniqueId(&shared.id), "NCCL start-up");
    meet();
    Check(ncclGroupStart(), "group");
    for (RankState& state : states) {
      Check(cudaSetDevice(state.gpu), "choosing a GPU");
      Check(ncclCommInitRank(&state.comm, ranks, shared.id, state.rank), "NCCL start-up");
    }
    Check(ncclGroupEnd(), "NCCL start-up");
    RunRanks(states, plan.op, plan.type, ranks, plan.sizes, options, meet, shared);
    for (RankState& state : states) ncclCommDestroy(state.comm);
    meet();
    if (process == 0) Record(plan, options, shared, {.ranks = ranks});
  });
  std::uint64_t wrong = 0;
  for (std::size_t s = 0; s < plan.sizes.size(); ++s)
    for (int r = 0; r < ranks; ++r) wrong += shared.wrong[s][r];
  if (wrong > 0)
    std::fprintf(stderr, "windtunnel: %s: %llu elements are wrong\n",
                 OpNames()[static_cast<std::size_t>(plan.op)].c_str(),
                 static_cast<unsigned long long>(wrong));
  return wrong == 0;
}

struct MachineSize {
  int gpus;
  std::uint64_t free_bytes;
  char failure[256];
};

/// Counts GPUs in a child, so that this process can still fork.
MachineSize LookAtMachine() {
  void* memory =
      mmap(nullptr, sizeof(MachineSize), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw GpuError("shared memory cannot be had");
  MachineSize& shared = *static_cast<MachineSize*>(memory);
  try {
    RunProcesses(1, shared.failure, [&](int) {
      shared.gpus = GpuCount();
      shared.free_bytes = FreeMemory();
    });
  } catch (const GpuError& error) {
    throw MissingGpu(error.what());
  }
  const MachineSize size = shared;
  munmap(memory, sizeof(MachineSize));
  return size;
}

/// Told to rank 0 by every rank.
struct RankReport {
  std::uint64_t host;
  double time_us[kMostSizes][2];
  std::uint64_t wrong[kMostSizes];
};

std::uint64_t HostNumber() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return std::hash<std::string>()(name);
}

std::vector<std::uint64_t> FittingSizes(const Options& options, const TypeEntry& type, int ranks,
                                        std::uint64_t free_bytes) {
  // Two buffers, and room for what NCCL takes.
  const std::uint64_t fits = free_bytes / 10 * 4;
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t size : SizesOf(options))
    if (size >= type.bytes * (static_cast<std::uint64_t>(ranks) + 1) && size <= fits &&
        sizes.size() < kMostSizes)
      sizes.push_back(size);
  if (sizes.empty())
    throw ConfigError(
        {.field = "-e", .problem = "no size gives each rank an element and fits the GPU"});
  return sizes;
}

/// One rank of a job that a launcher has started, on any number of hosts. Ranks meet and report
/// over NCCL itself, so nothing but the identity goes through a file.
bool MeasureJoined(const std::vector<Op>& ops, const TypeEntry& type, const Options& options) {
  const World world = FindWorld();
  if (world.size > kMostRanks)
    throw ConfigError({.field = "--join",
                       .value = std::to_string(world.size),
                       .problem = "more ranks than this can check the data of",
                       .expected = "at most " + std::to_string(kMostRanks)});
  int gpus = 0;
  try {
    gpus = GpuCount();
  } catch (const GpuError& error) {
    throw MissingGpu(error.what());
  }
  const int gpu = world.local_rank % gpus;
  Check(cudaSetDevice(gpu), "choosing a GPU");
  std::filesystem::create_directories(options.folder);
  if (world.rank == 0) setenv("NCCL_TOPO_DUMP_FILE", (options.folder + "/topology.xml").c_str(), 0);
  const ncclUniqueId id = ShareIdentity(world, options.join);
  std::vector<RankState> states(1);
  RankState& state = states.front();
  state.rank = world.rank;
  state.gpu = gpu;
  Check(ncclCommInitRank(&state.comm, world.size, id, world.rank), "NCCL start-up");
  if (world.rank == 0) std::filesystem::remove(options.join);

  Stream control;
  Buffer word(sizeof(std::uint64_t));
  const auto smallest_of_all = [&](std::uint64_t value) {
    Check(
        cudaMemcpyAsync(word.data(), &value, sizeof(value), cudaMemcpyHostToDevice, control.get()),
        "copy");
    Check(
        ncclAllReduce(word.data(), word.data(), 1, ncclUint64, ncclMin, state.comm, control.get()),
        "meeting");
    Check(
        cudaMemcpyAsync(&value, word.data(), sizeof(value), cudaMemcpyDeviceToHost, control.get()),
        "copy");
    control.Wait();
    return value;
  };
  const Meet meet = [&] { smallest_of_all(0); };
  const std::vector<std::uint64_t> sizes =
      FittingSizes(options, type, world.size, smallest_of_all(FreeMemory()));
  Allocate(state, sizes.back());

  const auto shared = std::make_unique<Shared>();
  Buffer mine(sizeof(RankReport));
  Buffer all(sizeof(RankReport) * static_cast<std::size_t>(world.size));
  std::vector<RankReport> reports(static_cast<std::size_t>(world.size));
  std::uint64_t wrong = 0;
  for (const Op op : ops) {
    *shared = {};
    RunRanks(states, op, type, world.size, sizes, options, meet, *shared);
    auto own = std::make_unique<RankReport>();
    own->host = HostNumber();
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      for (int place = 0; place < 2; ++place)
        own->time_us[s][place] = shared->time_us[s][place][world.rank];
      own->wrong[s] = shared->wrong[s][world.rank];
    }
    Check(cudaMemcpyAsync(mine.data(), own.get(), sizeof(RankReport), cudaMemcpyHostToDevice,
                          control.get()),
          "copy");
    Check(ncclAllGather(mine.data(), all.data(), sizeof(RankReport), ncclUint8, state.comm,
                        control.get()),
          "report");
    Check(cudaMemcpyAsync(reports.data(), all.data(), sizeof(RankReport) * reports.size(),
                          cudaMemcpyDeviceToHost, control.get()),
          "copy");
    control.Wait();
    std::set<std::uint64_t> hosts;
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      hosts.insert(reports[rank].host);
      for (std::size_t s = 0; s < sizes.size(); ++s) {
        for (int place = 0; place < 2; ++place)
          shared->time_us[s][place][rank] = reports[rank].time_us[s][place];
        shared->wrong[s][rank] = reports[rank].wrong[s];
        wrong += reports[rank].wrong[s];
      }
    }
    if (world.rank == 0)
      Record({op, type, {gpu}, sizes, {}}, options, *shared,
             {.ranks = world.size, .nodes = static_cast<int>(hosts.size())});
  }
  ncclCommDestroy(state.comm);
  return wrong == 0;
}

std::vector<Force> Forces(bool grid) {
  if (!grid) return {Force{}};
  std::vector<Force> forces;
  for (const char* algorithm : {"Ring", "Tree"})
    for (const char* protocol : {"LL", "LL128", "Simple"}) forces.push_back({algorithm, protocol});
  // These run over the Simple protocol only.
  forces.push_back({"NVLS", "Simple"});
  forces.push_back({"NVLSTree", "Simple"});
  forces.push_back({"PAT", "Simple"});
  return forces;
}

}  // namespace

bool MeasureCollectives(const Options& options) {
  const auto type = std::ranges::find(kTypes, options.type, &TypeEntry::name);
  std::vector<std::string> type_names;
  for (const TypeEntry& entry : kTypes) type_names.emplace_back(entry.name);
  if (type == kTypes.end())
    throw ConfigError({.field = "-d",
                       .value = options.type,
                       .problem = "unknown type",
                       .expected = "one of " + JoinNames(type_names),
                       .nearest = NearestName(options.type, type_names)});
  std::vector<Op> ops;
  for (std::size_t i = 0; i < OpNames().size(); ++i)
    if (options.op == "all" || options.op == OpNames()[i]) ops.push_back(static_cast<Op>(i));
  if (ops.empty())
    throw ConfigError({.field = "--op",
                       .value = options.op,
                       .problem = "unknown operation",
                       .expected = "all or one of " + JoinNames(OpNames()),
                       .nearest = NearestName(options.op, OpNames())});
  if (!options.join.empty()) return MeasureJoined(ops, *type, options);
  const MachineSize machine = LookAtMachine();
  std::vector<int> gpus = options.gpus;
  if (gpus.empty())
    for (int gpu = 0; gpu < machine.gpus; ++gpu) gpus.push_back(gpu);
  for (const int gpu : gpus)
    if (gpu >= machine.gpus)
      throw ConfigError({.field = "--gpus",
                         .value = std::to_string(gpu),
                         .problem = "there is no such GPU",
                         .expected = "0 to " + std::to_string(machine.gpus - 1)});
  if (gpus.size() > static_cast<std::size_t>(kMostRanks))
    throw ConfigError({.field = "--gpus",
                       .value = std::to_string(gpus.size()),
                       .problem = "more GPUs than this can check the data of",
                       .expected = "at most " + std::to_string(kMostRanks)});
  const std::vector<std::uint64_t> sizes =
      FittingSizes(options, *type, static_cast<int>(gpus.size()), machine.free_bytes);
  if (sizes.back() < options.largest / options.factor + 1)
    std::fprintf(
        stderr, "windtunnel: note: sizes above %llu bytes do not fit twice into the GPU's memory\n",
        static_cast<unsigned long long>(sizes.back()));
  std::filesystem::create_directories(options.folder);
  bool right = true;
  for (const Op op : ops) {
    for (const Force& force : Forces(options.grid)) {
      try {
        right = RunOne({op, *type, gpus, sizes, force}, options) && right;
      } catch (const GpuError& error) {
        // A forced pair that this operation or machine does not know is an answer too.
        if (!options.grid) throw;
        std::fprintf(stderr, "windtunnel: note: %s%s does not run here: %s\n",
                     OpNames()[static_cast<std::size_t>(op)].c_str(), force.Suffix().c_str(),
                     error.what());
      }
    }
  }
  return right;
}

}  // namespace windtunnel::measure

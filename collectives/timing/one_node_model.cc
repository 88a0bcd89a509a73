#include "collectives/timing/one_node_model.h"

#include <algorithm>
#include <cmath>

#include "collectives/timing/network_model.h"
#include "sim/check.h"

namespace windtunnel::timing {
namespace {

constexpr double kKilo = 1000.0;           // 1 GB/s = 1000 bytes per microsecond.
constexpr double kLlBytesPerThread = 8.0;  // Data bytes of one thread and round.
constexpr double kFullBlock = 512.0;       // Threads of a block with all warps.
// A round that is full but for rounding of the split still is one round.
constexpr double kRoundSlack = 0.02;
constexpr double kSmallestSlice = 32 * 1024;

/// The ring of one call: how many hops, which of them add, which copy.
struct Ring {
  double hops = 0;         // On the critical path.
  double adding = 0;       // Of these, hops that add.
  double copying = 0;      // Hops that store into the user's buffer.
  double primitives = 0;   // Of one thread block in one loop.
  double parts = 1;        // Chunks of one loop: n for all-reduce.
  double bubble = 0;       // Idle steps at the end of each loop.
  double drain = 0;        // Idle steps at the end of the call.
  bool eight_bit = false;  // Adds eight-bit integers.
};

Ring RingOf(const CallFacts& facts, const SharedConstants& shared) {
  const double n = facts.ranks;
  Ring ring;
  ring.drain = shared.drain_one_pass;
  switch (facts.function) {
    case Function::kAllReduce:
      ring = {
          2 * n - 2, n - 1, n - 1, 2 * n - 1, n, shared.bubble_all_reduce, shared.drain_all_reduce,
          false};
      break;
    case Function::kReduceScatter:
      ring = {n - 1, n - 1, 0, n, 1, shared.bubble_reduce_scatter, shared.drain_one_pass, false};
      break;
    default:
      ring = {n - 1, 0, n - 1, n, 1, shared.bubble_all_gather, shared.drain_one_pass, false};
  }
  ring.eight_bit = facts.eight_bit_integer && ring.adding > 0;
  if (ring.eight_bit && facts.protocol == Protocol::kSimple)
    ring.bubble += shared.bubble_eight_bit_sum;
  return ring;
}

/// Calls `loop(bytes of one hop)` for each loop of the fullest channel.
template <class Loop>
void ForEachLoop(const CallFacts& facts, double parts, Loop&& loop) {
  const auto chunk = static_cast<double>(facts.chunk.count());
  double left = static_cast<double>(facts.channel_bytes.count());
  WT_CHECK(chunk > 0) << "a call without a chunk size";
  // Whole loops are all equal: at 8 GiB there are thousands of them.
  const double whole = std::floor(left / (chunk * parts));
  if (whole > 0) loop(chunk, whole);
  left -= whole * chunk * parts;
  if (left > 0) loop(left / parts, 1.0);
}

/// A hop of LL: the receiver polls until the flags of a whole warp are there. Measured on Hopper
/// and Blackwell, 8 B to 1 KiB on one node: the saving of a message of one sector falls as its
/// share.
double LlHopUs(const CallFacts& facts, const GpuConstants& gpu) {
  return gpu.ll_hop_us - SmallLlSaving(gpu, facts);
}

void RingLl(const CallFacts& facts, const Ring& ring, const GpuConstants& gpu,
            const SharedConstants& shared, double link, TimeBreakdown& time) {
  const double threads = facts.threads;
  const double channels = facts.channels;
  const double full = (threads / kFullBlock) * (threads / kFullBlock);
  const double adding_us =
      shared.full_block_adding_us + (ring.eight_bit ? shared.full_block_eight_bit_us : 0);
  const double adding_round =
      shared.ll_adding_round * (ring.eight_bit ? shared.ll_eight_bit_round : 1.0);
  // A round moves 8 bytes of each thread; a smaller block is done with its round sooner.
  const double round = gpu.ll_round_us * threads / kFullBlock *
                       (ring.copying + ring.adding * adding_round) / ring.hops;
  time.Add(Cause::kKernel, gpu.launch_us + gpu.more_blocks_us * full * (1 - 1 / channels));
  ForEachLoop(facts, ring.parts, [&](double bytes, double loops) {
    const double rounds =
        std::max(1.0, std::ceil(bytes / (threads * kLlBytesPerThread) - kRoundSlack));
    double hops = ring.hops * LlHopUs(facts, gpu);
    if (facts.path != InNodePath::kNvlink) {
      // Two wire bytes per data byte on a slow link: the transfer and the hop overlap in part.
      const double wire = 2 * channels * bytes / link / kKilo;
      hops = ring.hops * RoundedMaximum(gpu.ll_hop_us, wire);
    }
    time.Add(Cause::kHop, loops * hops);
    double block = full * (ring.copying * gpu.full_block_copying_us + ring.adding * adding_us);
    if (rounds > 1) {
      block += ring.primitives * ((rounds - 1) * round - shared.ll_hidden_round_us);
    }
    time.Add(Cause::kBlock, loops * block);
  });
}

void RingLl128(const CallFacts& facts, const Ring& ring, const GpuConstants& gpu, double link,
               TimeBreakdown& time) {
  time.Add(Cause::kKernel, gpu.launch_us + gpu.more_blocks_us);
  ForEachLoop(facts, ring.parts, [&](double bytes, double loops) {
    const double block = bytes / gpu.ll128_block_gbps / kKilo;
    const double wire = facts.channels * bytes * 16 / 15 / link / kKilo;
    time.Add(Cause::kHop, loops * ring.hops * gpu.ll128_hop_us);
    time.Add(block > wire ? Cause::kBlock : Cause::kLink,
             loops * ring.primitives * RoundedMaximum(block, wire));
  });
}

void RingSimple(const CallFacts& facts, const Ring& ring, const GpuConstants& gpu,
                const SharedConstants& shared, double link, TimeBreakdown& time) {
  const double adding_rate = ring.eight_bit ? shared.eight_bit_adding_rate : shared.adding_rate;
  const double rate =
      ring.hops / (ring.copying / gpu.block_gbps + ring.adding / (gpu.block_gbps * adding_rate));
  time.Add(Cause::kKernel, gpu.launch_us + gpu.more_blocks_us);
  double last_step = 0;
  ForEachLoop(facts, ring.parts, [&](double bytes, double loops) {
    // Two slices, paid for even when the second is empty.
    const double slices = bytes > kSmallestSlice ? 2.0 : 1.0 + shared.empty_slice;
    const double block = slices * gpu.slice_overhead_us + bytes / rate / kKilo;
    const double wire =
        gpu.slice_overhead_at_link * gpu.slice_overhead_us + facts.channels * bytes / link / kKilo;
    const double step = RoundedMaximum(block, wire);
    time.Add(block > wire ? Cause::kBlock : Cause::kLink, loops * ring.hops * step);
    time.Add(Cause::kPipelineFill, loops * ring.bubble * step);
    last_step = step;
  });
  time.Add(Cause::kPipelineFill, ring.drain * last_step);
}

/// Broadcast, reduce, and the tree of one node (a chain up and down again): data follow each other
/// along `hops` in pieces of the smallest slice, so filling the chain is short: 5 to 11 us a hop
/// from 8 MiB to 1 GiB on 8 A100 and 12 V100 (two public runs of broadcast, one thread). `share`:
/// of a block's threads that serve this direction.
void Chain(const CallFacts& facts, const GpuConstants& gpu, const SharedConstants& shared,
           double link, double hops, double share, TimeBreakdown& time) {
  const double threads = facts.threads;
  time.Add(Cause::kKernel, gpu.launch_us + gpu.more_blocks_us);
  bool first = true;
  ForEachLoop(facts, 1, [&](double bytes, double loops) {
    double block = 0;
    double wire = 0;
    double hop = 0;
    switch (facts.protocol) {
      case Protocol::kLl: {
        const double rounds =
            std::max(1.0, std::ceil(bytes / (threads * kLlBytesPerThread) - kRoundSlack));
        block = rounds * gpu.ll_round_us * threads / kFullBlock / share;
        wire = 2 * facts.channels * bytes / link / kKilo;
        hop = LlHopUs(facts, gpu);
        break;
      }
      case Protocol::kLl128:
        block = bytes / gpu.ll128_block_gbps / kKilo / share;
        wire = facts.channels * bytes * 16 / 15 / link / kKilo;
        hop = gpu.ll128_hop_us;
        break;
      case Protocol::kSimple:
        block = gpu.slice_overhead_us + bytes / gpu.block_gbps / kKilo / share;
        wire = gpu.slice_overhead_at_link * gpu.slice_overhead_us +
               facts.channels * bytes / link / kKilo;
        break;
    }
    const double step = RoundedMaximum(block, wire);
    if (first) {
      const double piece =
          std::min(bytes, std::max(kSmallestSlice, static_cast<double>(facts.chain_piece.count())));
      time.Add(Cause::kHop, hops * hop);
      if (facts.protocol == Protocol::kSimple)
        time.Add(Cause::kPipelineFill,
                 (hops - 1) * (gpu.slice_overhead_us + facts.channels * piece / link / kKilo));
      first = false;
    }
    time.Add(block > wire ? Cause::kBlock : Cause::kLink, loops * step);
  });
  if (facts.protocol == Protocol::kSimple)
    time.Add(Cause::kPipelineFill, shared.drain_one_pass * gpu.slice_overhead_us);
}

/// Scatter, reduce and multicast, gather: three stages with a queue of chunks; filling them costs
/// nearly two periods.
void Nvls(const CallFacts& facts, const GpuConstants& gpu, const SharedConstants& shared,
          double limit, TimeBreakdown& time) {
  const double heads = facts.nvls_heads;
  const double chunk = static_cast<double>(facts.chunk.count());
  WT_CHECK(heads > 0) << "NVLS without heads";
  WT_CHECK(gpu.nvls_channel_gbps > 0) << "NVLS on " << gpu.name;
  const auto period = [&](double bytes) {
    return std::max(gpu.nvls_period_us + heads * bytes / gpu.nvls_channel_gbps / kKilo,
                    facts.channels * heads * bytes / limit / kKilo);
  };
  const double loops = static_cast<double>(facts.channel_bytes.count()) / (heads * chunk);
  const double whole = std::floor(loops + 1e-9);
  const double part = loops - whole;
  const double fill =
      facts.function == Function::kAllReduce ? shared.nvls_fill : shared.nvls_fill - 1;
  time.Add(Cause::kKernel, gpu.launch_us);
  time.Add(Cause::kPipelineFill, fill * period(chunk));
  time.Add(Cause::kSwitchSum, whole * period(chunk) + (part > 1e-9 ? period(part * chunk) : 0.0));
}

}  // namespace

double SmallLlSaving(const GpuConstants& gpu, const CallFacts& facts) {
  constexpr double kSector = 32;  // Data bytes of four threads: 64 on the wire.
  if (facts.function != Function::kAllReduce) return 0;
  const auto bytes = static_cast<double>(facts.size.count());
  return gpu.ll_first_sector_us * std::min(1.0, kSector / std::max(1.0, bytes));
}

double RoundedMaximum(double a, double b) {
  constexpr double kPower = 6;
  const double larger = std::max(a, b);
  if (larger <= 0) return larger;
  return larger * std::pow(std::pow(a / larger, kPower) + std::pow(b / larger, kPower), 1 / kPower);
}

double UsableLinkGbps(const CallFacts& facts, const GpuConstants& gpu,
                      const SharedConstants& shared, double at_reference) {
  const double raw =
      facts.link_rate.count() == 0 ? gpu.link_raw_gbps : ToGigabytesPerSecond(facts.link_rate);
  const double sharers = facts.link_sharers;
  switch (facts.path) {
    case InNodePath::kNvlink:
      return at_reference * raw / gpu.link_raw_gbps / sharers;
    case InNodePath::kPciePeer:
      return shared.pcie_peer_share * raw / sharers;
    case InNodePath::kPcieHost:
      return shared.pcie_host_share * raw / sharers;
    case InNodePath::kPcieSockets:
      return shared.pcie_sockets_share * raw / sharers;
  }
  return at_reference;
}

TimeBreakdown OneNodeTime(const CallFacts& facts, const TimingConstants& constants) {
  const GpuConstants& gpu = constants.Gpu(facts.gpu_class);
  const SharedConstants& shared = constants.shared();
  const double link = UsableLinkGbps(facts, gpu, shared, gpu.link_gbps);
  TimeBreakdown time;
  time.extrapolated = !gpu.fitted;
  if (facts.ranks < 2) {
    time.Add(Cause::kKernel, gpu.launch_us);
    return time;
  }
  if (facts.algorithm == Algorithm::kNvls) {
    Nvls(facts, gpu, shared, UsableLinkGbps(facts, gpu, shared, gpu.nvls_limit_gbps), time);
    return time;
  }
  const double others = facts.ranks - 1.0;
  // One message at a time crosses between two GPUs: nobody shares the uplink with it.
  const double flows = std::min<double>(facts.link_sharers, others);
  if (facts.function == Function::kBroadcast || facts.function == Function::kReduce) {
    const bool host = facts.path == InNodePath::kPcieHost || facts.path == InNodePath::kPcieSockets;
    const double gain =
        host && facts.function == Function::kBroadcast ? shared.host_broadcast_gain : 1;
    Chain(facts, gpu, shared, gain * link * facts.link_sharers / flows, others, 1, time);
    return time;
  }
  if (facts.algorithm == Algorithm::kTree) {
    Chain(facts, gpu, shared, link, 2 * others, kTreeBlockShare, time);
    return time;
  }
  const Ring ring = RingOf(facts, shared);
  switch (facts.protocol) {
    case Protocol::kLl:
      RingLl(facts, ring, gpu, shared, link, time);
      break;
    case Protocol::kLl128:
      RingLl128(facts, ring, gpu, link, time);
      break;
    case Protocol::kSimple:
      RingSimple(facts, ring, gpu, shared, link, time);
      break;
  }
  return time;
}

}  // namespace windtunnel::timing

#include "collectives/job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/error.h"

namespace windtunnel {
namespace {

bool HasRoot(Function function) {
  return function == Function::kBroadcast || function == Function::kReduce ||
         function == Function::kGather || function == Function::kScatter;
}

std::string Describe(const RankCall& call) {
  if (call.kind == RankCall::Kind::kCollective) {
    return fmt::format("{} of {} {}", Name(call.function), call.count, Name(call.type));
  }
  return fmt::format("{} {} of {} {}",
                     call.kind == RankCall::Kind::kSend ? "send to" : "receive from", call.peer,
                     call.count, Name(call.type));
}

[[noreturn]] void Refuse(Rank rank, std::size_t call, const std::string& value,
                         const std::string& problem, const std::string& expected) {
  throw ConfigError({.field = fmt::format("rank {}, call {}", rank, call + 1),
                     .value = value,
                     .problem = problem,
                     .expected = expected});
}

void CheckArguments(const JobCalls& job) {
  const auto n = static_cast<Rank>(job.ranks.size());
  std::map<std::string, Rank> users;
  for (Rank rank = 0; rank < job.gpus.size(); ++rank) {
    const auto [user, fresh] = users.try_emplace(job.gpus[rank], rank);
    if (fresh) continue;
    throw ConfigError(
        {.field = fmt::format("rank {}", rank),
         .value = job.gpus[rank],
         .problem = fmt::format("is the GPU of rank {} too (ncclInvalidUsage)", user->second),
         .expected = "one GPU for each rank of a communicator"});
  }
  for (Rank rank = 0; rank < n; ++rank) {
    std::int64_t own_sends = 0;
    for (std::size_t i = 0; i < job.ranks[rank].size(); ++i) {
      const RankCall& call = job.ranks[rank][i];
      if (call.kind == RankCall::Kind::kCollective) {
        if (HasRoot(call.function) && call.root >= n) {
          Refuse(rank, i, std::to_string(call.root), "root is out of range (ncclInvalidArgument)",
                 fmt::format("0 to {}", n - 1));
        }
        continue;
      }
      if (call.peer >= n) {
        Refuse(rank, i, std::to_string(call.peer), "peer is out of range (ncclInvalidArgument)",
               fmt::format("0 to {}", n - 1));
      }
      if (call.peer == rank) own_sends += call.kind == RankCall::Kind::kSend ? 1 : -1;
    }
    if (own_sends != 0) {
      throw ConfigError({.field = fmt::format("rank {}", rank),
                         .value = own_sends > 0 ? "send to itself" : "receive from itself",
                         .problem = "has no other half (ncclInvalidUsage)",
                         .expected = "as many sends to oneself as receives, in one group"});
    }
  }
}

// The collectives of a rank, with their numbers among all its calls.
std::vector<std::pair<std::size_t, const RankCall*>> CollectivesOf(
    const std::vector<RankCall>& calls) {
  std::vector<std::pair<std::size_t, const RankCall*>> out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind == RankCall::Kind::kCollective) out.emplace_back(i, &calls[i]);
  }
  return out;
}

void CheckCollectives(const JobCalls& job) {
  const auto first = CollectivesOf(job.ranks.front());
  for (Rank rank = 1; rank < job.ranks.size(); ++rank) {
    const auto own = CollectivesOf(job.ranks[rank]);
    const std::size_t common = std::min(first.size(), own.size());
    for (std::size_t i = 0; i < common; ++i) {
      const RankCall& a = *first[i].second;
      const RankCall& b = *own[i].second;
      const auto differ = [&](std::string_view what, const auto& x, const auto& y,
                              std::string_view effect) {
        throw SimulationError(fmt::format(
            "collective {} does not fit: rank 0 calls {} with {} {}, rank {} calls {} with {} {}; "
            "NCCL does not see this and {}",
            i + 1, Describe(a), what, x, rank, Describe(b), what, y, effect));
      };
      if (a.function != b.function) {
        // The same calls in another order are told apart from a wrong call.
        const bool later = std::any_of(
            own.begin() + static_cast<std::ptrdiff_t>(i), own.end(), [&](const auto& entry) {
              return entry.second->function == a.function && entry.second->count == a.count;
            });
        differ(later ? "order" : "function", Name(a.function), Name(b.function), "hangs");
      }
      if (a.count != b.count) differ("count", a.count, b.count, "hangs or corrupts data");
      if (a.type != b.type) differ("type", Name(a.type), Name(b.type), "hangs or corrupts data");
      if (Reduces(a.function) && a.op != b.op)
        differ("operator", Name(a.op), Name(b.op), "corrupts data");
      if (HasRoot(a.function) && a.root != b.root) differ("root", a.root, b.root, "hangs");
    }
    if (own.size() == first.size()) continue;
    const bool missing = own.size() < first.size();
    const RankCall& call = missing ? *first[common].second : *own[common].second;
    throw SimulationError(fmt::format(
        "rank {} is missing in collective {} ({}): it ends after {} collectives, rank {} "
        "waits for ever (NCCL has no time-out)",
        missing ? rank : 0, common + 1, Describe(call), common, missing ? 0 : rank));
  }
}

void CheckMessages(const JobCalls& job) {
  using Pair = std::pair<Rank, Rank>;
  std::map<Pair, std::vector<const RankCall*>> sends, receives;
  for (Rank rank = 0; rank < job.ranks.size(); ++rank) {
    for (const RankCall& call : job.ranks[rank]) {
      if (call.kind == RankCall::Kind::kSend) sends[{rank, call.peer}].push_back(&call);
      if (call.kind == RankCall::Kind::kReceive) receives[{call.peer, rank}].push_back(&call);
    }
  }
  for (const auto& [pair, unused] : receives) sends.try_emplace(pair);
  for (const auto& [pair, out] : sends) {
    const auto& in = receives[pair];
    for (std::size_t i = 0; i < std::min(out.size(), in.size()); ++i) {
      if (out[i]->count == in[i]->count && out[i]->type == in[i]->type) continue;
      throw SimulationError(
          fmt::format("message {} from rank {} to rank {} does not fit: {} {} sent, {} {} expected",
                      i + 1, pair.first, pair.second, out[i]->count, Name(out[i]->type),
                      in[i]->count, Name(in[i]->type)));
    }
    if (out.size() == in.size()) continue;
    const bool unreceived = out.size() > in.size();
    throw SimulationError(fmt::format(
        "rank {} {} rank {} without the other half: {} sends, {} receives; it waits for ever",
        unreceived ? pair.first : pair.second, unreceived ? "sends to" : "receives from",
        unreceived ? pair.second : pair.first, out.size(), in.size()));
  }
}

}  // namespace

void CheckJob(const JobCalls& job) {
  if (job.ranks.empty()) return;
  CheckArguments(job);
  CheckCollectives(job);
  CheckMessages(job);
}

}  // namespace windtunnel

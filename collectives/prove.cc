#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/buffer_pattern.h"
#include "collectives/functional.h"
#include "collectives/plan_machine.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace internal {
namespace {

// Ranks first..last each contribute their input element (own index + shift) `times` times.
struct Run {
  std::int64_t shift = 0;
  Rank first = 0;
  Rank last = 0;
  std::uint32_t times = 1;
  friend bool operator==(const Run&, const Run&) = default;
};
using Contributions = std::vector<Run>;  // Sorted, not overlapping, longest possible runs.

struct Segment {
  std::uint64_t count = 0;
  std::int64_t delta = 0;  // Added to every shift, so that moving a segment keeps its set.
  std::shared_ptr<const Contributions> set;
  OpPlace writer;
  bool initial = true;  // An input nobody has written.
};
using Segments = std::vector<Segment>;

Contributions Add(const Contributions& a, const Contributions& b, std::int64_t b_shift) {
  struct Edge {
    std::int64_t shift;
    std::uint64_t at;
    std::int64_t change;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * (a.size() + b.size()));
  const auto add = [&](const Run& run, std::int64_t extra) {
    edges.push_back({run.shift + extra, run.first, std::int64_t{run.times}});
    edges.push_back({run.shift + extra, std::uint64_t{run.last} + 1, -std::int64_t{run.times}});
  };
  for (const Run& run : a) add(run, 0);
  for (const Run& run : b) add(run, b_shift);
  std::sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
    return x.shift != y.shift ? x.shift < y.shift : x.at < y.at;
  });
  Contributions sum;
  std::int64_t level = 0;
  for (std::size_t i = 0; i < edges.size();) {
    const std::uint64_t at = edges[i].at;
    const std::int64_t shift = edges[i].shift;
    std::int64_t change = 0;
    for (; i < edges.size() && edges[i].at == at && edges[i].shift == shift; ++i)
      change += edges[i].change;
    if (change == 0) continue;
    if (level > 0) sum.back().last = static_cast<Rank>(at - 1);
    level += change;
    if (level > 0)
      sum.push_back({shift, static_cast<Rank>(at), 0, static_cast<std::uint32_t>(level)});
  }
  return sum;
}

bool Same(const Segment& a, const Segment& b) {
  return a.delta == b.delta && (a.set == b.set || *a.set == *b.set);
}

class SymbolicPayload {
 public:
  using Value = std::shared_ptr<const Segments>;

  explicit SymbolicPayload(const Plan& plan) : plan_(plan) {
    const std::uint32_t n = plan.request.rank_count;
    for (auto& memory : memory_) memory.resize(n);
    for (Rank rank = 0; rank < n; ++rank) {
      const std::uint64_t count = InputCount(plan.request, rank);
      if (count == 0) continue;
      const auto [map, offset] = Resolve(rank, {BufferKind::kInput, 0});
      auto set = std::make_shared<const Contributions>(Contributions{{0, rank, rank, 1}});
      map->emplace(offset, Segment{count, -static_cast<std::int64_t>(offset), std::move(set)});
    }
  }

  Value Form(const OpPlace& place, const PlanOp& op, std::vector<Value>& arrivals) {
    if (op.count == 0) return std::make_shared<const Segments>();
    if (!op.has_source && arrivals.size() == 1) return arrivals[0];
    Segments value;
    std::size_t first = 0;
    if (op.has_source) {
      value = Read(place, plan_.blocks[place.block].rank, op.source, op.count);
    } else if (!arrivals.empty()) {
      value = *arrivals[0];  // Several arrivals and nothing of the own.
      first = 1;
    } else {
      throw SimulationError(DescribePlace(plan_, place) + " has neither source nor arrivals");
    }
    for (std::size_t i = first; i < arrivals.size(); ++i) value = Sum(place, value, *arrivals[i]);
    return std::make_shared<const Segments>(std::move(value));
  }

  Value SwitchReduce(const OpPlace& place, const PlanOp& op) {
    Segments value;
    for (std::size_t i = 0; i < op.receive_from.size(); ++i) {
      Segments part = Read(place, op.receive_from[i].rank, op.source, op.count);
      value = i == 0 ? std::move(part) : Sum(place, value, part);
    }
    return std::make_shared<const Segments>(std::move(value));
  }

  void Store(const OpPlace& place, const PlanOp& op, Rank rank, const Value& value) {
    if (op.count == 0) return;
    CheckRange(place, rank, op.destination, op.count);
    const auto [map, start] = Resolve(rank, op.destination);
    Clear(*map, start, start + op.count);
    std::uint64_t at = start;
    for (Segment segment : *value) {
      const std::uint64_t begin = std::exchange(at, at + segment.count);
      segment.delta -= static_cast<std::int64_t>(start);
      segment.writer = place;
      segment.initial = false;
      const auto next = map->lower_bound(begin);
      if (next != map->begin()) {
        auto& [before_begin, before] = *std::prev(next);
        if (before_begin + before.count == begin && !before.initial && Same(before, segment)) {
          before.count += segment.count;
          before.writer = place;
          continue;
        }
      }
      map->emplace_hint(next, begin, std::move(segment));
    }
  }

  // What is wrong with the outputs, or nothing.
  std::string Verify(std::uint64_t chunk_count) {
    for (Rank rank = 0; rank < plan_.request.rank_count; ++rank) {
      for (const OutputPart& part : ExpectedOutput(plan_.request, rank)) {
        if (std::string fault = VerifyPart(rank, part, chunk_count); !fault.empty()) return fault;
      }
    }
    return {};
  }

 private:
  using Map = std::map<std::uint64_t, Segment>;

  // In place input and output are one memory; positions are then counted in it.
  std::pair<Map*, std::uint64_t> Resolve(Rank rank, const BufferPosition& position) {
    std::uint64_t offset = position.offset;
    auto which = static_cast<std::size_t>(position.buffer);
    if (plan_.request.in_place && position.buffer != BufferKind::kScratch) {
      const InPlaceOffsets at = OffsetsInPlace(plan_.request, rank);
      offset += position.buffer == BufferKind::kInput ? at.input : at.output;
      which = static_cast<std::size_t>(BufferKind::kOutput);
    }
    return {&memory_[which][rank], offset};
  }

  void CheckRange(const OpPlace& place, Rank rank, const BufferPosition& position,
                  std::uint64_t count) const {
    const std::uint64_t have =
        position.buffer == BufferKind::kInput    ? InputCount(plan_.request, rank)
        : position.buffer == BufferKind::kOutput ? OutputCount(plan_.request, rank)
                                                 : plan_.scratch_count;
    constexpr std::string_view kNames[] = {"input", "output", "scratch"};
    if (position.offset <= have && count <= have - position.offset) return;
    throw SimulationError(
        fmt::format("{} touches elements [{}, {}) of the {} of rank {}, which "
                    "has {}",
                    DescribePlace(plan_, place), position.offset, position.offset + count,
                    kNames[static_cast<std::size_t>(position.buffer)], rank, have));
  }

  Segments Read(const OpPlace& place, Rank rank, const BufferPosition& position,
                std::uint64_t count) {
    CheckRange(place, rank, position, count);
    Segments segments;
    if (count == 0) return segments;
    const auto [map, offset] = Resolve(rank, position);
    std::uint64_t at = offset;
    const std::uint64_t end = offset + count;
    auto it = map->upper_bound(at);
    if (it != map->begin()) --it;
    for (; at < end; ++it) {
      if (it == map->end() || it->first > at || it->first + it->second.count <= at) {
        constexpr std::string_view kNames[] = {"input", "output", "scratch"};
        throw SimulationError(
            fmt::format("{} reads element {} of the {} of rank {}, which nobody has written",
                        DescribePlace(plan_, place), at - offset + position.offset,
                        kNames[static_cast<std::size_t>(position.buffer)], rank));
      }
      Segment segment = it->second;
      const std::uint64_t take = std::min(end, it->first + segment.count) - at;
      segment.count = take;
      segment.delta += static_cast<std::int64_t>(offset);  // Index in the value from here on.
      segments.push_back(std::move(segment));
      at += take;
    }
    return segments;
  }

  static void Clear(Map& map, std::uint64_t begin, std::uint64_t end) {
    auto it = map.upper_bound(begin);
    if (it != map.begin()) --it;
    while (it != map.end() && it->first < end) {
      const std::uint64_t from = it->first;
      const Segment segment = it->second;
      const std::uint64_t to = from + segment.count;
      if (to <= begin) {
        ++it;
        continue;
      }
      it = map.erase(it);
      if (from < begin) {
        Segment head = segment;
        head.count = begin - from;
        map.emplace(from, std::move(head));
      }
      if (to > end) {
        Segment tail = segment;
        tail.count = to - end;
        map.emplace(end, std::move(tail));
        return;
      }
    }
  }

  Segments Sum(const OpPlace& place, const Segments& a, const Segments& b) {
    Segments sum;
    std::size_t i = 0, j = 0;
    std::uint64_t used_a = 0, used_b = 0;
    while (i < a.size() && j < b.size()) {
      const std::uint64_t take = std::min(a[i].count - used_a, b[j].count - used_b);
      auto set =
          std::make_shared<const Contributions>(Add(*a[i].set, *b[j].set, b[j].delta - a[i].delta));
      if (!first_double_) {
        for (const Run& run : *set) {
          if (run.times > 1) first_double_ = {place, run.first};
        }
      }
      sum.push_back({take, a[i].delta, std::move(set), place, false});
      if ((used_a += take) == a[i].count) ++i, used_a = 0;
      if ((used_b += take) == b[j].count) ++j, used_b = 0;
    }
    return sum;
  }

  std::string VerifyPart(Rank rank, const OutputPart& part, std::uint64_t chunk_count) {
    const auto [map, base] = Resolve(rank, {BufferKind::kOutput, 0});
    const std::int64_t shift =
        static_cast<std::int64_t>(part.source) - static_cast<std::int64_t>(part.begin + base);
    std::uint64_t at = part.begin + base;
    const std::uint64_t end = at + part.count;
    auto it = map->upper_bound(at);
    if (it != map->begin()) --it;
    for (; at < end; ++it) {
      const auto where = [&] {
        return fmt::format("rank {}, chunk {} of the output (element {})", rank,
                           (at - base) / chunk_count, at - base);
      };
      if (it == map->end() || it->first > at || it->first + it->second.count <= at)
        return where() + " is never written";
      const Segment& segment = it->second;
      std::string fault = Difference(*segment.set, segment.delta, part, shift);
      if (!fault.empty()) {
        std::string text = where() + " " + fault;
        if (!segment.initial)
          text += fmt::format("; written by {}", DescribePlace(plan_, segment.writer));
        if (first_double_) {
          text += fmt::format("; the first doubled contribution is rank {}'s, added by {}",
                              first_double_->rank, DescribePlace(plan_, first_double_->place));
        }
        return text;
      }
      at = it->first + segment.count;
    }
    return {};
  }

  // "lacks rank 3", "holds rank 2 twice", ...
  static std::string Difference(const Contributions& set, std::int64_t delta,
                                const OutputPart& part, std::int64_t shift) {
    for (const Run& run : set) {
      const std::int64_t off = run.shift + delta - shift;
      if (off != 0) {
        return fmt::format("holds an element of rank {}'s input {} places {} the right one",
                           run.first, off < 0 ? -off : off, off < 0 ? "before" : "behind");
      }
    }
    Rank next = part.first_rank;
    for (const Run& run : set) {
      if (run.first < part.first_rank || run.last > part.last_rank) {
        return fmt::format("holds rank {}, which does not belong there",
                           run.first < part.first_rank ? run.first : run.last);
      }
      if (run.times != 1) return fmt::format("holds rank {} {} times", run.first, run.times);
      if (run.first != next) return fmt::format("lacks rank {}", next);
      next = run.last + 1;
    }
    if (next != part.last_rank + 1) return fmt::format("lacks rank {}", next);
    return {};
  }

  struct Doubled {
    OpPlace place;
    Rank rank;
  };

  const Plan& plan_;
  std::vector<Map> memory_[3];
  std::optional<Doubled> first_double_;
};

}  // namespace
}  // namespace internal

std::string ProveCorrect(const Plan& plan, std::uint64_t chunk_count) {
  WT_CHECK(chunk_count > 0);
  internal::SymbolicPayload payload(plan);
  internal::PlanMachine<internal::SymbolicPayload> machine(plan, payload, 8, false);
  try {
    machine.Run();
  } catch (const SimulationError& error) {
    return error.what();
  }
  return payload.Verify(chunk_count);
}

}  // namespace windtunnel

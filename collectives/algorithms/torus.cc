#include "collectives/algorithms/torus.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

std::uint32_t LongAxes(const std::vector<std::uint32_t>& sides) {
  return static_cast<std::uint32_t>(
      std::count_if(sides.begin(), sides.end(), [](std::uint32_t side) { return side > 1; }));
}

// One rank on one channel: the rings of the axes it passes through, in order.
class TorusProgram final : public Program {
 public:
  TorusProgram(const ChannelLayout& layout, std::uint32_t number, Rank rank) {
    const ChannelLayout::Channel& channel = layout.channels[number];
    slices_ = channel.slices;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> axes;  // Stride and side.
    std::uint32_t stride = 1;
    for (const std::uint32_t side : layout.sides) {
      if (side > 1) axes.emplace_back(stride, side);
      stride *= side;
    }
    const auto count = static_cast<std::uint32_t>(axes.size());
    std::rotate(axes.begin(), axes.begin() + number % count, axes.end());
    const bool backwards = number / count % 2 == 1;
    std::vector<Phase> rings;
    Part range{channel.first, channel.count};  // What the members of the next ring share.
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto [step, side] = axes[i];
      const std::uint32_t place = rank / step % side;
      const auto at = [&](std::uint32_t coordinate) {
        return Peer{rank - place * step + coordinate % side * step, i};
      };
      Phase ring{.side = side, .position = backwards ? (side - place) % side : place};
      ring.next = at(place + (backwards ? side - 1 : 1));
      ring.previous = at(place + (backwards ? 1 : side - 1));
      ring.offset = range.offset;
      ring.part = range.count / side;
      ring.longer = static_cast<std::uint32_t>(range.count % side);
      ring.first = i == 0;
      rings.push_back(ring);
      const Part own = PartOf(range.count, side, ring.position);
      range = {range.offset + own.offset, own.count};
    }
    // Down the axes a reduce-scatter each, the last with its all-gather, then all-gathers back.
    for (std::uint32_t i = 0; i < count; ++i) Add(rings[i], true, i + 1 == count);
    for (std::uint32_t i = count - 1; i-- > 0;) Add(rings[i], false, true);
  }

  std::uint64_t size() const override { return phases_.back().end; }
  PlanOp At(std::uint64_t index) const override {
    std::size_t number = 0;
    while (index >= phases_[number].end) ++number;
    const Phase& ring = phases_[number];
    const auto j = static_cast<std::uint32_t>(index - ring.begin);
    // Passes count from the reduce-scatter's: pass `side - 1` forms the own part, later ones copy.
    const std::uint32_t pass = ring.reduces ? j : j + ring.side - 1;
    const std::uint32_t which = (ring.position + 2 * ring.side - 1 - pass) % ring.side;
    const std::uint64_t offset = ring.offset + ring.part * which + std::min(which, ring.longer);
    PlanOp op{.count = ring.part + (which < ring.longer ? 1 : 0),
              .step = static_cast<std::uint32_t>(ring.begin - number + (j == 0 ? 0 : j - 1)),
              .slices = slices_};
    op.source = {ring.first && ring.reduces ? BufferKind::kInput : BufferKind::kOutput, offset};
    op.destination = {BufferKind::kOutput, offset};
    op.has_source = ring.reduces ? pass < ring.side : j == 0;
    op.has_destination = ring.reduces ? pass + 1 >= ring.side : j != 0;
    op.scale = ring.reduces && ring.gathers && pass + 1 == ring.side;
    if (j != 0) op.receive_from = {&ring.previous, 1};
    if (index + 1 != ring.end) op.send_to = {&ring.next, 1};
    return op;
  }

 private:
  // A way around one ring.
  struct Phase {
    std::uint64_t begin = 0;  // Ops from here
    std::uint64_t end = 0;    // up to here; a step less than ops.
    std::uint32_t side = 1;
    std::uint32_t position = 0;
    Peer next;
    Peer previous;
    std::uint64_t offset = 0;  // Of what the members share, in near-equal parts:
    std::uint64_t part = 0;
    std::uint32_t longer = 0;  // the first ones are one element longer.
    bool first = false;        // Of the rings on the way down.
    bool reduces = false;
    bool gathers = false;
  };
  void Add(Phase ring, bool reduces, bool gathers) {
    ring.reduces = reduces;
    ring.gathers = gathers;
    ring.begin = phases_.empty() ? 0 : phases_.back().end;
    ring.end = ring.begin + (reduces && gathers ? 2 * ring.side - 1 : ring.side);
    phases_.push_back(ring);
  }
  std::vector<Phase> phases_;
  std::uint32_t slices_ = 1;
};

}  // namespace

std::uint32_t TorusChannels(const std::vector<std::uint32_t>& sides) {
  return std::max(1U, 2 * LongAxes(sides));
}

std::string TorusAlgorithm::WhyNot(const CollectiveRequest& request,
                                   const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (layout.sides.empty()) return "the ranks are not joined as a torus, and no sides are given";
  std::uint64_t ranks = 1;
  for (const std::uint32_t side : layout.sides) ranks *= std::max(1U, side);
  if (ranks != request.rank_count) {
    return fmt::format("sides of {} make {} ranks, not {}", fmt::join(layout.sides, " x "), ranks,
                       request.rank_count);
  }
  return WhyNoChannels(request, layout);
}

Plan TorusAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  bool alike = true;
  for (Rank rank = 0; rank < request.rank_count; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      if (layout.channels[c].count == 0) continue;
      plan.blocks.push_back({rank, c, "torus", std::make_shared<TorusProgram>(layout, c, rank)});
      alike = alike && layout.channels[c].count % request.rank_count == 0;
    }
  }
  if (alike) plan.symmetry = "places of the torus";
  return plan;
}

}  // namespace windtunnel

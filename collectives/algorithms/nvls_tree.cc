#include "collectives/algorithms/nvls_tree.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/common.h"
#include "collectives/nccl/trees.h"

namespace windtunnel {
namespace {

struct TreeBlock {
  std::vector<Peer> members_up, members_down;  // Ports 0 and 1, as in NVLS.
  std::vector<Peer> heads_up, heads_down;
  std::vector<Peer> parent_up, parent_down;  // Ports 2 and 3, between nodes.
  std::vector<Peer> children_up, children_down;
};

}  // namespace

std::string NvlsTreeAlgorithm::WhyNot(const CollectiveRequest& request,
                                      const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (std::string why = WhyNoChannels(request, layout); !why.empty()) return why;
  if (layout.nodes.size() < 2) return "needs two nodes or more";
  if (std::string why = WhyNoEqualNodes(request, layout); !why.empty()) return why;
  return WhyNoSwitchReduction(request);
}

Plan NvlsTreeAlgorithm::MakePlan(const CollectiveRequest& request,
                                 const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  plan.scratch_count = request.count;
  const std::size_t places = layout.nodes.front().size();
  // Heads by place in the node: those of the first node that are heads, else all.
  std::vector<std::size_t> heads;
  for (std::size_t place = 0; place < places; ++place) {
    const auto& known = layout.nvls_heads;
    if (std::find(known.begin(), known.end(), layout.nodes.front()[place]) != known.end())
      heads.push_back(place);
  }
  if (heads.empty()) {
    for (std::size_t place = 0; place < places; ++place) heads.push_back(place);
  }
  const auto node_count = static_cast<int>(layout.nodes.size());
  PlanBuilder builder(plan);
  for (int node = 0; node < node_count; ++node) {
    const auto trees = nccl::DoubleBinaryTree(node_count, node);
    const std::vector<Rank>& members = layout.nodes[static_cast<std::size_t>(node)];
    for (std::size_t place = 0; place < places; ++place) {
      const Rank rank = members[place];
      const auto found = std::find(heads.begin(), heads.end(), place);
      for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
        const ChannelLayout::Channel& channel = layout.channels[c];
        if (channel.count == 0) continue;
        const nccl::TreePlace& tree = trees[c % 2];
        TreeBlock peers;
        for (const Rank member : members) {
          peers.members_up.push_back({member, 0});
          peers.members_down.push_back({member, 1});
        }
        for (const std::size_t head : heads) {
          peers.heads_up.push_back({members[head], 0});
          peers.heads_down.push_back({members[head], 1});
        }
        const auto remote = [&](int other) {
          return layout.nodes[static_cast<std::size_t>(other)][place];
        };
        if (tree.up >= 0) {
          peers.parent_up.push_back({remote(tree.up), 2});
          peers.parent_down.push_back({remote(tree.up), 3});
        }
        for (const int child : tree.down) {
          if (child < 0) continue;
          peers.children_up.push_back({remote(child), 2});
          peers.children_down.push_back({remote(child), 3});
        }
        const bool root = tree.up < 0;
        const bool head = found != heads.end();
        const std::uint32_t scatter = builder.Add(rank, c, "nvls scatter");
        const std::uint32_t up = head ? builder.Add(rank, c, "nvls tree up") : 0;
        const std::uint32_t down = head ? builder.Add(rank, c, "nvls tree down") : 0;
        const std::uint32_t gather = builder.Add(rank, c, "nvls gather");
        const std::uint64_t loop_count = heads.size() * channel.chunk;
        std::uint32_t step = 0;
        for (std::uint64_t begin = 0; begin < channel.count; begin += loop_count, ++step) {
          const std::uint64_t rest = std::min(loop_count, channel.count - begin);
          const std::uint64_t at = channel.first + begin;
          const BufferPosition staged{BufferKind::kScratch, at};
          builder.Append(scatter, {.count = rest,
                                   .has_source = true,
                                   .has_destination = true,
                                   .source = {BufferKind::kInput, at},
                                   .destination = staged,
                                   .step = step});
          builder.Append(scatter, {.send_to = peers.heads_up, .step = step});
          builder.Append(gather, {.receive_from = peers.heads_down, .step = step});
          builder.Append(gather, {.count = rest,
                                  .has_source = true,
                                  .has_destination = true,
                                  .source = staged,
                                  .destination = {BufferKind::kOutput, at},
                                  .step = step});
          if (!head) continue;
          std::uint64_t size = channel.chunk;
          if (rest < loop_count) {
            const std::uint64_t granule = 16384 / SizeOf(request.type);
            size = (rest + heads.size() - 1) / heads.size();
            size = (size + granule - 1) / granule * granule;
          }
          const std::uint64_t offset =
              std::min(rest, size * static_cast<std::uint64_t>(found - heads.begin()));
          const BufferPosition part{BufferKind::kScratch, at + offset};
          PlanOp op{.count = std::min(size, rest - offset),
                    .has_source = true,
                    .source = part,
                    .destination = part,
                    .step = step};
          PlanOp reduce = op;
          reduce.combine = Combine::kSwitchReduce;
          reduce.receive_from = peers.members_up;
          reduce.has_destination = true;
          builder.Append(up, reduce);
          PlanOp add = op;
          add.receive_from = peers.children_up;
          add.send_to = root ? peers.children_down : peers.parent_up;
          add.has_destination = root;
          add.scale = root;
          builder.Append(up, add);
          const Dependency added[] = {{up, builder.SizeOf(up) - 1}};
          if (!root) {
            PlanOp pass = op;
            pass.receive_from = peers.parent_down;
            pass.has_source = false;
            pass.has_destination = true;
            pass.send_to = peers.children_down;
            builder.Append(down, pass);
          }
          PlanOp multicast = op;
          multicast.combine = Combine::kSwitchMulticast;
          multicast.send_to = peers.members_down;
          if (root) multicast.wait_for = added;
          builder.Append(down, multicast);
        }
      }
    }
  }
  return plan;
}

}  // namespace windtunnel

#include "interconnect/nccl/system.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace windtunnel::nccl {

std::optional<std::uint32_t> System::FindById(NodeKind kind, std::int64_t id) const {
  const auto& all = nodes(kind);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].id == id) return i;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> System::GpuOfRank(int rank) const {
  const auto& all = nodes(NodeKind::kGpu);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].gpu.rank == rank) return i;
  }
  return std::nullopt;
}

NodeRef System::PackageOf(std::uint32_t gpu) const {
  for (const SystemLink& link : nodes(NodeKind::kGpu)[gpu].links) {
    if (link.to.kind == NodeKind::kDev) return link.to;
  }
  return Gpu(gpu);
}

void System::Connect(NodeRef from, NodeRef to, LinkKind kind, float rate) {
  auto& links = at(from).links;
  std::size_t i = 0;
  while (i < links.size() && !(links[i].to == to && links[i].kind == kind)) ++i;
  if (i == links.size()) links.push_back({.kind = kind, .rate = 0, .to = to});
  links[i].rate += rate;
  // Only the link that changed moves: the others are sorted already.
  for (; i > 0 && links[i - 1].rate < links[i].rate; --i) std::swap(links[i - 1], links[i]);
}

void System::Remove(NodeRef node) {
  for (auto& of_kind : nodes_) {
    for (SystemNode& other : of_kind) {
      std::erase_if(other.links, [&](const SystemLink& link) { return link.to == node; });
      for (SystemLink& link : other.links) {
        if (link.to.kind == node.kind && link.to.index > node.index) --link.to.index;
      }
    }
  }
  auto& own = nodes(node.kind);
  own.erase(own.begin() + node.index);
}

int System::MinSm() const {
  const auto& gpus = nodes(count(NodeKind::kDev) > 0 ? NodeKind::kDev : NodeKind::kGpu);
  WT_CHECK(!gpus.empty());
  return std::min_element(gpus.begin(), gpus.end(),
                          [](const auto& a, const auto& b) { return a.gpu.sm < b.gpu.sm; })
      ->gpu.sm;
}

int System::MaxSm() const {
  const auto& gpus = nodes(count(NodeKind::kDev) > 0 ? NodeKind::kDev : NodeKind::kGpu);
  WT_CHECK(!gpus.empty());
  return std::max_element(gpus.begin(), gpus.end(),
                          [](const auto& a, const auto& b) { return a.gpu.sm < b.gpu.sm; })
      ->gpu.sm;
}

}  // namespace windtunnel::nccl

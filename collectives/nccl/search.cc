#include "collectives/nccl/search.h"

#include <algorithm>
#include <optional>

#include "collectives/nccl/graph_search.h"
#include "collectives/nccl/graph_xml.h"
#include "interconnect/nccl/xml.h"
#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

class Searches {
 public:
  Searches(const SystemView& view, const SearchRequest& request)
      : view_(view), request_(request), rules_(SearchRulesOf(request.version)) {
    const Environment& environment = request.environment;
    settings_.cross_nic = static_cast<int>(environment.GetInt("NCCL_CROSS_NIC", 2));
    settings_.scatter_nets = environment.GetInt("NCCL_MNNVL_SCATTER_NETS_ENABLE", 1) != 0;
    settings_.rail_per_host = environment.GetInt("NCCL_MNNVL_RAIL_PER_HOST", 0) != 0;
    if (const auto file = environment.Get("NCCL_GRAPH_FILE")) {
      given_ = ReadGraphXml(ReadXmlFile(*file), view.system(), request.version);
    }
  }

  std::vector<SearchGraph> All() const {
    std::vector<SearchGraph> out;
    out.push_back(Find({.id = GraphId::kRing,
                        .pattern = Pattern::kRing,
                        .collnet = false,
                        .min_channels = 1,
                        .max_channels = view_.rules().max_channels / 2}));
    const int ring = out[0].channel_count;
    out.push_back(Find({.id = GraphId::kTree,
                        .pattern = Pattern::kBalancedTree,
                        .collnet = false,
                        .min_channels = rules_.tree_as_wide_as_ring ? ring : 1,
                        .max_channels = ring}));
    const GraphRequest chain{.id = GraphId::kCollNetChain,
                             .pattern = Pattern::kTree,
                             .collnet = true,
                             .min_channels = ring,
                             .max_channels = ring};
    const GraphRequest direct{.id = GraphId::kCollNetDirect,
                              .pattern = Pattern::kCollNetDirect,
                              .collnet = true,
                              .min_channels = 1,
                              .max_channels = view_.rules().max_channels};
    const bool collnet = UsesCollNet();
    if (rules_.collnet_direct) out.push_back(collnet ? Find(direct) : NotSearched(direct));
    out.push_back(collnet || rules_.collnet_always ? Find(chain) : NotSearched(chain));
    if (rules_.nvls) {
      const GraphRequest nvls{.id = GraphId::kNvls,
                              .pattern = Pattern::kNvls,
                              .collnet = false,
                              .min_channels = 1,
                              .max_channels = view_.rules().max_channels};
      out.push_back(UsesNvls() ? Find(nvls) : NotSearched(nvls));
    }
    return out;
  }

 private:
  bool UsesCollNet() const {
    return request_.collnet && request_.environment.GetInt("NCCL_COLLNET_ENABLE", 0) == 1;
  }
  bool UsesNvls() const {
    const std::int64_t enable = request_.environment.GetInt("NCCL_NVLS_ENABLE", 2);
    if (enable == 0) return false;
    const auto gpus = static_cast<int>(view_.system().count(NodeKind::kGpu));
    if (gpus < rules_.nvls_min_gpus) return false;
    return enable != 2 || request_.multicast;
  }
  static SearchGraph NotSearched(const GraphRequest& request) {
    SearchGraph out;
    out.id = request.id;
    out.pattern = request.pattern;
    out.same_channels = false;
    return out;
  }
  SearchGraph Find(const GraphRequest& request) const {
    for (const SearchGraph& graph : given_) {
      const bool refused = settings_.cross_nic == 0 && graph.cross_nic == 1;
      if (graph.id == request.id && graph.channel_count > 0 && !refused) return graph;
    }
    return GraphSearch(view_, request_.version, settings_).Run(request);
  }

  const SystemView& view_;
  const SearchRequest& request_;
  SearchRules rules_;
  SearchSettings settings_;
  std::vector<SearchGraph> given_;
};

}  // namespace

std::vector<SearchGraph> SearchGraphs(const SystemView& view, const SearchRequest& request) {
  return Searches(view, request).All();
}

const SearchGraph& GraphOf(const std::vector<SearchGraph>& graphs, GraphId id) {
  const auto found = std::find_if(graphs.begin(), graphs.end(),
                                  [&](const SearchGraph& graph) { return graph.id == id; });
  WT_CHECK(found != graphs.end());
  return *found;
}

}  // namespace windtunnel::nccl

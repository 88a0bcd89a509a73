#pragma once
// From the searches of stages 1 to 4 to the job that stages 5 to 7 plan for.

#include <span>

#include "collectives/nccl/job.h"
#include "collectives/nccl/node_search.h"
#include "collectives/types.h"

namespace windtunnel::nccl {

/// The systems that one search result describes: one, or several parts of a host whose GPUs do not
/// reach each other (each part searches by itself).
struct SearchedHost {
  struct Part {
    std::shared_ptr<const NodeDescription> node;
    std::vector<RankSeat>
        seats;  ///< Of this part, rising by rank; the order of the request's places.
  };
  std::vector<Part> parts;
};
SearchedHost DescribeHost(const NodeSearchResult& result, const NodeSearchRequest& request);

/// A job of `request.nodes` hosts that are all like the searched one, ranks placed as the request
/// says.
Job JobOfEqualHosts(const NodeSearchResult& result, const NodeSearchRequest& request);

/// A job of unlike hosts. `hosts[h]` describes host h as the first of its kind (places from 0);
/// `places[h]` are the ranks of host h, by place.
Job JobOfHosts(std::span<const SearchedHost* const> hosts,
               std::span<const std::vector<Rank>> places);

}  // namespace windtunnel::nccl

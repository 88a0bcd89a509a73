#include "collectives/decision.h"

#include <algorithm>

namespace windtunnel {

CallDecision PlainDecisions::Decide(const CollectiveRequest& request) {
  CallDecision decision;
  decision.algorithm = options_.algorithm;
  const std::uint64_t bytes = LogicalBytes(request);
  const std::uint64_t chunk =
      options_.chunk.count() != 0 ? options_.chunk.count() : std::max<std::uint64_t>(bytes, 1);
  decision.layout = PlainLayout(request, options_.channels, chunk);
  decision.layout.protocol = options_.protocol;
  if (!options_.nodes.empty()) decision.layout.nodes = options_.nodes;
  decision.layout.sides = options_.sides;
  decision.channels = options_.channels;
  decision.chunk = Bytes(std::min(chunk, bytes));
  decision.channel_bytes = Bytes((bytes + options_.channels - 1) / options_.channels);
  return decision;
}

}  // namespace windtunnel

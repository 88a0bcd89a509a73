#pragma once

#include <string>
#include <vector>

#include "apps/collective_result.h"

namespace windtunnel {

/// One page that stands by itself: curves of all results together, then per result its facts, the
/// table, where the time went, the load of the links over the sizes and a picture of the devices.
/// Nothing is loaded from anywhere, no script runs. Contract: at least one result.
std::string HtmlReport(const std::vector<CollectiveResult>& results);

}  // namespace windtunnel

#pragma once
// A picture of the devices that a collective used, drawn from the names of its links.

#include <string>
#include <string_view>
#include <vector>

#include "apps/collective_result.h"

namespace windtunnel {

/// Devices in layers by kind (network switches above, GPUs below), hosts side by side, one line per
/// pair of devices in the colour of its busier direction. Of large clusters the hosts with the
/// busiest links are drawn, and the title says how many are left out.
std::string ClusterPicture(std::string_view title, const std::vector<ResultLink>& links);

}  // namespace windtunnel

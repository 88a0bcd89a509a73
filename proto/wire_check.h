#pragma once
// Looks over protobuf bytes before they are parsed, so that a fault names its byte.

#include <google/protobuf/descriptor.h>

#include <string_view>

#include "proto/text_io.h"

namespace windtunnel::proto {

/// @throws ConfigError: "truncated at byte k", a varint of more than 10 bytes, a length beyond the
/// end, a field number that `type` does not have, a wire type that does not fit the field, nesting
/// beyond the limit. `k` counts from 0.
void CheckWire(std::string_view bytes, const google::protobuf::Descriptor& type,
               std::string_view file_name, const ReadLimits& limits = {});

}  // namespace windtunnel::proto

#include "interconnect/link_timing.h"

#include <algorithm>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {

LinkTiming::LinkTiming(const Options& options) : options_(options) {
  const auto refuse_zero = [](bool zero, const char* field, const char* expected) {
    if (!zero) return;
    throw ConfigError(
        {.field = field, .value = "0", .problem = "a link cannot have", .expected = expected});
  };
  refuse_zero(options.rate.count() == 0, "link.rate", "a rate above zero");
  refuse_zero(options.max_payload.count() == 0, "link.max_payload", "a size above zero");
  refuse_zero(options.granule.count() == 0, "link.granule", "a size above zero");
}

std::uint64_t LinkTiming::Frames(Bytes payload) const {
  const std::uint64_t frames =
      (payload.count() + options_.max_payload.count() - 1) / options_.max_payload.count();
  return std::max<std::uint64_t>(frames, 1);
}

Bytes LinkTiming::WireSize(Bytes payload) const {
  const auto pad = [this](std::uint64_t size) {
    const std::uint64_t granule = options_.granule.count();
    return (size + granule - 1) / granule * granule;
  };
  const std::uint64_t full = payload.count() / options_.max_payload.count();
  const std::uint64_t rest = payload.count() % options_.max_payload.count();
  return Bytes(full * pad(options_.max_payload.count()) + pad(rest)) +
         Frames(payload) * options_.frame_overhead;
}

void LinkTiming::FillShape(Bytes payload) {
  const Bytes first = std::min(payload, options_.max_payload);
  const std::uint64_t rest = payload.count() % options_.max_payload.count();
  const Bytes last = rest != 0 || payload.count() == 0 ? Bytes(rest) : options_.max_payload;
  const Bytes whole = WireSize(first);
  const Bytes head =
      options_.forward_after.count() == 0 ? whole : std::min(whole, options_.forward_after);
  shape_.payload = payload;
  shape_.all = WireTime(payload);
  shape_.head = SerializationTime(head, options_.rate);
  shape_.last = WireTime(last);
  // With cut-through the last frame streams in while it streams out: only its end may lag.
  if (options_.forward_after.count() != 0) {
    shape_.last =
        SerializationTime(std::min(WireSize(last), options_.forward_after), options_.rate);
  }
}

std::string LinkTiming::Describe() const {
  return FormatRate(options_.rate) + ", " + FormatTime(options_.propagation) + ", " +
         FormatSize(options_.max_payload) + " frames + " + FormatSize(options_.frame_overhead);
}

}  // namespace windtunnel

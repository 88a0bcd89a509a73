#pragma once

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"

namespace windtunnel::timing {

/// A maximum of two overlapping stages, slightly rounded: (a^6 + b^6)^(1/6). The power was chosen
/// by hand on the runs named in catalogue/timing/gpu.yaml (one-node-fit).
double RoundedMaximum(double a, double b);

/// Device time of a ring, chain or NVLS call inside one NVLink domain or one PCIe host, from the
/// launch of the kernel to its end. docs/timing-model.md 2 has the formulas. Covers all-reduce,
/// all-gather, reduce-scatter (fitted), broadcast and reduce (a chain of the same steps, not
/// fitted). Not modelled: registered buffers, symmetric kernels, several calls at once.
/// A tree of one node is a chain up and down (not fitted). Contract: `facts.nodes` is 1.
TimeBreakdown OneNodeTime(const CallFacts& facts, const TimingConstants& constants);

/// What a hop of LL is shorter in an all-reduce of few bytes: one chunk has them all, the others
/// are empty. All-gathers of as few bytes per rank do not show it.
double SmallLlSaving(const GpuConstants& gpu, const CallFacts& facts);

/// Rate of one GPU's links that rings can use, GB/s: the fitted share of the raw rate, scaled to
/// the link the topology states.
double UsableLinkGbps(const CallFacts& facts, const GpuConstants& gpu,
                      const SharedConstants& shared, double at_reference);

}  // namespace windtunnel::timing

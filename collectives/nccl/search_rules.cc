#include "collectives/nccl/search_rules.h"

namespace windtunnel::nccl {
namespace {

// Rate lists. Names: by GPU, inter or intra, and the release that brought the list.
constexpr float kIntra2_10[] = {44, 30, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr float kInter2_10[] = {48, 30, 24, 22, 18, 15,   12,   10,    9,
                                7,  6,  5,  4,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kInter2_15[] = {48, 30, 28, 24, 22, 18,   15,   12,    10,   9,
                                7,  6,  5,  4,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kIntra2_18[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr float kInter2_18[] = {48, 30, 28, 24, 20, 18,   15,   12,    10,   9,
                                7,  6,  5,  4,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm90Intra2_16[] = {66, 33, 24, 20, 15, 12, 6, 3};
constexpr float kSm90Inter2_16[] = {48, 45, 30, 24, 15, 12, 6, 3, 2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm90Intra2_18[] = {60, 40, 30, 24, 20, 15, 12, 6, 3};
constexpr float kSm90Inter2_18_1[] = {48, 45, 42, 40,   30,   24,    15,
                                      12, 6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm90Inter2_18_3[] = {48, 45, 42, 40, 30,   24,   20,    17.5F,
                                      15, 12, 6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm90Intra2_19[] = {60, 50, 40, 30, 24, 20, 15, 12, 6, 3};
constexpr float kSm90Inter2_19_3[] = {48, 45, 42, 40, 30,   24,   22,    20,   17.5F,
                                      15, 12, 6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm90Intra2_21[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr float kSm100Intra2_25[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19};
constexpr float kSm100Intra2_27[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr float kSm100Inter2_27_3[] = {47.9F, 45, 42, 40, 30,   24,   22,    20,   17.5F,
                                       15,    12, 6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm100Inter2_27_5[] = {48, 45.1F, 42, 40, 30,   24,   22,    20,   17.5F,
                                       15, 12,    6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm100Inter2_27_6[] = {96,    48, 45.1F, 42, 40, 30,   24,   22,    20,
                                       17.5F, 15, 12,    6,  3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm100Intra2_29[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr float kSm100Inter2_29_7[] = {96,    80, 48, 45.1F, 42, 40,   30,   24,    22,   20,
                                       17.5F, 15, 12, 6,     3,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr float kSm100Inter2_30[] = {96, 86,    80, 48, 45.1F, 42, 40,   30,   24,    22,
                                     20, 17.5F, 15, 12, 6,     3,  2.4F, 1.2F, 0.24F, 0.12F};

}  // namespace

std::span<const float> RateSteps(const NcclVersion& version, int sm, bool inter) {
  const auto from = [&](int minor, int patch = 0) {
    return version >= NcclVersion{2, minor, patch};
  };
  if (sm >= 100 && from(25)) {
    if (inter) {
      if (from(30)) return kSm100Inter2_30;
      if (from(29, 7)) return kSm100Inter2_29_7;
      if (from(27, 6)) return kSm100Inter2_27_6;
      if (from(27, 5)) return kSm100Inter2_27_5;
      if (from(27)) return kSm100Inter2_27_3;
      return kSm90Inter2_19_3;
    }
    if (from(29)) return kSm100Intra2_29;
    if (from(27)) return kSm100Intra2_27;
    return kSm100Intra2_25;
  }
  if (sm >= 90 && from(16, 5)) {
    if (inter) {
      if (from(19, 3)) return kSm90Inter2_19_3;
      if (from(18, 3)) return kSm90Inter2_18_3;
      if (from(18)) return kSm90Inter2_18_1;
      return kSm90Inter2_16;
    }
    if (from(21)) return kSm90Intra2_21;
    if (from(19)) return kSm90Intra2_19;
    if (from(18)) return kSm90Intra2_18;
    return kSm90Intra2_16;
  }
  if (inter) {
    if (from(18)) return kInter2_18;
    if (from(15)) return kInter2_15;
    return kInter2_10;
  }
  if (from(18)) return kIntra2_18;
  return kIntra2_10;
}

SearchRules SearchRulesOf(const NcclVersion& version) {
  const auto from = [&](int minor, int patch = 0) {
    return version >= NcclVersion{2, minor, patch};
  };
  using R = SearchRules;
  return {.steps_in_all = from(19)      ? std::int64_t{1} << 19
                          : from(18, 3) ? std::int64_t{5} << 16
                          : from(12)    ? std::int64_t{1} << 18
                                        : std::int64_t{3} << 19,
          .steps_per_attempt = from(12) ? 1 << 14 : 1 << 18,
          .steps_per_tree_attempt = from(12) ? 1 << 14 : 1 << 17,
          .steps_equal_channels = from(12) ? 1 << 8 : 1 << 10,

          .collnet_always = !from(18),
          .collnet_direct = from(22),
          .collnet_direct_id_two = from(22) && !from(23),
          .nvls = from(17),
          .nvls_min_gpus = from(28, 4) ? 2 : 3,
          .nvls_up_to_gpus = from(19),
          .heads_are_capped = from(25),
          .tree_as_wide_as_ring = from(18),
          .split_nvlink_needs_two = from(26),

          .types_from_system = from(25),
          .old_gpus_go_to_sys = from(29),
          .has_c2c = from(26),
          .has_p2c = from(27),
          .has_pxn = from(12),
          .skips_disconnected = from(27),
          .start_by_total = from(18),
          .one_gpu_is_local = from(21),
          .no_hops_is_free = !from(21),

          .nvswitch_neighbours = from(21)   ? R::Neighbours::kOnly
                                 : from(19) ? R::Neighbours::kFirst
                                            : R::Neighbours::kIgnored,
          .first_gpu = from(27)   ? R::FirstGpu::kLocal
                       : from(19) ? R::FirstGpu::kRotated
                                  : R::FirstGpu::kIdleFirst,
          .fewest_hops_above_zero = from(23),
          .index_order_on_nvswitch = !from(19),
          .replay_or_search = from(27),

          .nets = from(18)   ? R::Nets::kPreferred
                  : from(12) ? R::Nets::kByDistance
                             : R::Nets::kBestRate,
          .nets_rotate = from(19),
          .nets_of_index_below_max = from(21),
          .hosts_share_nets = from(27),
          .net_counts_channels = !from(18, 3),
          .cross = from(23)   ? R::Cross::kRingAlternating
                   : from(20) ? R::Cross::kAlternating
                              : R::Cross::kFree,
          .cross_costs = from(18) && !from(20),
          .cross_only_some = from(18),
          .cross_any_value = !from(19),
          .cross_is_two = from(23),
          .cross_retry_limited = from(23),
          .nvls_heads = from(23)   ? R::NvlsHeads::kNoDuplicate
                        : from(22) ? R::NvlsHeads::kNoDuplicateKeepsRate
                        : from(19) ? R::NvlsHeads::kFirstNet
                                   : R::NvlsHeads::kWithoutNet,
          .nvls_by_inter_rate = from(19),

          .power_only_nvlink_to_cpu = from(19),

          .amd_keeps_equal_channels = from(19),
          .simpler_tree = from(18)   ? R::SimplerTree::kBalancedFirst
                          : from(12) ? R::SimplerTree::kSplitAfterCross
                                     : R::SimplerTree::kSplitBeforeCross,
          .net_type_floor = from(12) ? PathType::kPxn : PathType::kPxb,
          .duplicates_before_raising = from(19),
          .duplication_knows_sm = from(18),
          .raises_rings = from(19),
          .fallback_has_nets = from(29),
          .fallback_for_nvls = !from(18),

          .writes_nvls_heads_only = from(21),
          .writes_hex_devices = from(21),
          .writes_latency = from(12),
          .writes_ranks = from(30)};
}

}  // namespace windtunnel::nccl

#include "collectives/nccl/pat.h"

#include <bit>

#include "collectives/nccl/channels.h"

namespace windtunnel::nccl {
namespace {

// Blocks are named by their offset s, 0 < s < n, from the own rank; a block travels to the partner
// at the distance of the lowest bit of s. Blocks whose offsets differ by multiples of `stride` form
// an aggregate of `width`; `per_post` of them share one post.
class PostCounter {
 public:
  PostCounter(int rank_count, std::int64_t block_bytes, std::int64_t chunk_bytes, int depth)
      : ranks_(rank_count), levels_(Log2Ceil(static_cast<std::uint64_t>(rank_count))) {
    stride_ = 1 << levels_;
    while (chunk_bytes / (std::max<std::int64_t>(1, block_bytes) * width_) >= 2 &&
           width_ < ranks_ / 2)
      Widen();
    per_post_ = width_;
    for (int d = depth; d > 1 && width_ < ranks_ / 2; d /= 2) Widen();
    sends_.assign(static_cast<std::size_t>(levels_), 0);
    receives_.assign(static_cast<std::size_t>(levels_), 0);
  }

  void ReduceScatter() {
    for (int residue = stride_ - 1; residue >= 1; --residue) {
      if (residue % 2 == 1) SendOwn(residue);
      if (residue > 1) AddAndPass(residue);
    }
    for (int scale = 1; scale < width_; scale *= 2) {
      AddNeighbour(scale);
      AddAggregate(scale);
    }
    Post(receives_, 0, true);  // The own block, from the nearest partner.
  }
  void AllGather() {
    for (int scale = width_ / 2; scale >= 1; scale /= 2) SpreadAggregate(scale);
    for (int residue = 1; residue < stride_; ++residue) {
      PassOn(residue);
      if (residue % 2 == 1) ReceiveLast(residue);
    }
  }
  std::int64_t sends(int level) const { return sends_[static_cast<std::size_t>(level)]; }
  std::int64_t receives(int level) const { return receives_[static_cast<std::size_t>(level)]; }
  int levels() const { return levels_; }

 private:
  using Counts = std::vector<std::int64_t>;
  void Widen() {
    width_ *= 2;
    stride_ /= 2;
  }
  static int Level(int offset) { return std::countr_zero(static_cast<unsigned>(offset)); }
  static void Post(Counts& counts, int level, bool post) {
    if (post) ++counts[static_cast<std::size_t>(level)];
  }
  // Order of an aggregate's blocks: bits of the index mirrored, largest offset first.
  static int FarFirst(int index, int count) {
    int out = 0;
    for (int low = 1, high = count / 2; low < count; low <<= 1, high >>= 1)
      if ((index & low) == 0) out += high;
    return out;
  }
  bool EndsPost(int index, int count) const {
    return index % per_post_ == per_post_ - 1 || index == count - 1;
  }

  void SendOwn(int residue) {
    for (int a = 0; a < width_; ++a)
      if (FarFirst(a, width_) * stride_ + residue < ranks_) Post(sends_, 0, EndsPost(a, width_));
  }
  void AddAndPass(int residue) {
    for (int a = 0; a < width_; ++a) {
      const int offset = FarFirst(a, width_) * stride_ + residue;
      const int level = Level(offset);
      const int next = offset - (1 << level);
      const bool arrives = offset < ranks_;
      if (!arrives && next >= ranks_) continue;
      if (arrives) Post(receives_, level, EndsPost(a, width_));
      if (next != 0) Post(sends_, Level(next), level == 0 && EndsPost(a, width_));
    }
  }
  void AddNeighbour(int scale) {
    const int count = width_ / (2 * scale);
    for (int a = 0; a < count; ++a) {
      const int offset = (2 * FarFirst(a, count) + 1) * scale * stride_;
      if (offset >= ranks_) continue;
      if (offset + 1 < ranks_)
        Post(receives_, 0, (a + width_ - width_ / scale + 1) % per_post_ == 0);
      Post(sends_, Level(offset), EndsPost(a, count));
    }
  }
  void AddAggregate(int scale) {
    const int count = width_ / (2 * scale);
    for (int a = 0; a < count; ++a) {
      const int offset = (2 * FarFirst(a, count) + 1) * scale * stride_;
      if (offset < ranks_) Post(receives_, Level(offset), EndsPost(a, count));
    }
  }

  void SpreadAggregate(int scale) {
    const int count = width_ / (2 * scale);
    for (int a = 0; a < count; ++a) {
      const int offset = (2 * a + 1) * scale * stride_;
      if (offset >= ranks_) continue;
      const bool last = (2 * (a + 1) + 1) * scale * stride_ >= ranks_;
      Post(sends_, Level(offset), a % per_post_ == per_post_ - 1 || last);
    }
  }
  void PassOn(int residue) {
    for (int a = 0; a < width_; ++a) {
      const int offset = a * stride_ + residue;
      const int level = Level(offset);
      const int source = offset - (1 << level);
      const bool full = a % per_post_ == per_post_ - 1;
      const bool goes = offset < ranks_;
      if (!goes && !(source < ranks_ && level == 0)) continue;
      if (goes) Post(sends_, level, full || (a + 1) * stride_ + residue >= ranks_);
      if (source == 0 || level != 0) continue;
      const int from = Level(source);
      bool post = full || (a + 1) * stride_ + residue - 1 >= ranks_;
      if (residue == 1) {  // The source is the head of its aggregate.
        const int place = (a * stride_) >> (from + 1);
        post = place % per_post_ == per_post_ - 1 || (((place + 1) * 2 + 1) << from) >= ranks_;
      }
      Post(receives_, from, post);
    }
  }
  void ReceiveLast(int residue) {
    for (int a = 0; a < width_; ++a) {
      if (a * stride_ + residue >= ranks_) continue;
      Post(receives_, 0, a % per_post_ == per_post_ - 1 || (a + 1) * stride_ + residue >= ranks_);
    }
  }

  const int ranks_;
  const int levels_;
  int width_ = 1;
  int stride_ = 1;
  int per_post_ = 1;
  Counts sends_;
  Counts receives_;
};

}  // namespace

std::vector<PatPartner> PatPartners(bool reduce_scatter, int rank, int rank_count,
                                    std::int64_t block_bytes, std::int64_t chunk_bytes, int depth) {
  PostCounter posts(rank_count, block_bytes, chunk_bytes, depth);
  if (reduce_scatter) {
    posts.ReduceScatter();
  } else {
    posts.AllGather();
  }
  const std::int64_t rounds =
      std::max<std::int64_t>(1, (block_bytes + chunk_bytes - 1) / chunk_bytes);
  std::vector<PatPartner> out;
  for (int level = 0; level < posts.levels(); ++level) {
    const int up = (rank + (1 << level)) % rank_count;
    const int down = (rank - (1 << level) + rank_count) % rank_count;
    if (posts.sends(level) > 0)
      out.push_back({reduce_scatter ? up : down, true, posts.sends(level) * rounds});
    if (posts.receives(level) > 0)
      out.push_back({reduce_scatter ? down : up, false, posts.receives(level) * rounds});
  }
  return out;
}

}  // namespace windtunnel::nccl

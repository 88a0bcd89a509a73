#pragma once
// Numbers keys in the order in which they are first seen: 0, 1, 2, ...

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace windtunnel {

/// A hash of a few words, good in all its bits.
constexpr std::uint64_t MixHash(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ hash >> 32) * 0x94d049bb133111ebULL;
  return hash ^ hash >> 29;
}

/// As MixHash, but keys that differ in the last three bits of `neighbour` only have places side by
/// side: who goes from neighbour to neighbour stays in one or two cache lines. Their upper halves
/// differ.
constexpr std::uint64_t NearHash(std::uint64_t hash, std::uint64_t neighbour) {
  const std::uint64_t last = neighbour & 7;
  return ((MixHash(hash, neighbour >> 3) & ~std::uint64_t{7}) | last) ^ last << 32;
}

/// A hash table by linear probing that holds numbers: 16 bytes beside each key, no nodes, no
/// removal. `Hash` gives 64 good bits (MixHash, NearHash); it and `Equal` are empty. `Keys` holds
/// the keys by number.
template <class Key, class Hash, class Equal = std::equal_to<Key>, class Keys = std::vector<Key>>
class NumberTable {
 public:
  /// Range: fewer than 2^32 - 1 keys.
  std::size_t size() const { return keys_.size(); }
  decltype(auto) key(std::uint32_t number) const { return keys_[number]; }
  /// The number of `key`, and whether it is new.
  std::pair<std::uint32_t, bool> NumberOf(const Key& key) {
    if (2 * keys_.size() >= places_.size()) Grow();
    const std::uint64_t hash = Hash()(key);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    const std::size_t mask = places_.size() - 1;
    for (std::size_t at = static_cast<std::size_t>(hash) & mask;; at = (at + 1) & mask) {
      Place& place = places_[at];
      if (place.number == kNobody) {
        place = {static_cast<std::uint32_t>(keys_.size()), tag};
        keys_.push_back(key);
        return {place.number, true};
      }
      if (place.tag == tag && Equal()(keys_[place.number], key)) return {place.number, false};
    }
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  struct Place {
    std::uint32_t number = kNobody;
    std::uint32_t tag = 0;  // Upper half of the hash: most other keys are told apart by it.
  };
  void Grow() {
    places_.assign(std::max<std::size_t>(16, 2 * places_.size()), Place{});
    const std::size_t mask = places_.size() - 1;
    for (std::uint32_t number = 0; number < keys_.size(); ++number) {
      const std::uint64_t hash = Hash()(keys_[number]);
      std::size_t at = static_cast<std::size_t>(hash) & mask;
      while (places_[at].number != kNobody) at = (at + 1) & mask;
      places_[at] = {number, static_cast<std::uint32_t>(hash >> 32)};
    }
  }
  Keys keys_;
  std::vector<Place> places_;  // A power of two of them, at most half of them taken.
};

}  // namespace windtunnel

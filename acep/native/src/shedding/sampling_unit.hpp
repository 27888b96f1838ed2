// Sampling units: consecutive windows of one partition, which are sampled, admitted or skipped together. A hash of the
// key draws them and sets where they begin, so they are the same in every run and not aligned with days or hours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/texts.hpp"
#include "session/partitions.hpp"

namespace acep {

// Return a hash that is the same in every run, unlike text codes; `keep`: store that of a text for later calls.
inline uint64_t word_hash(const Texts& texts, int64_t word, bool text, bool keep) {
    return text && texts.known(word) ? texts.hash(word, keep) : static_cast<uint64_t>(word) + 1;
}

// Return the hash of a partition's key; `key_texts` has a bit for each part of it that is a text.
inline uint64_t key_hash(const Partitions& partitions, const Texts& texts, uint32_t partition, uint32_t key_texts,
                         bool keep) {
    const int64_t* key = partitions.key(partition);
    uint64_t hash = 0;
    for (size_t k = 0; k < partitions.width(); ++k) {
        hash = mixed(hash + word_hash(texts, key[k], k < 32 && (key_texts >> k & 1) != 0, keep));
    }
    return hash;
}

// A sampling unit.
struct SamplingUnitAt {
    int64_t begin;  // the least integer if the unit begins before it
    uint64_t draw;  // a random number below 2^32
};

// Return the unit that contains `now`, for the hash of a partition's key. Negative `length`: there is only one unit.
inline SamplingUnitAt unit_at(uint64_t key, int64_t length, int64_t now) {
    constexpr int64_t first = std::numeric_limits<int64_t>::min();
    if (length < 0) return {first, mixed(key) >> 32};
    const auto offset = static_cast<int64_t>(mixed(key + golden_step) % static_cast<uint64_t>(length));
    const int64_t rest = now % length + (now % length < 0 ? length : 0);
    const int64_t block = (now - rest % length) / length - (rest < offset ? 1 : 0);
    int64_t begin;
    if (__builtin_sub_overflow(now, rest - offset + (rest < offset ? length : 0), &begin)) begin = first;
    return {begin, mixed(key + static_cast<uint64_t>(block) * golden_step) >> 32};
}

}  // namespace acep

// A unit: some windows of one partition in a row, that are spared, let in or passed over together. Which, and where they
// begin, is told by a hash of the partition's key, so that it is the same in every run and in no step with days or hours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/texts.hpp"
#include "session/partitions.hpp"

namespace acep {

constexpr uint64_t golden_step = 0x9E3779B97F4A7C15u;

// The same in every run, as codes are not; `keep`: a text's may be asked for again.
inline uint64_t word_hash(const Texts& texts, int64_t word, bool text, bool keep) {
    return text && texts.known(word) ? texts.hash(word, keep) : static_cast<uint64_t>(word) + 1;
}

// Of a partition's key; `key_texts` has a bit for each part of it that is a text.
inline uint64_t key_hash(const Partitions& partitions, const Texts& texts, uint32_t partition, uint32_t key_texts, bool keep) {
    const int64_t* key = partitions.key(partition);
    uint64_t hash = 0;
    for (size_t k = 0; k < partitions.width(); ++k) {
        hash = mixed(hash + word_hash(texts, key[k], k < 32 && (key_texts >> k & 1) != 0, keep));
    }
    return hash;
}

struct SamplingUnitAt {
    int64_t begin;  // the least number where that is before all time
    uint64_t draw;  // of 2^32
};

// The unit of `length` (negative: there is but one) in which `now` is, of the partition with this hash.
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

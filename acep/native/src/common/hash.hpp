// Hashes of words that are the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acep {

constexpr uint64_t golden_step = 0x9E3779B97F4A7C15u;

// Return a well-mixed hash of a word; different words have different hashes.
inline uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// Hash function of containers whose keys are arrays of words.
struct WordsHash {
    size_t operator()(const auto& words) const {
        uint64_t hash = words.size();
        for (const auto word : words) hash = mixed(hash + static_cast<uint64_t>(word) + golden_step);
        return hash;
    }
};

}  // namespace acep

// The mark of a partial match under a budget: the data that shedding needs besides its registers, in one word.
#pragma once

#include <cstdint>

namespace acep {

// The facts that shedding keeps of a partial match, in its last slot.
struct Mark {
    // Values in place of a trajectory number: the partial match is not logged; it is to be logged without a parent.
    static constexpr uint32_t unlogged = 0xFFFFFFFFu, fresh = 0xFFFFFFFEu;
    static constexpr uint8_t most_chance = 63;
    static constexpr int64_t decided_bit = int64_t{1} << 62;

    uint32_t trajectory = unlogged;
    uint16_t birth = 0;  // number of partial matches made in its list before it, modulo 2^16
    uint8_t feature = 128;  // 128 plus the buckets that its registers add
    uint8_t chance = 0;  // a random number, 0 .. most_chance
    bool decided = false;  // it was admitted before it was made
    bool deferred = false;  // `feature` is not computed yet

    // Return the mark as a word.
    int64_t word() const {
        return static_cast<int64_t>(uint64_t{trajectory} | uint64_t{birth} << 32 | uint64_t{feature} << 48 |
                                    uint64_t{chance} << 56 | uint64_t{decided} << 62 | uint64_t{deferred} << 63);
    }
    // Return the mark of a word that `word` returned.
    static Mark of(int64_t word) {
        const auto w = static_cast<uint64_t>(word);
        return {static_cast<uint32_t>(w),
                static_cast<uint16_t>(w >> 32),
                static_cast<uint8_t>(w >> 48),
                static_cast<uint8_t>(w >> 56 & 63),
                (w >> 62 & 1) != 0,
                (w >> 63) != 0};
    }
    // Return whether the partial match has a trajectory in the log.
    bool logged() const { return trajectory < fresh; }
};

}  // namespace acep

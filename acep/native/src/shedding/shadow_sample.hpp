// The shadow sample: the sampling units whose partial matches are followed without shedding, to learn from them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace acep {

// The current unit of a partition. `blind` is the last start that was not fully followed.
struct ShadowUnit {
    int64_t begin = std::numeric_limits<int64_t>::min(), blind = std::numeric_limits<int64_t>::min();
    int64_t share = 0;  // how many of 2^32 units are sampled; 0: this one is not
    int64_t losses = 0;
    int64_t again = 0;  // if a partition is one unit: how many keys had its number before
};

struct ShadowSample {
    static constexpr int64_t windows = 8;  // of one partition in a sampling unit
    static constexpr int64_t most_losses = 128;  // events with losses, after which a unit is given up
    // Touches held back for the shadow sample: a share of the budget, and of the most that may be carried over. The
    // share is smaller in proportion if fewer than one unit in 512 is sampled.
    static constexpr double held_share = 1.0 / 32, held_most = 1.0 / 64, held_for = 8388608;  // of 2^32 units
    static constexpr double untouched = 1.0 / 4;  // share of the reserve for bursts that it must leave
    // The random draw of the unit that was looked up last.
    struct Drawn {
        int64_t begin = 0, end = 0;
        uint64_t draw = 0;
    };

    bool any = false;  // there has been a shadow sample
    bool from_start = false;  // since the first event
    std::vector<ShadowUnit> units;  // by partition
    std::vector<Drawn> drawn;  // by partition, if memory is not bounded
    double held = 0;  // touches held back for it
    int64_t entered = 0;  // touches spent when work on it last began

    // Return whether a partition's unit had too many losses to be followed further.
    bool hopeless(uint32_t partition) const {
        return partition < units.size() && units[partition].losses >= most_losses;
    }
    // Return whether some start at `since` or later was not fully followed.
    bool blind_since(uint32_t partition, int64_t since) const {
        return partition < units.size() && units[partition].blind >= since;
    }
};

}  // namespace acep

// The bytes that the node engine may hold and does hold, if they are bounded (nodes_memory.cpp).
#pragma once

#include <cstdint>
#include <vector>

namespace acep {

// Bytes of stored partial matches: the most that their content may take, and the capacity of their containers.
struct HeldBytes {
    int64_t charged = 0, reserved = 0;

    HeldBytes& operator+=(const HeldBytes& more) { return *this = {charged + more.charged, reserved + more.reserved}; }
    HeldBytes operator-(const HeldBytes& less) const { return {charged - less.charged, reserved - less.reserved}; }
};

struct MemoryBudget {
    int64_t most = -1;  // bytes; -1: no bound
    int64_t pool = 0;  // part of it for stored partial matches
    int64_t most_made = 0;  // part of it for the partial matches of one event before they are stored
    int64_t next = 0;  // charged bytes above which partial matches are given up
    HeldBytes held;  // for all partitions
    int64_t coming = 0, coming_made = 0;  // bytes that the current event takes once stored, and before
    int64_t most_given = 0;  // bytes of matches in a stretch of events; beyond it a match point gives one match
    int64_t given = 0, given_since = 0;  // bytes in the current stretch, and its number
    int64_t given_peak = 0;  // the most bytes in a stretch
    size_t given_before = 0;  // matches before those of the current event
    int64_t peak = 0;
    bool gave_up = false;  // partial matches were given up since this was last asked
    std::vector<float> scores, best;  // of all partial matches, to choose among them
};

}  // namespace acep

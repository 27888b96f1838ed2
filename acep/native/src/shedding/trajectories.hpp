// The log of trajectories since it was last taken: how partial matches ended, and which match points they led to.
#pragma once

#include <cstdint>
#include <vector>

namespace acep {

// The reason why a trajectory ended; an expired one ends with its window.
enum class EndReason : int64_t { expired = 0, shed = 1, taken = 2, cleared = 3, merged_into = 4 };

// The log, as rows of several kinds.
struct Trajectories {
    struct Made {  // `age`: number of partial matches made in the parent's list after the parent
        int64_t trajectory, parent, partition, state, error, start, made, feature, age;
    };
    // The end of a trajectory.
    struct Ended {
        int64_t trajectory, when, how, touches, age;  // touches: for merged_into, the other trajectory instead
    };
    // A match that a trajectory led to.
    struct Found {
        int64_t parent, partition, when, error, age;
    };
    // A match point in a shadow-sampled unit, found by the partial matches that were kept (`kept`) or by all (`whole`);
    // or the time from which data are missing (`lost`); or the end of the unit (`ended`). `begin`: of the unit;
    // `blind`: last start that was not fully followed; `share`: how many of 2^32 units are sampled.
    struct Point {
        // The kind of a point.
        enum Kind : int64_t { ended = -2, lost = -1, whole = 0, kept = 1 };
        int64_t partition, begin, when, ts, kind, blind, share;
    };
    std::vector<Made> made;
    std::vector<Ended> ended;
    std::vector<Found> found;
    std::vector<double> values;  // of the terms of each trajectory in `made`, `most_terms` each; NaN: none
    std::vector<Point> points;
};

}  // namespace acep

// When the node engine searches for equal partial matches, to unite them (nodes_merging.cpp).
#pragma once

#include <cstdint>
#include <vector>

namespace acep {

// How many of the last new partial matches of a state met an equal one of an earlier event, and were united with it.
struct Likes {
    bool possible = false;
    bool often = false;  // 15 in 16 of the last trial met one: a list that is not sorted pays off
    uint32_t seen = 0, met = 0, joined = 0;
    uint32_t rest = 0;  // partial matches still to be made before the search starts again
};

// How many of the last new partial matches of a state were united; if hardly any, the next `rest` count as separate.
struct Unions {
    uint32_t seen = 0, joined = 0, rest = 0;
};

struct Merging {
    // Of so many partial matches one in 8 must be united; else the search pauses while 16 times as many are made.
    static constexpr uint32_t trial = 256;

    bool unites = false;  // equal ones are united; else each has one sequence of events
    std::vector<Likes> likes;  // by state
    std::vector<Unions> unions;  // by state, under a budget
};

}  // namespace acep

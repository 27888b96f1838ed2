// The states of the matches that are open, followed over the rows of a stream as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ordered/interval_search.hpp"
#include "ordered/polling.hpp"

namespace acep {

// The first and the last row with which a match in some state has begun, and their places for the window. `none` as the
// number of the first: the state is not reached.
struct OpenStarts {
    static constexpr int64_t none = std::numeric_limits<int64_t>::max();

    int64_t first = none, first_place = 0;
    int64_t last = -1, last_place = 0;
};

// Follow the states of each partition over its rows, from `starts`, which has n states for each partition. `numbers`:
// those of the rows, which rise in a partition. Set `ended` where a match ends, and return how many rows were met.
size_t follow_intervals(const IntervalInput& input, const int64_t* numbers, size_t n_states,
                        std::vector<OpenStarts>& starts, std::vector<uint8_t>& ended, Polling& polling);

}  // namespace acep

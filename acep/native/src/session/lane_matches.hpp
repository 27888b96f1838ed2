// The matches of lanes as those of one session: in output order, put together by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/order.hpp"
#include "common/output.hpp"

namespace acep {

// The matches of some lanes, of which at least one has a match. They bind events, so that none of them are points
// alone. The outputs must not change while it lives.
class LaneMatches {
public:
    // Calls task(0) to task(count - 1), each once, on several threads.
    using Runner = std::function<void(size_t count, const std::function<void(size_t)>& task)>;

    // `ranks`: of each variable, by its name.
    LaneMatches(std::vector<Output*> lanes, std::span<const uint16_t> ranks);

    // Return all matches in output order; equal ones are in the order of their lanes. `parts`: how many ranges of the
    // result are made side by side.
    Output together(size_t parts, const Runner& run);

private:
    // The matches of a lane in output order.
    struct Sorted {
        Output* output;
        Trails trails;
        std::vector<int64_t> places;  // empty: as they are
        // Return the row in the output of the match at a place of the order.
        size_t row(size_t at) const { return places.empty() ? at : static_cast<size_t>(places[at]); }
        // Return how many events a match of the lane binds.
        size_t length(size_t row) const { return static_cast<size_t>(trails.offsets[row + 1] - trails.offsets[row]); }
        // Return the number of matches that end before `end`.
        size_t before(int64_t end) const;
    };
    // A range of the result: that of each lane, and where it begins in the result.
    struct Part {
        std::vector<size_t> from, to;
        size_t match = 0, event = 0;
        size_t events = 0;  // how many it has
    };

    // Cut the result at ends of matches, so that all matches with one end are in one part.
    std::vector<Part> cut(size_t parts) const;
    // Count the events of a part's matches.
    void count_events(Part& part) const;
    // Write the matches of a part to the result.
    void write(const Part& part, Output& result) const;
    // Copy a match of a lane to a place in the result: match number `match`, whose events begin at `event`.
    void copy(const Output& from, size_t row, Output& result, size_t match, size_t event) const;

    std::vector<Sorted> lanes_;
    size_t width_, values_;  // key columns and RETURN values of a match
};

}  // namespace acep

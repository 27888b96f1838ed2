// Whether a match that waits for rows still waits once some have come, where conditions read rows and neighbours alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"
#include "ordered/reachable.hpp"

namespace acep {

// Where the preferred way of an open match stands: before a position of its partition, at a state.
struct OpenPlace {
    size_t position;
    uint32_t state;
};

// Walks the preferred way on from where it stood. All ways preferred to it had failed for good, so the match is open as
// long as this way leads to the open row; once it does not, the match is decided, or must be searched for anew.
class OpenWalk {
public:
    static constexpr int64_t decided = -1;

    // `open_label`: that of the open row.
    OpenWalk(const PatternGraph& graph, uint16_t open_label) : graph_(graph), reachable_(graph), label_(open_label) {}

    // Return the state at which the way waits before the open row of a partition, or `decided`. The rows of the
    // partition are the `rows` ones from `begin` on; local[label]: a byte a row.
    int64_t walk(OpenPlace from, std::span<const uint8_t* const> local, size_t begin, size_t rows, size_t memory,
                 Polling& polling);

private:
    const PatternGraph& graph_;
    Reachable reachable_;
    uint16_t label_;
};

}  // namespace acep

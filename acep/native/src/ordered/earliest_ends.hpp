// Where the shortest match of each start ends: a start whose window is over before that is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ordered/pattern_graph.hpp"
#include "ordered/polling.hpp"

namespace acep {

// For each position of a partition, the first position at which a match from there may end.
class EarliestEnds {
public:
    // Compute the ends of the partition of `rows` rows from `begin` on, as the conditions of single rows decide alone.
    // local[label]: a byte a row, or nullptr: any row. If they need more than `memory` bytes, all are taken to be
    // early.
    void start(const PatternGraph& graph, std::span<const uint8_t* const> local, size_t begin, size_t rows,
               size_t memory, Polling& polling);
    // Return whether a match from a position on may end at another position, or before it.
    bool before(size_t start, size_t end) const { return ends_.empty() || ends_[start] <= end; }
    // Return the bytes on the heap.
    size_t bytes() const { return (ends_.capacity() + now_.capacity() + next_.capacity()) * sizeof(size_t); }

private:
    // Compute now_ from next_.
    void step(const PatternGraph& graph, std::span<const uint8_t* const> local, size_t begin, size_t position,
              size_t rows);

    std::vector<size_t> ends_;  // by position of a start
    std::vector<size_t> now_, next_;  // by state, before a position and the one after it
};

}  // namespace acep

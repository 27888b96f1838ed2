// Lanes: sessions with the same plans, each of which runs some of the partitions, so that threads can run them at once.
// A lane is given the rows of its partitions as a batch of its own, and the times of all rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/arena.hpp"
#include "common/columns.hpp"
#include "common/pooled.hpp"

namespace acep {

// Which of how many lanes a session is.
struct Lane {
    uint32_t number = 0;
    uint32_t lanes = 1;
};

// The rows of a batch of the stream that a session takes: all, or those of its lane as another batch.
struct TakenRows {
    const Batch& batch;  // the rows taken
    std::span<const int64_t> ts;  // of all rows of the stream's batch
    const uint32_t* places = nullptr;  // of the rows taken among all, rising; nullptr: all are taken

    // Return the number of the first row taken from row `at` of the stream's batch on.
    size_t first_from(size_t at) const;
    // Return the row of the stream's batch that row `row` of those taken is.
    size_t place(size_t row) const { return places == nullptr ? row : places[row]; }
};

// The rows of a lane, copied from a batch of the stream, which must outlive them.
class LaneRows {
public:
    // Take the rows of a batch with these numbers, rising.
    LaneRows(const Batch& all, Numbers<uint32_t> places);

    // Return the rows, to be pushed; this must outlive them.
    TakenRows taken() const { return {batch_, {all_.ts, all_.size}, places_.data()}; }

private:
    // Return the words of the rows taken from a column.
    Numbers<int64_t> words(const int64_t* values) const;

    const Batch& all_;
    Numbers<uint32_t> places_;
    Batch batch_;
    std::vector<Numbers<int64_t>> words_;  // that the batch refers to
    std::vector<Numbers<uint8_t>> valid_;
};

}  // namespace acep

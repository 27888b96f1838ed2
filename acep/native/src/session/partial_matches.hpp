// The live partial matches of an engine as columns, for a user to look at. To list them changes no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chains/sequences.hpp"
#include "common/arena.hpp"
#include "common/output.hpp"
#include "session/partitions.hpp"

namespace acep {

// Which partial matches a user wants to see.
struct ListingRequest {
    size_t most;  // so many rows; of more, those that were extended last
    bool apart;  // a row for each sequence of bound events; else one for each partial match that the engine keeps
    std::vector<uint32_t> states;  // only those in these states; empty: in any
    int64_t clock;  // the latest time of the stream
    int64_t arrived;  // events of the stream so far

    // Return whether partial matches in a state are asked for.
    bool wants(uint32_t state) const;
    // Return the position of the last event of a partition, in which the next one has position `next`; `strict`: of the
    // last event of the stream.
    int64_t last_position(bool strict, int64_t next) const { return (strict ? arrived : next) - 1; }
};

// A partial match that an engine keeps: a chain of bound events.
struct ListedMatch {
    uint32_t partition;
    uint32_t state;
    uint32_t cell;
    int64_t error;  // scaled
    int64_t start;  // the latest one of its sequences, a time or a position
    int64_t low;  // sequences that began before it are over
    int64_t utility;  // utility bucket; -1: there is none
};

// Columns with a row for each partial match, or for each of its sequences. In `matches`, the end is the time of the
// last bound event. Of a partial match with several sequences, it has one that began last.
struct ListedColumns {
    Output matches;
    Numbers<int64_t> states, utility;
    Numbers<int64_t> sequences;  // -1: more than 2^63 - 1
    int64_t total = 0;  // rows, if all were listed; -1: more than 2^63 - 1
};

// Collects the partial matches of an engine, and writes the latest ones as columns.
class PartialMatchList {
public:
    // The arena and the partitions must not change as long as this object is used.
    PartialMatchList(const ListingRequest& request, const Arena& arena, const Partitions& partitions)
        : request_(request), arena_(arena), partitions_(partitions), sequences_(arena) {}

    // Add a partial match, of which some sequence began at `low` or later. Each reached cell has one `low`.
    void add(const ListedMatch& match);
    // Return the rows of the partial matches that were extended last.
    ListedColumns columns();

private:
    // Return how many events after the oldest one that is kept the last event of a partial match came.
    uint32_t recency(const ListedMatch& match) const { return arena_.cells[match.cell].event - arena_.events.tail(); }
    // Of partial matches, drop all but the latest ones, which are then sorted, the latest one first.
    void keep_latest();
    // Add rows for a partial match, at most as many as are asked for.
    void write(ListedColumns& columns, const ListedMatch& match);

    const ListingRequest& request_;
    const Arena& arena_;
    const Partitions& partitions_;
    Sequences sequences_;
    std::vector<ListedMatch> matches_;
    int64_t total_ = 0;
};

}  // namespace acep

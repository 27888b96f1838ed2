// A hash index over the partial matches of a list, by registers that arcs compare with an event for equality.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "common/arena.hpp"
#include "common/hash.hpp"

namespace acep {

// Rows in buckets by the hash of their registers, each with a link to the one before it in its bucket. A row with an
// unbound register, for which the comparison is dropped, is in a chain of its own. Rows are added in their order, so
// that a walk meets later ones first, and can end at the head of the list.
class RegisterIndex {
public:
    uint32_t indexed = 0;  // it covers the rows before it; 0 once rows have moved
    std::vector<uint32_t> slots;  // of the registers
    uint64_t credit = 0;   // rows compared one by one instead of through the index, and not yet repaid

    // Forget all rows, as they have moved; `reserve` must be called before others are added.
    void moved() {
        indexed = 0;
        credit = 0;
    }

    // Make room for the rows of a list with this capacity.
    void reserve(uint32_t capacity) {
        const size_t buckets = std::bit_ceil(size_t{capacity} * 2);
        if (heads_.size() == buckets && before_.size() == capacity && indexed != 0) return;
        heads_.assign(buckets, NIL);
        before_.assign(capacity, NIL);
        unbound_ = NIL;
        indexed = 0;
    }
    // Return the number of the bucket of a hash.
    size_t bucket(uint64_t hash) const { return hash & (heads_.size() - 1); }
    // Add a row, later than those so far, with the hash of its registers.
    void add(uint32_t row, uint64_t hash) { push(heads_[bucket(hash)], row); }
    // Add a row, later than those so far, that has an unbound register.
    void add_unbound(uint32_t row) { push(unbound_, row); }

    // Call visit(row) for the rows from `head` on in a bucket, or for those with an unbound register.
    void each(size_t bucket, uint32_t head, auto&& visit) const { walk(heads_[bucket], head, visit); }
    void each_unbound(uint32_t head, auto&& visit) const { walk(unbound_, head, visit); }

    // Return its bytes on the heap.
    int64_t bytes() const { return heap_bytes(heads_, before_, slots); }

private:
    // Put a row before the last one of a bucket.
    void push(uint32_t& last, uint32_t row) {
        before_[row] = last;
        last = row;
    }
    // Call visit(row) for the rows from `head` on that are linked from a row.
    void walk(uint32_t row, uint32_t head, auto&& visit) const {
        for (; row != NIL && row >= head; row = before_[row]) visit(row);
    }

    std::vector<uint32_t> heads_;   // by bucket: its last row
    std::vector<uint32_t> before_;  // by row: the one before it in its bucket
    uint32_t unbound_ = NIL;
};

}  // namespace acep

// The equalities of an arc between registers and attributes of the event: the key by which partial matches are found.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "expression/vm.hpp"
#include "plan/tables.hpp"

namespace acep {

// Rows of a list, in memory that is kept for the next ones.
class RowBuffer {
public:
    // Forget all rows, and make room for some.
    void begin(size_t most) {
        if (rows_.size() < most) rows_.resize(std::bit_ceil(most));
        size_ = 0;
    }
    void add(uint32_t row) { rows_[size_++] = row; }
    // Put a row after the others, but count it only if it is `wanted`.
    void add_if(uint32_t row, bool wanted) {
        rows_[size_] = row;
        size_ += wanted ? 1 : 0;
    }
    size_t size() const { return size_; }
    uint32_t* begin() { return rows_.data(); }
    uint32_t* end() { return rows_.data() + size_; }
    void release() { std::vector<uint32_t>().swap(rows_); }
    int64_t bytes() const { return heap_bytes(rows_); }

private:
    std::vector<uint32_t> rows_;
    size_t size_ = 0;
};

struct RegisterKey {
    struct Part {
        uint32_t slot;
        uint32_t column;  // of the event
        bool doubles;
        bool operator==(const Part&) const = default;
    };
    std::vector<Part> parts;  // none: the arc has no such equality
    uint32_t number = 0;      // of the index among those of the state
    std::vector<Check> leaving, binding;  // what the arc asks beyond the key

    bool empty() const { return parts.empty(); }
};

// Return the key of an arc; the number of its index is not set.
RegisterKey register_key(const Arc& arc, const std::vector<BlockProgram>& programs);

// Return a word that is equal for equal values: the two zeros are equal.
inline int64_t canonical(int64_t word, bool doubles) { return doubles && std::bit_cast<double>(word) == 0 ? 0 : word; }

// Return whether two words are equal as values.
inline bool equal_words(int64_t a, int64_t b, bool doubles) {
    return doubles ? std::bit_cast<double>(a) == std::bit_cast<double>(b) : a == b;
}

}  // namespace acep

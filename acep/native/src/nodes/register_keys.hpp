// The equalities and bands of an arc between registers and attributes of the event: the key by which partial matches
// are found.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "expression/vm.hpp"
#include "plan/tables.hpp"

namespace acep {

// Rows of a list, in memory that is kept for the next ones.
class RowBuffer {
public:
    // Forget all rows, and make room for `most` of them.
    void reset(size_t most) {
        if (rows_.size() < most) rows_.resize(std::bit_ceil(most));
        size_ = 0;
    }
    // Put a row after the others.
    void add(uint32_t row) { rows_[size_++] = row; }
    // Put a row after the others, but count it only if it is `wanted`.
    void add_if(uint32_t row, bool wanted) {
        rows_[size_] = row;
        size_ += wanted ? 1 : 0;
    }
    // Return the number of rows that count.
    size_t size() const { return size_; }
    // Return the begin of their range.
    uint32_t* begin() { return rows_.data(); }
    // Return its end.
    uint32_t* end() { return rows_.data() + size_; }
    // Free the memory.
    void release() { std::vector<uint32_t>().swap(rows_); }
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(rows_); }

private:
    std::vector<uint32_t> rows_;
    size_t size_ = 0;  // rows that count
};

// Return a word that is equal for equal values: the two zeros are equal.
inline int64_t canonical(int64_t word, bool doubles) { return doubles && std::bit_cast<double>(word) == 0 ? 0 : word; }

// Return whether two words are equal as values.
inline bool equal_words(int64_t a, int64_t b, bool doubles) {
    return doubles ? std::bit_cast<double>(a) == std::bit_cast<double>(b) : a == b;
}

// The comparisons of an arc between registers and the event, and its other conditions.
struct RegisterKey {
    // The cells of a band that a value may be in.
    struct Cells {
        int64_t first, last;
        // Return whether they are too many to look into each: numbers are so great that the margin for rounding is
        // wide.
        bool is_wide() const { return last - first > 8; }
    };
    // A register and an attribute of the event that must be equal, or (`width` > 0) differ by no more than a width.
    struct Part {
        uint32_t slot;
        uint32_t column;  // of the event
        bool doubles;
        double width = 0;
        bool operator==(const Part&) const = default;

        // Return whether it is a band.
        bool is_band() const { return width > 0; }
        // Return the number of a word.
        double number(int64_t word) const { return doubles ? std::bit_cast<double>(word) : static_cast<double>(word); }
        // Return a word for which equal values have the same one: of a band, the number of a cell of twice the width.
        int64_t cell(int64_t word) const { return is_band() ? cell_of(number(word)) : canonical(word, doubles); }
        // Return the words that the other side may have.
        Cells cells(int64_t word) const {
            if (!is_band()) return {canonical(word, doubles), canonical(word, doubles)};
            const auto [low, high] = range(number(word));
            return {cell_of(low), cell_of(high)};
        }
        // Return whether the condition may hold; for an equality, whether it does.
        bool fits(int64_t word, int64_t other) const {
            if (!is_band()) return equal_words(word, other, doubles);
            const auto [low, high] = range(number(word));
            const double x = number(other);
            return x >= low && x <= high;
        }
        // Return the numbers that are near enough, with a margin for rounding.
        std::pair<double, double> range(double x) const {
            const double margin = (std::abs(x) + width) * 4e-15;
            return {x - width - margin, x + width + margin};
        }

    private:
        // Return the number of the cell of a band that a number is in.
        int64_t cell_of(double x) const {
            constexpr double most = 1e15;
            const double cell = std::floor(x / (2 * width));
            return cell > -most ? static_cast<int64_t>(std::min(cell, most)) : static_cast<int64_t>(-most);
        }
    };
    static constexpr size_t most_near = 2;  // parts of a key that are bands
    std::vector<Part> parts;  // none: the arc has no such equality
    uint32_t number = 0;  // of the index among those of the state
    std::vector<Check> leaving, binding;  // what the arc asks beyond the key

    // Return whether the arc compares nothing so.
    bool empty() const { return parts.empty(); }
};

// Return the key of an arc; the number of its index is not set.
RegisterKey register_key(const Arc& arc, const std::vector<BlockProgram>& programs);

// The equalities of an arc: its states, and the slots of the registers.
struct ArcKey {
    uint32_t source, target;
    std::vector<uint32_t> slots;
};
// Return what the arcs from all states but the first one compare, without those that compare nothing.
std::vector<ArcKey> arc_keys(const Tables& tables, const std::vector<BlockProgram>& programs);

}  // namespace acep

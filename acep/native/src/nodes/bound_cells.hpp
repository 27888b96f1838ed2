// The cells that bind one event, each found again by the cell before it, the variable and the history of the arc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/arena.hpp"
#include "common/hash.hpp"

namespace acep {

class BoundCells {
public:
    // Return the cell that was added with these values; NIL: there is none.
    uint32_t find(uint32_t past, uint16_t var, uint32_t history) const {
        if (table_.empty()) {
            for (const BoundCell& bound : cells_) {
                if (bound.has(past, var, history)) return bound.cell;
            }
            return NIL;
        }
        for (size_t place = first_place(past, var, history); table_[place] != 0; place = next_place(place)) {
            const BoundCell& bound = cells_[table_[place] - 1];
            if (bound.has(past, var, history)) return bound.cell;
        }
        return NIL;
    }

    // Add a cell that `find` does not find.
    void add(uint32_t past, uint16_t var, uint32_t history, uint32_t cell) {
        cells_.push_back({past, cell, history, var});
        if (cells_.size() <= most_linear) return;
        if (2 * cells_.size() > table_.size()) {
            table_.assign(std::bit_ceil(4 * cells_.size()), 0);
            for (size_t i = 0; i < cells_.size(); ++i) insert(i);
        } else {
            insert(cells_.size() - 1);
        }
    }

    // Forget all cells.
    void clear() {
        cells_.clear();
        table_.clear();
    }

private:
    static constexpr size_t most_linear = 16;  // cells that are compared one by one

    // A cell, and what it was added with.
    struct BoundCell {
        bool has(uint32_t p, uint16_t v, uint32_t h) const { return past == p && var == v && history == h; }

        uint32_t past, cell, history;
        uint16_t var;
    };

    // Return the place at which values are looked for first.
    size_t first_place(uint32_t past, uint16_t var, uint32_t history) const {
        return mixed((uint64_t{history} << 16 | var) * golden_step + past) & (table_.size() - 1);
    }
    // Return the place after another one.
    size_t next_place(size_t place) const { return (place + 1) & (table_.size() - 1); }

    // Put the i-th cell into the table, which has room.
    void insert(size_t i) {
        size_t place = first_place(cells_[i].past, cells_[i].var, cells_[i].history);
        while (table_[place] != 0) place = next_place(place);
        table_[place] = static_cast<uint32_t>(i + 1);
    }

    std::vector<BoundCell> cells_;  // in the order in which they were added
    std::vector<uint32_t> table_;  // by hash: 1 + the number of a cell; a power of two, or empty while there are few
};

}  // namespace acep

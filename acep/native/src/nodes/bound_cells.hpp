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
            for (const Cell& one : cells_) {
                if (one.is(past, var, history)) return one.cell;
            }
            return NIL;
        }
        for (size_t at = first(past, var, history); table_[at] != 0; at = next(at)) {
            const Cell& one = cells_[table_[at] - 1];
            if (one.is(past, var, history)) return one.cell;
        }
        return NIL;
    }

    // Add a cell that `find` does not find.
    void add(uint32_t past, uint16_t var, uint32_t history, uint32_t cell) {
        cells_.push_back({past, cell, history, var});
        if (cells_.size() <= few) return;
        if (2 * cells_.size() > table_.size()) {
            table_.assign(std::bit_ceil(4 * cells_.size()), 0);
            for (size_t i = 0; i < cells_.size(); ++i) enter(i);
        } else {
            enter(cells_.size() - 1);
        }
    }

    void clear() {
        cells_.clear();
        table_.clear();
    }

private:
    static constexpr size_t few = 16;  // cells that are looked at one by one

    struct Cell {
        bool is(uint32_t p, uint16_t v, uint32_t h) const { return past == p && var == v && history == h; }

        uint32_t past, cell, history;
        uint16_t var;
    };

    size_t first(uint32_t past, uint16_t var, uint32_t history) const {
        return mixed((uint64_t{history} << 16 | var) * golden_step + past) & (table_.size() - 1);
    }
    size_t next(size_t at) const { return (at + 1) & (table_.size() - 1); }

    void enter(size_t i) {
        size_t at = first(cells_[i].past, cells_[i].var, cells_[i].history);
        while (table_[at] != 0) at = next(at);
        table_[at] = static_cast<uint32_t>(i + 1);
    }

    std::vector<Cell> cells_;
    std::vector<uint32_t> table_;  // by hash: 1 + the number of a cell; a power of two, or empty while there are few
};

}  // namespace acep

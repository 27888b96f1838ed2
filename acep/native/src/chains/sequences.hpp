// Sequences of bound events of a chain, read without any change to the arena: their number, and each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/arena.hpp"

namespace acep {

// The sequences of events of chains: how many there are, and a walk over them.
class Sequences {
public:
    static constexpr int64_t too_many = std::numeric_limits<int64_t>::max();

    // The arena must not change as long as this object is used.
    explicit Sequences(const Arena& arena) : arena_(arena) {}

    // Return the number of sequences of a chain that began at `low` or later, at most `too_many`. All calls that reach
    // a cell must have the same `low`.
    int64_t count(uint32_t chain, int64_t low);
    // Call emit(cells) for the sequences of a chain that began at `low` or later, with their cells from the first event
    // on, until it returns false.
    template <class Emit>
    void each(uint32_t chain, int64_t low, Emit&& emit);

private:
    // A place where the walk continues.
    struct Step {
        uint32_t cell;
        size_t depth;  // number of events bound after it
    };

    const Arena& arena_;
    std::unordered_map<uint32_t, int64_t> counts_;  // by cell: the number of sequences of the chain that it heads
    std::vector<uint32_t> counting_;
    std::vector<Step> stack_;
    std::vector<const Cell*> later_;  // cells of the events bound after the current one, the last event first
    std::vector<const Cell*> cells_;
};

template <class Emit>
void Sequences::each(uint32_t chain, int64_t low, Emit&& emit) {
    stack_.assign(1, {chain, 0});
    while (!stack_.empty()) {
        const Step step = stack_.back();
        stack_.pop_back();
        const Cell& c = arena_.cells[step.cell];
        later_.resize(step.depth);
        if (c.next != NIL && c.below >= low) stack_.push_back({c.next, step.depth});
        if (c.latest < low) continue;
        if (c.var == UNION) {
            stack_.push_back({c.past, step.depth});
            continue;
        }
        later_.push_back(&c);
        if (c.past != NIL) {
            stack_.push_back({c.past, later_.size()});
            continue;
        }
        cells_.assign(later_.rbegin(), later_.rend());
        if (!emit(std::span<const Cell* const>(cells_))) return;
    }
}

}  // namespace acep

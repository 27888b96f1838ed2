// The cost of an event to a partial match by an arc: its missing events, and under contiguity the surplus ones of the
// gap.
#pragma once

#include <algorithm>
#include <cstdint>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "plan/tables.hpp"

namespace acep {

// Return the error that an arc adds if `between` events lie between the last bound event and its own; more than the
// error budget if it cannot bind it.
inline int64_t gap_cost(const Tables& tables, const Arc& arc, int64_t between) {
    if (!tables.contiguous()) return arc.weight;
    int64_t least = tables.budget + 1;
    for (const Gap& gap : arc.gaps) {
        if (between <= gap.letters) {
            least = std::min(least, gap.weight);
        } else if (tables.surplus > 0 && between - gap.letters <= tables.budget / tables.surplus) {
            least = std::min(least, gap.weight + tables.surplus * (between - gap.letters));
        }
    }
    return least;
}

// Return the error that an arc adds to a node of a list if it binds an event.
inline int64_t error_growth(const Tables& tables, const Arc& arc, NodeList& list, uint32_t row, const Event& event) {
    return tables.contiguous() ? gap_cost(tables, arc, event.position - list.positions()[row] - 1) : arc.weight;
}

// Return whether contiguity leaves a node of a state an arc, where `between` events come after its last one.
inline bool has_arc_left(const Tables& tables, const State& state, NodeList& list, uint32_t row, int64_t between) {
    return std::ranges::any_of(state.arcs, [&](const Arc& arc) {
        return list.errors()[row] + gap_cost(tables, arc, between) + tables.states[arc.target].rest <= tables.budget;
    });
}

}  // namespace acep

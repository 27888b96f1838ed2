// The nodes that the current event makes, by state, before they are stored.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "plan/tables.hpp"

namespace acep {

// The new nodes of one state, before they are united and get cells. Their `cells` are those of the nodes that they
// extend.
struct NewNodes {
    NodeList nodes;
    std::vector<const Arc*> arcs;  // by row: the arc that made it; nullptr once its cell is bound in a group
    std::vector<uint32_t> next_equal;  // by row: the next one of a group of united nodes, or NIL
    std::vector<uint8_t> is_gone;  // by row
    bool has_gone = false;  // some are gone: united with others, or not to go on

    // Forget all nodes.
    void clear() {
        nodes.clear();
        arcs.clear();
    }
    // Return the bytes of its buffers.
    int64_t bytes() const { return nodes.bytes() + heap_bytes(arcs, next_equal, is_gone); }
};

}  // namespace acep

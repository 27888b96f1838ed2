// The making of nodes: what an arc makes of nodes that take an event, by state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chains/node_list.hpp"
#include "nodes/memory_guard.hpp"
#include "nodes/new_nodes.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/register_writer.hpp"
#include "plan/tables.hpp"

namespace acep {

class NodeMaker {
public:
    // All must outlive it.
    NodeMaker(const Tables& tables, RegisterWriter& writer, const NodeShedding& shedding, MemoryGuard& memory,
              Work& work)
        : tables_(tables),
          writer_(writer),
          shedding_(shedding),
          memory_(memory),
          work_(work),
          made_(tables.states.size()) {}

    // Make a node from each of some rows of a list, whose error grows by `growth`; under a budget, from one row.
    // `early`: the node was admitted before (NodeShedding::admits_early).
    void make(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, const Event& event, int64_t growth,
              bool early);
    // Return the states with new nodes, in the order in which they got them.
    const std::vector<uint32_t>& states() const { return states_; }
    // Return the new nodes of a state.
    NewNodes& new_nodes(uint32_t state) { return made_[state]; }
    // Forget that states have new nodes, once these are cleared.
    void forget_states() { states_.clear(); }

    // Go on with as many states as the tables have now.
    void add_states() { made_.resize(tables_.states.size()); }
    // Free the buffers.
    void release() {
        for (NewNodes& new_nodes : made_) new_nodes = NewNodes{};
    }
    // Return the bytes of its buffers.
    int64_t bytes() const {
        int64_t total = 0;
        for (const NewNodes& new_nodes : made_) total += new_nodes.bytes();
        return total;
    }

private:
    // Set the hidden slots of a new node, which are those of shedding.
    void write_hidden(const Arc& arc, NodeList& list, std::span<const uint32_t> rows, int64_t now, NodeList& to,
                      uint32_t first, bool early) const;

    const Tables& tables_;
    RegisterWriter& writer_;
    const NodeShedding& shedding_;
    MemoryGuard& memory_;
    Work& work_;
    std::vector<NewNodes> made_;  // by state
    std::vector<uint32_t> states_;
};

}  // namespace acep

// The storage of new nodes for later events.
#pragma once

#include <cstdint>

#include "common/arena.hpp"
#include "nodes/event_binder.hpp"
#include "nodes/new_nodes.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "plan/tables.hpp"

namespace acep {

class NodeStorer {
public:
    // All must outlive it.
    NodeStorer(const Tables& tables, const Arena& arena, EventBinder& binder, NodeMerging& merging, NodeStore& store,
               const NodeShedding& shedding)
        : tables_(tables), arena_(arena), binder_(binder), merging_(merging), store_(store), shedding_(shedding) {}

    // Add the new nodes of a state that are not gone to its list, with their cells. Under a budget only those that are
    // admitted; one that equals a node of an earlier event is united with it. The new nodes may be others after that.
    void store(NewNodes& new_nodes, PartitionNodes& part, uint32_t partition, uint32_t state, const Event& event,
               int64_t low);

private:
    // Make the new nodes of a state its list, if that is empty and has as much room; return whether this was done.
    bool take_over(NewNodes& new_nodes, NodeList& list, const Event& event);
    // Unite a new node with row `into` of its list, which has the chain of both now.
    void join_stored(NodeList& list, uint32_t into, NewNodes& new_nodes, uint32_t row, uint32_t state,
                     uint32_t partition, Chain chain, int64_t now);
    // Add a new node with its chain.
    void add(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, uint32_t partition, Chain chain,
             int64_t low);

    const Tables& tables_;
    const Arena& arena_;
    EventBinder& binder_;
    NodeMerging& merging_;
    NodeStore& store_;
    const NodeShedding& shedding_;
};

}  // namespace acep

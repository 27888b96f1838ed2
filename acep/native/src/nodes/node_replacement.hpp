// Contiguity without an error budget: an event replaces all nodes of a partition by the new ones, which then are the
// lists of their states at once. This needs no search for equal nodes, as long as no two nodes that take the event have
// the same sequence of events, that is the same cell.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chains/node_list.hpp"
#include "common/arena.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/event_binder.hpp"
#include "nodes/event_pattern_arcs.hpp"
#include "nodes/node_extender.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_store.hpp"
#include "nodes/register_writer.hpp"
#include "plan/tables.hpp"

namespace acep {

class NodeReplacement {
public:
    // All must outlive it.
    NodeReplacement(const Tables& tables, Arena& arena, CheckEvaluator& evaluator, RegisterWriter& writer,
                    NodeMaker& maker, EventBinder& binder, NodeStore& store, const NodeShedding& shedding, Work& work)
        : tables_(tables),
          arena_(arena),
          evaluator_(evaluator),
          writer_(writer),
          maker_(maker),
          binder_(binder),
          store_(store),
          shedding_(shedding),
          work_(work) {}

    // Return whether no two nodes that take an event have the same cell, and no two new ones of a state will have it.
    bool may_replace(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event) const;
    // Make the nodes that follow those of a partition, or begin, by the arcs that the event may take. Those that go on
    // have their cells; those that only end a run are new nodes of the maker. `low`: the earliest start.
    void make_all(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event, int64_t low);
    // Make the new nodes the lists of their states.
    void exchange(PartitionNodes& part);

private:
    // Make the nodes that follow those of a list, or begin, by the arcs of a state.
    void make_from(const StateArcs& arcs, NodeList& list, const Event& event);
    // Make the nodes of one arc.
    void make_by(const Arc& arc, const ReplacingArc& how, NodeList& list, uint32_t slots, const Event& event);
    // Make a node from each of some rows, with the cell that binds the event. Arcs of one group share the cell of a
    // row.
    void make_bound(const Arc& arc, uint32_t cell_group, NodeList& list, std::span<const uint32_t> rows,
                    const Event& event);

    const Tables& tables_;
    Arena& arena_;
    CheckEvaluator& evaluator_;
    RegisterWriter& writer_;
    NodeMaker& maker_;
    EventBinder& binder_;
    NodeStore& store_;
    const NodeShedding& shedding_;
    Work& work_;
    NodeList start_ = start_node();
    bool shares_cells_ = false;  // the current event has bound one cell for nodes of different states
    std::vector<uint32_t> states_;  // with nodes made by the current event that go on
    std::vector<uint32_t> all_rows_;  // 0, 1, and so on
    std::vector<uint32_t> group_cells_;  // by cell group and row: the cell that binds the current event
};

}  // namespace acep

// Match points without matches: of the new nodes those are stored that no other dominates (nodes_dominance.hpp). No
// sequences of events are kept; a complete run is a match point with its error.
#pragma once

#include <cstdint>
#include <memory>

#include "common/output.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/match_emitter.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "nodes/nodes_dominance.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"

namespace acep {

class PointStorer {
public:
    // All must outlive it. `dominance` is not null when `store` is called.
    PointStorer(const Tables& tables, const Partitions& partitions, EngineOutput engine, CheckEvaluator& evaluator,
                NodeMaker& maker, NodeMerging& merging, NodeStore& store, NodeShedding& shedding,
                const std::unique_ptr<Dominance>& dominance)
        : tables_(tables),
          partitions_(partitions),
          output_(engine.output),
          work_(engine.work),
          arrived_(engine.arrived),
          evaluator_(evaluator),
          maker_(maker),
          merging_(merging),
          store_(store),
          shedding_(shedding),
          dominance_(dominance) {}

    // Write the match point of an event, if new nodes end a run, and store the new nodes of all states, which are
    // cleared.
    void store(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low);

private:
    // Return the least error of the runs that new nodes end; more than the error budget if there are none.
    int64_t find_best(uint32_t partition, const Event& event);
    // Write the match point of an event.
    void write_point(PartitionNodes& part, uint32_t partition, const Event& event, int64_t error);
    // Store the new nodes of a state. `compared`: how many nodes the event has compared so far.
    void store_state(NodeList& list, NewNodes& new_nodes, uint32_t partition, uint32_t state, const Event& event,
                     int64_t low, int64_t& compared);
    // Reduce the credit of comparisons to what the budget allows; return false if the node cannot be stored.
    bool limit_credit(const Event& event, int64_t compared);
    // Return the row of a list that a new node takes, perhaps that of a removed one; NIL if it is dominated.
    uint32_t find_row(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, const Event& event,
                      int64_t low, int64_t& compared);

    const Tables& tables_;
    const Partitions& partitions_;
    Output& output_;
    Work& work_;
    const int64_t& arrived_;
    CheckEvaluator& evaluator_;
    NodeMaker& maker_;
    NodeMerging& merging_;
    NodeStore& store_;
    NodeShedding& shedding_;
    const std::unique_ptr<Dominance>& dominance_;
};

}  // namespace acep

// The arcs that an event may take, by event pattern and state.
#pragma once

#include <cstdint>
#include <vector>

#include "nodes/candidates.hpp"
#include "nodes/register_keys.hpp"
#include "nodes/register_writer.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

// How an arc makes nodes that replace all others (node_replacement.hpp).
struct ReplacingArc {
    bool is_free;  // the event that follows the last one costs nothing
    bool has_checks;  // it has predicates on registers
    bool only_ends;  // it completes a run, and the new node is not kept
    uint32_t cell_group;  // the number of the arcs that bind the event to the same cells; NIL: it is the only one
};

// The arcs from one state that events of a pattern may take.
struct StateArcs {
    uint32_t state = 0;
    std::vector<const Arc*> arcs;
    std::vector<RegisterKey> keys;  // by arc
    bool blocks = false;  // for some arc, a node that can take the event must not ignore it
    std::vector<ReplacingArc> replacing;  // by arc
    uint32_t cell_groups = 0;  // of the arcs that replace
    bool distinct = true;  // new nodes with the same cell are in different states
};

class EventPatternArcs {
public:
    // All must outlive it. Assignments of the arcs in `tables` become simpler ones where they can (RegisterWriter).
    EventPatternArcs(Tables& tables, const EventClassifier& classifier, CandidateFinder& finder, RegisterWriter& writer)
        : tables_(tables), classifier_(classifier), finder_(finder), writer_(writer) {}

    // Return the arcs that events of a pattern may take, in the order of their states; states without one are left out.
    // They stay valid until `forget`.
    const std::vector<StateArcs>& arcs_of(uint32_t pattern) {
        while (arcs_.size() <= pattern) arcs_.push_back(find_arcs(static_cast<uint32_t>(arcs_.size())));
        return arcs_[pattern];
    }
    // Return whether events of a pattern may begin partial matches.
    bool begins(uint32_t pattern) {
        const std::vector<StateArcs>& all = arcs_of(pattern);
        return !all.empty() && all[0].state == 0;
    }
    // Forget all patterns, as arcs or patterns have changed.
    void forget() { arcs_.clear(); }

private:
    // Find the arcs that events of a pattern may take.
    std::vector<StateArcs> find_arcs(uint32_t pattern);
    // Find how the arcs of a state make nodes that replace all others.
    void find_replacing(StateArcs& arcs) const;

    Tables& tables_;
    const EventClassifier& classifier_;
    CandidateFinder& finder_;
    RegisterWriter& writer_;
    std::vector<std::vector<StateArcs>> arcs_;  // by pattern
};

}  // namespace acep

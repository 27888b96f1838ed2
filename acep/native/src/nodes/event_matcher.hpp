// The processing of an event as in acep/reference/engine.py: first all transitions of existing nodes, then new
// beginnings; only then are the new nodes stored for later events.
#pragma once

#include <cstdint>

#include "nodes/event_pattern_arcs.hpp"
#include "nodes/match_emitter.hpp"
#include "nodes/node_ender.hpp"
#include "nodes/node_extender.hpp"
#include "nodes/node_parts.hpp"
#include "nodes/node_replacement.hpp"
#include "nodes/node_storer.hpp"
#include "nodes/point_storer.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/partitions.hpp"

namespace acep {

class EventMatcher {
public:
    // All must outlive it.
    EventMatcher(const Tables& tables, const EventClassifier& classifier, const Partitions& partitions,
                 EngineOutput engine, NodeParts& parts);

    // Process an event of a partition.
    void process(PartitionNodes& part, uint32_t partition, const Event& event);
    // Return whether matches of the current event are yet to be written.
    bool is_unfinished() const { return emitter_.is_unfinished(); }
    // Write more of them, while there is room.
    void resume(uint32_t partition, const Event& event) { emitter_.resume(partition, event, oldest_start(event)); }

    // Return whether an event may replace all nodes of its partition.
    bool replaces() const { return replaces_; }
    // Adapt to tables or to a completion that are others.
    void take_over_tables();
    // Return whether contiguity leaves a node an arc after the events up to a position.
    bool may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const {
        return ender_.may_go_on(list, row, state, position);
    }
    // Add the ids of events in matches that are yet to be written.
    void used_ids(std::vector<int64_t>& ids) const { emitter_.used_ids(ids); }

    // Free the buffers.
    void release() {
        extender_.release();
        ender_.release();
    }
    // Return the bytes of its buffers.
    int64_t bytes() const { return extender_.bytes() + ender_.bytes(); }

private:
    // Begin an event: note it as the last one of its partition.
    void begin_event(PartitionNodes& part, const Event& event);
    // Begin an event under a budget, and begin or stop to shed.
    void begin_shedding_event(uint32_t partition, const Event& event);
    // Let an event extend the nodes of a partition, and begin new ones.
    void match(PartitionNodes& part, uint32_t partition, const Event& event);
    // Make the new nodes of an event, end those that it rules out, and store the new ones. `begins`: some may begin.
    void step(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low, bool begins);
    // Complete the runs that new nodes end, and store the others.
    void store_new(PartitionNodes& part, uint32_t partition, const Event& event, int64_t low);
    // Remove the nodes that began before a match point, as they would end in the same bundle.
    void clear_before(PartitionNodes& part, const Event& event, int64_t low);
    // Process an event in the lists of the shadow sample. Nothing is dropped or output there, and other lists are not
    // affected: matches that only these lists find are lost by shedding. `begins`: nodes may begin.
    void match_shadow(PartitionNodes& part, uint32_t partition, const Event& event, bool begins);
    // Return whether an event is admitted, by its classes and its place in the window of its partition.
    bool admits(const PartitionNodes& part, const Event& event);
    // Return whether the budget allows an event to replace all nodes of a partition.
    bool may_replace_all(PartitionNodes& part, uint32_t partition, const Event& event);
    // Replace all nodes of a partition by those that an event makes. Return false if they have to be compared.
    bool replace(PartitionNodes& part, uint32_t partition, const Event& event);
    // Return the earliest start that a match with the event may have.
    int64_t oldest_start(const Event& event) const;

    const Tables& tables_;
    const EngineOutput engine_;
    NodeParts& parts_;
    NodeShedding& shedding_;
    NodeStore& store_;
    NodeMaker& maker_;
    NodeExtender extender_;
    NodeEnder ender_;
    NodeReplacement replacement_;
    MatchEmitter emitter_;
    NodeStorer storer_;
    PointStorer point_storer_;
    bool replaces_ = false;  // each event replaces all nodes, if they need not be compared
};

}  // namespace acep

// The end of partial matches that an event rules out: under contiguity those that do not take it, and those that go
// past a negation that it breaks.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/node_store.hpp"
#include "nodes/shedding_switch.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

class NodeEnder {
public:
    // All must outlive it.
    NodeEnder(const Tables& tables, const EventClassifier& classifier, CheckEvaluator& evaluator, NodeStore& store,
              NodeShedding& shedding, SheddingSwitch& shedding_switch, Work& work)
        : tables_(tables),
          classifier_(classifier),
          evaluator_(evaluator),
          store_(store),
          shedding_(shedding),
          switch_(shedding_switch),
          work_(work) {
        find_ended_states();
    }

    // Find the states in which events may break a negation, again after the tables have changed.
    void find_ended_states();
    // End the nodes of a partition from before an event that it rules out.
    void end(PartitionNodes& part, const Event& event) {
        if (tables_.contiguous()) end_broken_contiguity(part, event);
        if (!ended_states_.empty()) end_broken_negations(part, event);
    }
    // Return whether contiguity leaves a node an arc, after the events up to a position. Events that no arc may bind
    // are not passed to the engine, so they do not end nodes before another event does.
    bool may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const;

    // Free the buffers.
    void release() { std::vector<uint8_t>().swap(passes_); }
    // Return the bytes of its buffers.
    int64_t bytes() const { return heap_bytes(passes_); }

private:
    // Under contiguity, end the nodes whose error budget does not suffice for the event that they did not bind.
    void end_broken_contiguity(PartitionNodes& part, const Event& event);
    // Keep the nodes that an ignorable arc lets wait behind the event; they have taken the event before it.
    void keep_ignoring(NodeList& list, uint32_t state, const Event& event);
    // End the nodes that cannot go on, as the event breaks a negation that all their arcs go past.
    void end_broken_negations(PartitionNodes& part, const Event& event);
    // End the nodes of a list for which the event breaks one negation.
    void end_broken(NodeList& list, uint32_t state, const Ended& ended, const Event& event);

    const Tables& tables_;
    const EventClassifier& classifier_;
    CheckEvaluator& evaluator_;
    NodeStore& store_;
    NodeShedding& shedding_;
    SheddingSwitch& switch_;
    Work& work_;
    std::vector<uint32_t> ended_states_;  // in which events may break a negation
    std::vector<uint8_t> passes_;  // by row of a list: whether checks hold for it
};

}  // namespace acep

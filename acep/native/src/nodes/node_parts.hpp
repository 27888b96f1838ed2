// The parts of a node engine that hold its partial matches, or make them. Each has a state of its own; they are built
// and destroyed together, as they refer to each other.
#pragma once

#include <cstdint>
#include <memory>

#include "common/arena.hpp"
#include "completion/completion.hpp"
#include "nodes/candidates.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/event_binder.hpp"
#include "nodes/event_pattern_arcs.hpp"
#include "nodes/frames.hpp"
#include "nodes/known_future.hpp"
#include "nodes/memory_guard.hpp"
#include "nodes/node_archive.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "nodes/nodes_dominance.hpp"
#include "nodes/register_writer.hpp"
#include "nodes/shedding_switch.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/engine.hpp"
#include "session/partitions.hpp"

namespace acep {

struct NodeParts {
    // All must outlive the parts. `points`: null unless only match points are asked for.
    NodeParts(Tables& tables, EventClassifier& classifier, Partitions& partitions, Work& work,
              std::unique_ptr<Dominance> points);

    // Begin to shed at once if shedding rests.
    void begin_shedding() { shedding_switch.begin_if_resting(store.clock()); }
    // Hold at most `bytes` from `clock` on (memory_guard.hpp), and shed.
    void bound_memory(int64_t bytes, int64_t clock);
    // Go on as without a bound on bytes before an event at time or position `now`, as it is far away again, if nothing
    // else makes nodes be shed.
    void rest_far_from_bound(int64_t now);
    // Set the shedding table. Utilities under the one before are computed first.
    void set_table(SheddingTable table);
    // Return whether it can ask what a batch says of the events after one.
    bool may_know_future() const { return future != nullptr && !memory.is_set(); }
    // Go on with more states, or other arcs, in the tables.
    void take_over_tables();
    // Write or read the state of the parts that comes before the partitions.
    template <class Archive>
    static void first_fields(auto& self, Archive& out);
    // Write or read what comes after them, for an engine that has done so much work.
    static void last_fields(auto& self, auto& out, const Work& work);
    // Shrink all to its content.
    void shrink(const Tables& tables);
    // Return the bytes that all parts hold.
    int64_t bytes() const;

    std::unique_ptr<Dominance> dominance;
    std::unique_ptr<Completion> completion;  // if complete runs are not written directly
    std::unique_ptr<KnownFuture> future;  // if it can tell anything
    Arena arena;
    FrameStore frames;
    NodeShedding shedding;
    NodeStore store;
    NodeArchive archive;
    NodeMerging merging;
    MemoryGuard memory;
    CheckEvaluator evaluator;
    RegisterWriter writer;
    CandidateFinder finder;
    EventPatternArcs pattern_arcs;
    NodeMaker maker;
    EventBinder binder;
    SheddingSwitch shedding_switch;
};

template <class Archive>
void NodeParts::first_fields(auto& self, Archive& out) {
    if (self.shedding.any() != nullptr) {
        bool rests = self.shedding.resting() != nullptr;
        out.words(self.store.clock(), rests);
        out.saw(self.store.clock());
        if constexpr (Archive::reads) {
            if (rests && self.shedding.resting() == nullptr) bad_state("nodes of another kind");
            if (!rests) self.begin_shedding();
        }
        const bool was_distant = MemoryGuard::fields(self.memory, out);
        if constexpr (Archive::reads) {
            if (self.memory.distant_bound() >= 0 && !was_distant) {
                self.bound_memory(self.memory.distant_bound(), self.store.clock());
            }
            self.memory.finish_reading();
        }
        out.within(0, int64_t{1} << 32, self.store.compacted_size(), self.frames.compacted_size());
        out.within(0, most_positions, self.shedding.any()->log.withheld);
        NodeMerging::union_fields(self.merging, out);
    }
    NodeMerging::search_fields(self.merging, out);
    Arena::fields(self.arena, out);
    FrameStore::fields(self.frames, out);
    if constexpr (Archive::reads) self.archive.check_chains(out);
}

void NodeParts::last_fields(auto& self, auto& out, const Work& work) {
    if (self.completion) self.completion->fields(out);
    if (self.dominance) Dominance::fields(*self.dominance, out, work.touches);
    if (self.shedding.any() != nullptr) self.shedding.any()->fields(out);
}

}  // namespace acep

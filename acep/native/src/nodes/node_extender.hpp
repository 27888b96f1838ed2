// How an event extends the partial matches of a state, and begins new ones: which of them an arc evaluates, and which
// of these pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "chains/node_list.hpp"
#include "nodes/candidates.hpp"
#include "nodes/check_evaluator.hpp"
#include "nodes/event_pattern_arcs.hpp"
#include "nodes/known_future.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_merging.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "nodes/nodes_dominance.hpp"
#include "nodes/shedding_switch.hpp"
#include "plan/tables.hpp"

namespace acep {

// Return the nodes of the start state: one without registers.
NodeList start_node();

class NodeExtender {
public:
    // All must outlive it. `future`: null if it can tell nothing; `dominance`: null if nodes have chains of events.
    NodeExtender(const Tables& tables, CheckEvaluator& evaluator, CandidateFinder& finder, NodeMaker& maker,
                 NodeMerging& merging, NodeStore& store, NodeShedding& shedding, SheddingSwitch& shedding_switch,
                 const MemoryGuard& memory, const std::unique_ptr<KnownFuture>& future, const Dominance* dominance,
                 Work& work)
        : tables_(tables),
          evaluator_(evaluator),
          finder_(finder),
          maker_(maker),
          merging_(merging),
          store_(store),
          shedding_(shedding),
          switch_(shedding_switch),
          memory_(memory),
          future_(future),
          dominance_(dominance),
          work_(work) {}

    // Make the nodes that begin with an event.
    void begin(const StateArcs& arcs, const Event& event);
    // Make the nodes that an event makes of those of a state which began at `low` or later; end those that it takes for
    // good, and remove expired ones where they are cheap to find.
    void extend(PartitionNodes& part, const StateArcs& arcs, const Event& event, int64_t low);

    // Free the buffers.
    void release() {
        blocked_rows_.release();
        std::vector<uint8_t>().swap(is_blocked_);
    }
    // Return the bytes of its buffers.
    int64_t bytes() const { return blocked_rows_.bytes() + heap_bytes(is_blocked_); }

private:
    // The nodes of a list that are alive.
    struct LiveNodes {
        int64_t low = NEVER;  // they began then or later
        bool all = false;  // surely all of the list
        bool uniform = false;  // none has errors, and each pays the same for an arc
    };
    // The parameters of an extension by an arc: its list and event, and how.
    struct Step {
        const Arc& arc;
        NodeList& list;
        uint32_t slots;
        const Event& event;
        bool uniform;  // as for LiveNodes
        bool decides;  // the event may take nodes for good
        KnownFuture* future;  // nullptr: nothing is known
    };

    // Make the node that begins with an event by one arc. Return false if the budget forbids further ones.
    bool begin_by(const Arc& arc, const Event& event);
    // Find the nodes of a list that are alive, and remove others where that is cheap.
    LiveNodes find_live(NodeList& list, uint32_t state, const Event& event, int64_t low);
    // Make the nodes that an arc makes of those of a list. Those that it takes for good are in `blocked_rows_`.
    void extend_by(const StateArcs& arcs, size_t number, NodeList& list, const Event& event, const LiveNodes& live);
    // Put the next candidates from `next` on into the block of the evaluator: all of them where they are uniform, else
    // those that can pay for the arc, and those that it may take for good. Return how many.
    size_t fill_block(const Candidates& all, const Step& step, size_t& next);
    // Keep those of the first `count` rows of the block whose new node can be followed, and return their number.
    size_t keep_followed(const Step& step, size_t count);
    // Make nodes from those of the first `count` rows of the block that can pay for the arc, one by one.
    void make_each(const Step& step, size_t count);
    // End the nodes of a list that the event took for good.
    void end_blocked(NodeList& list, uint32_t state, const Event& event);
    // Return whether new nodes of an arc must be, and can be, judged before they are made.
    bool admits_early(const Arc& arc) {
        Shedding* const shed = shedding_.active();
        return shed != nullptr && merging_.is_separate(arc.target) && shed->admission.scores_unmade(arc);
    }
    // Return the known future, if it is that of the event.
    KnownFuture* future_of(const Event& event) const {
        return future_ && future_->knows(event) ? future_.get() : nullptr;
    }

    const Tables& tables_;
    CheckEvaluator& evaluator_;
    CandidateFinder& finder_;
    NodeMaker& maker_;
    NodeMerging& merging_;
    NodeStore& store_;
    NodeShedding& shedding_;
    SheddingSwitch& switch_;
    const MemoryGuard& memory_;
    const std::unique_ptr<KnownFuture>& future_;
    const Dominance* const dominance_;
    Work& work_;
    NodeList start_ = start_node();
    std::vector<uint8_t> is_blocked_;  // by row of a list: whether the event took it for good; all 0 between steps
    RowBuffer blocked_rows_;
};

}  // namespace acep

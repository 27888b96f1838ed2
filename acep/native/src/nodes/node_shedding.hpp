// Shedding in the node engine: the object that sheds, whether it is needed at all under the budget, and the marks of
// new partial matches.
//
// While the budget surely suffices, the object rests: nodes have no hidden slots, and nothing is logged.
// shedding_switch.hpp has the change from one to the other.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "common/texts.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"
#include "session/engine.hpp"
#include "session/partitions.hpp"
#include "shedding/shedding.hpp"

namespace acep {

class NodeShedding {
public:
    // All must outlive it. `touch_cost`: the touches that one evaluation may lead to.
    NodeShedding(const Tables& tables, const EventClassifier& classifier, Work& work, double touch_cost)
        : tables_(tables), classifier_(classifier), work_(work), touch_cost_(touch_cost) {}

    // Make the object that sheds, if there is none; it rests at first.
    void create(const Partitions& partitions, uint64_t seed) {
        if (any() == nullptr) {
            resting_ = std::make_unique<Shedding>(tables_, classifier_.texts, partitions, seed);
        }
    }
    // Return the object that sheds if nodes may have to be dropped; else nullptr.
    Shedding* active() const { return active_.get(); }
    // Return it while the budget suffices; else nullptr.
    Shedding* resting() const { return resting_.get(); }
    // Return it in any case; nullptr: there is no budget.
    Shedding* any() const { return active_ ? active_.get() : resting_.get(); }
    // Return whether removed nodes must be logged.
    bool logs() const { return active_ && active_->log.logs(); }

    // Begin to shed: it was resting, and the caller adds `hidden` slots to all nodes.
    void activate() {
        active_ = std::move(resting_);
        active_->start_watching();
        hidden_ = Shedding::hidden;
        woke_ = true;
        first_mark_ = Mark();
    }
    // Rest again: it was active, and the caller has removed the hidden slots.
    void rest() {
        active_->stop_watching();
        hidden_ = 0;
        resting_ = std::move(active_);
        update_allowance();
    }
    // Return whether nothing but a bound on bytes makes it active.
    bool may_rest() const { return active_ && active_->may_rest() && !active_->budget.limited(); }
    // Let it rest without a budget of touches, too, as there is a bound on memory that is far away (memory_guard.hpp).
    void rest_without_budget() {
        rests_without_budget_ = true;
        if (resting_) update_allowance();
    }
    // Return the number of slots that it adds to each node now.
    uint32_t hidden() const { return hidden_; }
    // Return whether shedding has begun and the policy does not know it yet.
    bool woke() const { return woke_; }
    // Set that; return what it was.
    bool set_woke(bool woke) { return std::exchange(woke_, woke); }

    // Begin an event: what is made from now on counts for it.
    void begin_event() { nodes_before_ = work_.nodes; }
    // Return the nodes made by the current event.
    int64_t nodes_made() const { return work_.nodes - nodes_before_; }
    // While it rests, return whether the budget suffices for `touches` and all they lead to; if not, shedding must
    // start.
    bool suffices(size_t touches) {
        return work_.touches + static_cast<int64_t>(touches) + nodes_made() <= sufficient_ || suffices_still(touches);
    }
    // Update what the budget surely allows, if something else than touches has changed it. It rests.
    void update_if_changed() {
        if (resting_->budget.take_changed()) update_allowance();
    }

    // Return the mark that a new node inherits. Its `birth` is at first the number of nodes made after the parent.
    Mark inherited_mark(const Arc& arc, NodeList& list, uint32_t row) const {
        if (arc.source == 0) return first_mark_;
        Mark mark = Mark::of(list.slot(tables_.states[arc.source].slots - 1)[row]);
        mark.birth = static_cast<uint16_t>(list.births - mark.birth);
        mark.decided = mark.deferred = false;
        return mark;
    }
    // Set the mark of nodes that begin with the current event, where nodes have marks.
    void set_first_mark(Mark mark) { first_mark_ = mark; }
    // Return whether a node reaches the utility threshold, before it is made; if so, `early_mark` is its mark.
    bool admits_early(const Arc& arc, NodeList& list, uint32_t row, const Event& event, int32_t error);
    // Return the mark of the node that was admitted last before it was made.
    Mark early_mark() const { return early_mark_; }
    // Return whether an event is admitted, by its classes and its place in a window that begins at `oldest`.
    bool admits(const Event& event, int64_t oldest);

    // Note that the current event is a match point, which may clear the nodes before it.
    void note_point() {
        active_->log.count_match_point();
        if (active_->clears()) clears_ = true;
    }
    // Return whether the current event clears the nodes before it, and forget it.
    bool take_clears() { return clears_ && std::exchange(clears_, false); }

private:
    // Set `sufficient_`. While nothing else changes, the budget only grows, so this bound stays safe.
    void update_allowance();
    // Do the same as `suffices`, with a bound that is made anew.
    bool suffices_still(size_t touches);

    const Tables& tables_;
    const EventClassifier& classifier_;
    Work& work_;
    const double touch_cost_;
    std::unique_ptr<Shedding> active_;
    std::unique_ptr<Shedding> resting_;
    int64_t nodes_before_ = 0;  // made before the current event
    int64_t sufficient_ = -1;  // the greatest sum of touches and new nodes that the budget surely allows
    bool rests_without_budget_ = false;
    bool woke_ = false;
    uint32_t hidden_ = 0;
    bool clears_ = false;
    Mark first_mark_, early_mark_;
    std::vector<std::vector<uint32_t>> classes_;  // by event pattern: its event classes
};

}  // namespace acep

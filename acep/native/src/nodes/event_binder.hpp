// The cells that bind the current event: one for each past and variable, even if it is in several states.
#pragma once

#include <cstdint>
#include <memory>

#include "common/arena.hpp"
#include "common/columns.hpp"
#include "completion/completion.hpp"
#include "nodes/bound_cells.hpp"
#include "nodes/new_nodes.hpp"
#include "plan/tables.hpp"

namespace acep {

class EventBinder {
public:
    // All must outlive it. `completion`: null, unless it keeps values of bound events.
    EventBinder(const Tables& tables, Arena& arena, const std::unique_ptr<Completion>& completion)
        : tables_(tables), arena_(arena), completion_(completion) {}

    // Begin an event, which is not bound yet.
    void begin_event() { number_ = NIL; }
    // Forget the cells of the current event, before its new nodes are stored.
    void forget_cells() { cells_.clear(); }
    // Return the number of the current event in the ring of bound events; the first call adds it.
    uint32_t bind(const Event& event) {
        if (number_ == NIL) {
            number_ = arena_.events.push({event.ts, event.position, event.id});
            if (completion_) completion_->keep(number_, event);
        }
        return number_;
    }
    // Bind the event after the chain that begins with cell `past`, for new node `row`, and return the chain.
    Chain bind_after(const NewNodes& new_nodes, uint32_t row, uint32_t past, const Event& event);
    // Bind the event for a group of united nodes, and put its cells before `chain`: one for all nodes that crossed the
    // same negations. The arcs of the group become nullptr.
    Chain bind_group(NewNodes& new_nodes, uint32_t first, const Event& event, Chain chain);

private:
    const Tables& tables_;
    Arena& arena_;
    const std::unique_ptr<Completion>& completion_;
    BoundCells cells_;  // of the current event
    uint32_t number_ = NIL;  // of the current event, once bound
};

}  // namespace acep

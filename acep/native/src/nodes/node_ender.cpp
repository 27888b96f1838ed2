// The end of partial matches (nodes/node_ender.hpp).
#include "nodes/node_ender.hpp"

#include "nodes/gap_cost.hpp"

namespace acep {

void NodeEnder::find_ended_states() {
    ended_states_.clear();
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        if (!tables_.states[s].ended.empty()) ended_states_.push_back(s);
    }
}

bool NodeEnder::may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const {
    const int64_t between = position - list.positions()[row];
    if (!tables_.contiguous() || between <= 0) return true;
    const State& from = tables_.states[state];
    return from.ignoring.empty() && has_arc_left(tables_, from, list, row, between);
}

void NodeEnder::end_broken_contiguity(PartitionNodes& part, const Event& event) {
    const int64_t now = tables_.key(event);
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        NodeList& list = part.lists[s];
        if (list.empty()) continue;
        const State& state = tables_.states[s];
        if (!state.ignoring.empty()) {
            keep_ignoring(list, s, event);
        } else if (tables_.budget == 0) {
            store_.drop_all(list, s, now, EndReason::taken);
        } else {
            store_.keep(list, s, now, EndReason::taken, [&](uint32_t i) {
                return has_arc_left(tables_, state, list, i, event.position - list.positions()[i]);
            });
        }
    }
}

void NodeEnder::keep_ignoring(NodeList& list, uint32_t state, const Event& event) {
    const uint32_t slots = tables_.states[state].slots;
    passes_.assign(list.end, 0);
    for (const Ignore& arc : tables_.states[state].ignoring) {
        if (!classifier_.has(event.pattern, arc.event_class) || !arc.lifetime.has(event.ts)) continue;
        evaluator_.visit_passing(arc.checks, list, slots, event, [&](uint32_t row) { passes_[row] = 1; });
    }
    for (uint32_t i = list.head; i < list.end; ++i) {
        if (event.position - list.positions()[i] != 1) passes_[i] = 0;
    }
    store_.keep(list, state, tables_.key(event), EndReason::taken, [&](uint32_t i) { return passes_[i] != 0; });
    for (uint32_t i = list.head; i < list.end; ++i) list.positions()[i] = event.position;
}

void NodeEnder::end_broken_negations(PartitionNodes& part, const Event& event) {
    for (const uint32_t s : ended_states_) {
        NodeList& list = part.lists[s];
        for (const Ended& ended : tables_.states[s].ended) {
            if (list.empty() || !classifier_.has(event.pattern, ended.event_class)) continue;
            if (ended.checks.empty()) {
                store_.drop_all(list, s, tables_.key(event), EndReason::taken);
            } else {
                end_broken(list, s, ended, event);
            }
        }
    }
}

void NodeEnder::end_broken(NodeList& list, uint32_t state, const Ended& ended, const Event& event) {
    const int64_t now = tables_.key(event);
    switch_.begin_if_insufficient(list.size(), now);
    work_.touches += list.size();
    if (Shedding* const shed = shedding_.active()) shed->budget.touched(work_.touches);
    passes_.assign(list.end, 0);
    bool any = false;
    evaluator_.visit_passing(ended.checks, list, tables_.states[state].slots, event, [&](uint32_t row) {
        passes_[row] = 1;
        any = true;
    });
    if (any) store_.keep(list, state, now, EndReason::taken, [&](uint32_t i) { return passes_[i] == 0; });
}

}  // namespace acep

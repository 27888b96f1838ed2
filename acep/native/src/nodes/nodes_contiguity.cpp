// The node engine under contiguity: each event ends the nodes that do not take it.
//
// Without an error budget, an event replaces all nodes by the new ones, which then are the lists of their states at
// once (`replace`). This needs no search for equal nodes, as long as no two nodes that take the event have the same
// sequence of events, that is the same cell.
#include "nodes/nodes.hpp"

namespace acep {

// Under contiguity, remove the nodes whose error budget does not suffice for the event that they did not bind.
void NodeEngine::contiguous_end(PartitionNodes& part, const Event& event) {
    const auto states = static_cast<uint32_t>(part.lists.size());
    for (uint32_t s = 0; s < states; ++s) {
        NodeList& list = part.lists[s];
        if (list.empty()) continue;
        const State& state = tables_.states[s];
        if (!state.ignoring.empty()) {
            ignore(list, s, event);
            continue;
        }
        if (tables_.budget == 0) {
            store_.drop_all(list, s, key(event), EndReason::taken);
            continue;
        }
        store_.keep(list, s, key(event), EndReason::taken, [&](uint32_t i) {
            return has_arc_left(tables_, state, list, i, event.position - list.positions()[i]);
        });
    }
}

// Keep the nodes that an ignorable arc lets wait behind the event; they have taken the event before it.
void NodeEngine::ignore(NodeList& list, uint32_t state, const Event& event) {
    const uint32_t slots = tables_.states[state].slots;
    taken_.assign(list.end, 0);
    for (const Ignore& arc : tables_.states[state].ignoring) {
        if (!classifier_.has(event.pattern, arc.event_class) || !arc.lifetime.has(event.ts)) continue;
        evaluator_.visit_passing(arc.checks, list, slots, event, [&](uint32_t row) { taken_[row] = 1; });
    }
    for (uint32_t i = list.head; i < list.end; ++i) {
        if (event.position - list.positions()[i] != 1) taken_[i] = 0;
    }
    store_.keep(list, state, key(event), EndReason::taken, [&](uint32_t i) { return taken_[i] != 0; });
    for (uint32_t i = list.head; i < list.end; ++i) list.positions()[i] = event.position;
}

// Nodes that replace all others -------------------------------------------------------------------

// Find whether each event replaces all nodes.
void NodeEngine::find_replacing() {
    replaces_ = tables_.contiguous() && tables_.budget == 0 && !merging_.unites() && !tables_.firsts && !dominance_ &&
                !completion_ && std::ranges::all_of(tables_.states, [](const State& s) { return s.ignoring.empty(); });
}

// Return whether no two nodes that take an event have the same cell, and no two new ones of a state will have it.
bool NodeEngine::may_replace(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event) const {
    uint32_t lists = 0;
    for (const StateArcs& turn : all) {
        NodeList& list = part.lists[turn.state];
        if (turn.state != 0 && (list.empty() || event.position - list.positions()[list.head] != 1)) continue;
        if (!turn.distinct) return false;
        if (turn.state == 0) continue;
        if (!list.apart && list.size() != 1) return false;
        ++lists;
    }
    return lists < 2 || !part.shared;
}

// Replace all nodes of a partition by those that an event makes. Return false if they have to be compared.
bool NodeEngine::replace(PartitionNodes& part, uint32_t partition, const Event& event) {
    const std::vector<StateArcs>& all = pattern_arcs_.of(event.pattern);
    if (part.lists.empty()) part.lists.resize(tables_.states.size());
    if (!may_replace(part, all, event)) return false;
    begin_event(part, event);
    shares_ = false;
    const int64_t low = oldest_start(event);
    for (const StateArcs& turn : all) {
        NodeList& list = turn.state == 0 ? nothing_ : part.lists[turn.state];
        if (turn.state != 0) {
            if (list.empty()) continue;
            if (!list.expire(low)) store_.drop_expired(list, turn.state, low, low);
            if (list.empty()) continue;
            list.touched += static_cast<int64_t>(turn.arcs.size());
        }
        replace_by(turn, list, event);
    }
    if (!maker_.states().empty()) finish(part, partition, event, low);
    exchange(part);
    part.shared = shares_;
    if (tells_live_) {
        if (live_.size() <= partition) live_.resize(store_.partitions().size());
        live_[partition] = replaced_.empty() ? 0 : 1;
    }
    replaced_.clear();
    return true;
}

// Make the nodes that follow those of a list, or begin, by the arcs of a turn.
void NodeEngine::replace_by(const StateArcs& turn, NodeList& list, const Event& event) {
    const uint32_t slots = tables_.states[turn.state].slots;
    const bool follows = turn.state == 0 || event.position - list.positions()[list.head] == 1;
    if (turn.cell_groups != 0) cells_of_.assign(size_t{turn.cell_groups} * list.size(), NIL);
    for (size_t k = 0; k < turn.arcs.size(); ++k) {
        const Arc& arc = *turn.arcs[k];
        const ReplacingArc& way = turn.replacing[k];
        if (!arc.lifetime.has(event.ts)) continue;
        work_.touches += list.size();
        if (!follows || !way.is_free) continue;
        for (uint32_t at = list.head; at < list.end;) {
            auto count = std::min<size_t>(list.end - at, block_rows);
            if (!way.has_checks) {
                while (all_rows_.size() < at + count) all_rows_.push_back(static_cast<uint32_t>(all_rows_.size()));
            } else {
                evaluator_.select(at, count);
                if (!arc.leaving.empty()) count = evaluator_.keep_passing(arc.leaving, list, slots, event, count);
                if (!arc.binding.empty()) count = evaluator_.keep_passing(arc.binding, list, slots, event, count);
            }
            const std::span rows((way.has_checks ? evaluator_.rows() : all_rows_.data() + at), count);
            at += static_cast<uint32_t>(block_rows);
            if (count == 0) continue;
            if (way.only_ends) {
                maker_.make(arc, list, rows, event, 0, false);
            } else {
                succeed(arc, way.cell_group, list, rows, event);
            }
        }
    }
}

// Make a node from each of some rows, with the cell that binds the event. Arcs with one number share the cell of a row.
void NodeEngine::succeed(const Arc& arc, uint32_t shared, NodeList& list, std::span<const uint32_t> rows,
                         const Event& event) {
    NodeList& to = maker_.of(arc.target).nodes;
    if (to.empty()) replaced_.push_back(arc.target);
    const uint32_t first = to.extend(tables_.states[arc.target].slots, rows.size());
    writer_.write(arc, list, rows, event, to, first, shedding_.hidden());
    int64_t *starts = to.starts() + first, *positions = to.positions() + first;
    uint32_t* cells = to.cells() + first;
    int32_t* errors = to.errors() + first;
    const int64_t* begun = list.starts();
    const uint32_t* pasts = list.cells();
    uint32_t* known = shared == NIL ? nullptr : cells_of_.data() + size_t{shared} * list.size();
    const uint32_t number = binder_.bind(event);
    const int64_t now = key(event);
    int64_t before = first == 0 ? NEVER : starts[-1];
    for (size_t k = 0; k < rows.size(); ++k) {
        const uint32_t row = rows[k];
        const int64_t start = arc.source == 0 ? now : begun[row];
        uint32_t cell = known == nullptr ? NIL : known[row - list.head];
        if (cell == NIL) {
            cell = arena_.cells.push({event.id, start, NEVER, pasts[row], NIL, number, arc.var, arc.number});
            if (known != nullptr) known[row - list.head] = cell;
        } else {
            shares_ = true;
        }
        starts[k] = start;
        positions[k] = event.position;
        cells[k] = cell;
        errors[k] = 0;
        if (start < before) to.sorted = false;
        before = start;
    }
    work_.nodes += static_cast<int64_t>(rows.size());
}

// Make the new nodes the lists of their states.
void NodeEngine::exchange(PartitionNodes& part) {
    for (NodeList& list : part.lists) {
        if (!list.empty()) list.clear();
    }
    for (const uint32_t state : replaced_) {
        NodeList &nodes = maker_.of(state).nodes, &list = part.lists[state];
        nodes.apart = true;
        if (list.capacity() < nodes.capacity()) {
            list.copy(nodes, tables_.states[state].slots);
            nodes.clear();
        } else {
            list.exchange(nodes);
        }
        nodes.apart = false;
    }
}

}  // namespace acep

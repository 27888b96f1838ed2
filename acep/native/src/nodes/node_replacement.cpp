// Nodes that replace all others (nodes/node_replacement.hpp).
#include "nodes/node_replacement.hpp"

#include <algorithm>

namespace acep {

bool NodeReplacement::may_replace(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event) const {
    uint32_t n_lists = 0;
    for (const StateArcs& arcs : all) {
        NodeList& list = part.lists[arcs.state];
        if (arcs.state != 0 && (list.empty() || event.position - list.positions()[list.head] != 1)) continue;
        if (!arcs.distinct) return false;
        if (arcs.state == 0) continue;
        if (!list.apart && list.size() != 1) return false;
        ++n_lists;
    }
    return n_lists < 2 || !part.shared;
}

void NodeReplacement::make_all(PartitionNodes& part, const std::vector<StateArcs>& all, const Event& event,
                               int64_t low) {
    shares_cells_ = false;
    for (const StateArcs& arcs : all) {
        NodeList& list = arcs.state == 0 ? start_ : part.lists[arcs.state];
        if (arcs.state != 0) {
            if (list.empty()) continue;
            if (!list.expire(low)) store_.drop_expired(list, arcs.state, low, low);
            if (list.empty()) continue;
            list.touched += static_cast<int64_t>(arcs.arcs.size());
        }
        make_from(arcs, list, event);
    }
}

inline void NodeReplacement::make_from(const StateArcs& arcs, NodeList& list, const Event& event) {
    const uint32_t slots = tables_.states[arcs.state].slots;
    const bool follows = arcs.state == 0 || event.position - list.positions()[list.head] == 1;
    if (arcs.cell_groups != 0) group_cells_.assign(size_t{arcs.cell_groups} * list.size(), NIL);
    for (size_t k = 0; k < arcs.arcs.size(); ++k) {
        const Arc& arc = *arcs.arcs[k];
        if (!arc.lifetime.has(event.ts)) continue;
        work_.touches += list.size();
        if (follows && arcs.replacing[k].is_free) make_by(arc, arcs.replacing[k], list, slots, event);
    }
}

inline void NodeReplacement::make_by(const Arc& arc, const ReplacingArc& how, NodeList& list, uint32_t slots,
                                     const Event& event) {
    for (uint32_t first = list.head; first < list.end; first += static_cast<uint32_t>(block_rows)) {
        auto count = std::min<size_t>(list.end - first, block_rows);
        if (!how.has_checks) {
            while (all_rows_.size() < first + count) all_rows_.push_back(static_cast<uint32_t>(all_rows_.size()));
        } else {
            evaluator_.select(first, count);
            if (!arc.leaving.empty()) count = evaluator_.keep_passing(arc.leaving, list, slots, event, count);
            if (!arc.binding.empty()) count = evaluator_.keep_passing(arc.binding, list, slots, event, count);
        }
        if (count == 0) continue;
        const std::span<const uint32_t> rows((how.has_checks ? evaluator_.rows() : all_rows_.data() + first), count);
        if (how.only_ends) {
            maker_.make(arc, list, rows, event, 0, false);
        } else {
            make_bound(arc, how.cell_group, list, rows, event);
        }
    }
}

inline void NodeReplacement::make_bound(const Arc& arc, uint32_t cell_group, NodeList& list,
                                        std::span<const uint32_t> rows, const Event& event) {
    NodeList& to = maker_.new_nodes(arc.target).nodes;
    if (to.empty()) states_.push_back(arc.target);
    const uint32_t first = to.extend(tables_.states[arc.target].slots, rows.size());
    writer_.write(arc, list, rows, event, to, first, shedding_.hidden());
    int64_t *starts = to.starts() + first, *positions = to.positions() + first;
    uint32_t* cells = to.cells() + first;
    int32_t* errors = to.errors() + first;
    const int64_t* old_starts = list.starts();
    const uint32_t* pasts = list.cells();
    uint32_t* group = cell_group == NIL ? nullptr : group_cells_.data() + size_t{cell_group} * list.size();
    const uint32_t number = binder_.bind(event);
    const int64_t now = tables_.key(event);
    int64_t before = first == 0 ? NEVER : starts[-1];
    for (size_t k = 0; k < rows.size(); ++k) {
        const uint32_t row = rows[k];
        const int64_t start = arc.source == 0 ? now : old_starts[row];
        uint32_t cell = group == nullptr ? NIL : group[row - list.head];
        if (cell == NIL) {
            cell = arena_.cells.push({event.id, start, NEVER, pasts[row], NIL, number, arc.var, arc.number});
            if (group != nullptr) group[row - list.head] = cell;
        } else {
            shares_cells_ = true;
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

void NodeReplacement::exchange(PartitionNodes& part) {
    for (NodeList& list : part.lists) {
        if (!list.empty()) list.clear();
    }
    for (const uint32_t state : states_) {
        NodeList &nodes = maker_.new_nodes(state).nodes, &list = part.lists[state];
        nodes.apart = true;
        if (list.capacity() < nodes.capacity()) {
            list.copy(nodes, tables_.states[state].slots);
            nodes.clear();
        } else {
            list.exchange(nodes);
        }
        nodes.apart = false;
    }
    part.shared = shares_cells_;
    states_.clear();
}

}  // namespace acep

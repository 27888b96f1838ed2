// The storage of new nodes (nodes/node_storer.hpp).
#include "nodes/node_storer.hpp"

#include <algorithm>

namespace acep {

inline bool NodeStorer::take_over(NewNodes& new_nodes, NodeList& list, const Event& event) {
    if (!list.empty() || merging_.unites() || shedding_.active() != nullptr || new_nodes.has_gone ||
        list.capacity() < new_nodes.nodes.capacity()) {
        return false;
    }
    int64_t* starts = new_nodes.nodes.starts();
    uint32_t* cells = new_nodes.nodes.cells();
    for (uint32_t i = 0; i < new_nodes.nodes.end; ++i) {
        const Chain chain = binder_.bind_after(new_nodes, i, cells[i], event);
        starts[i] = chain.latest;
        cells[i] = chain.cell;
        if (i != 0 && starts[i - 1] > starts[i]) new_nodes.nodes.sorted = false;
    }
    list.exchange(new_nodes.nodes);
    list.apart = list.size() == 1;
    return true;
}

void NodeStorer::store(NewNodes& new_nodes, PartitionNodes& part, uint32_t partition, uint32_t state,
                       const Event& event, int64_t low) {
    NodeList& list = part.lists[state];
    if (take_over(new_nodes, list, event)) return;
    Shedding* const shed = shedding_.active();
    const int64_t now = tables_.key(event);
    for (uint32_t i = 0; i < new_nodes.nodes.end; ++i) {
        if (new_nodes.is_gone[i] != 0) continue;
        uint32_t into = NIL;
        if (merging_.unites()) {
            into = merging_.find_equal(list, new_nodes, i, state, low);
            if (shed != nullptr && into != NIL) merging_.count_united_with_stored(state);
        }
        if (shed != nullptr && into == NIL && !shed->admission.admit(new_nodes.nodes, i, state, partition, now))
            continue;
        Chain chain;
        if (merging_.unites()) {
            if (into != NIL) chain = arena_.chain(list.cells()[into]);
            chain = binder_.bind_group(new_nodes, i, event, chain);
        } else {
            chain = binder_.bind_after(new_nodes, i, new_nodes.nodes.cells()[i], event);
        }
        if (into != NIL) {
            join_stored(list, into, new_nodes, i, state, partition, chain, now);
        } else {
            add(list, new_nodes, i, state, partition, chain, low);
        }
    }
}

inline void NodeStorer::join_stored(NodeList& list, uint32_t into, NewNodes& new_nodes, uint32_t row, uint32_t state,
                                    uint32_t partition, Chain chain, int64_t now) {
    const State& s = tables_.states[state];
    list.cells()[into] = chain.cell;
    list.starts()[into] = chain.latest;
    if (into + 1 != list.end && list.starts()[into + 1] < chain.latest) list.sorted = false;
    if (Shedding* const shed = shedding_.active()) {
        const Mark mark = shed->slots.mark(new_nodes.nodes, row, state);
        list.slot(s.slots - 2)[into] = now;
        shed->log.log_united(list, into, state, partition, mark, now);
    }
    if (tables_.firsts) {
        const uint32_t first = store_.compared_slots(s);
        list.slot(first)[into] = std::min(list.slot(first)[into], new_nodes.nodes.slot(first)[row]);
    }
}

inline void NodeStorer::add(NodeList& list, NewNodes& new_nodes, uint32_t row, uint32_t state, uint32_t partition,
                            Chain chain, int64_t low) {
    Shedding* const shed = shedding_.active();
    const uint32_t slots = tables_.states[state].slots;
    if (shed != nullptr) store_.make_room(list, state, low);
    const uint32_t to = list.add(slots, shed != nullptr ? NEVER : low);
    list.take(to, new_nodes.nodes, row, slots, chain.latest, chain.cell);
    if (shed != nullptr) shed->log.log_new(list, to, state, partition);
}

}  // namespace acep

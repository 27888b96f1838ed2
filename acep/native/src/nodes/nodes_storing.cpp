// The storage of new nodes for later events.
#include "nodes/nodes.hpp"

namespace acep {

// Make the new nodes of a state its list, if that is empty and has as much room; return whether this was done.
bool NodeEngine::takes_over(NewNodes& made, NodeList& list, const Event& event) {
    if (!list.empty() || merging_.unites() || shedding_.active() || made.has_gone ||
        list.capacity() < made.nodes.capacity())
        return false;
    int64_t* starts = made.nodes.starts();
    uint32_t* cells = made.nodes.cells();
    for (uint32_t i = 0; i < made.nodes.end; ++i) {
        const Chain chain = binder_.bind_after(made, i, cells[i], event);
        starts[i] = chain.latest;
        cells[i] = chain.cell;
        if (i != 0 && starts[i - 1] > starts[i]) made.nodes.sorted = false;
    }
    list.exchange(made.nodes);
    list.apart = list.size() == 1;
    return true;
}

// Add the new nodes of a state to its list.
void NodeEngine::store(NewNodes& made, PartitionNodes& part, uint32_t partition, uint32_t state, const Event& event,
                       int64_t low) {
    const State& s = tables_.states[state];
    NodeList& list = part.lists[state];
    const int64_t own = key(event);
    for (uint32_t i = 0; i < made.nodes.end; ++i) {
        if (made.is_gone[i] != 0) continue;
        // A node that equals one of an earlier event is united with it.
        uint32_t into = NIL;
        Chain chain;
        if (merging_.unites()) {
            into = merging_.find_equal(list, made, i, state, low);
            if (shedding_.active() && into != NIL) merging_.count_united_with_stored(state);
            if (shedding_.active() && into == NIL && !shedding_.active()->admit(made.nodes, i, state, partition, own))
                continue;
            if (into != NIL) chain = arena_.chain(list.cells()[into]);
            chain = binder_.bind_group(made, i, event, chain);
        } else {
            if (shedding_.active() && !shedding_.active()->admit(made.nodes, i, state, partition, own)) continue;
            chain = binder_.bind_after(made, i, made.nodes.cells()[i], event);
        }
        if (into != NIL) {
            list.cells()[into] = chain.cell;
            list.starts()[into] = chain.latest;
            if (into + 1 != list.end && list.starts()[into + 1] < chain.latest) list.sorted = false;
            if (shedding_.active()) {
                const Mark mark = shedding_.active()->mark(made.nodes, i, state);
                list.slot(s.slots - 2)[into] = own;
                shedding_.active()->joined(list, into, state, partition, mark, own);
            }
            if (tables_.firsts) {
                const uint32_t first = store_.compared_slots(s);
                list.slot(first)[into] = std::min(list.slot(first)[into], made.nodes.slot(first)[i]);
            }
            continue;
        }
        if (shedding_.active()) store_.make_room(list, state, low);
        const uint32_t to = list.add(s.slots, shedding_.active() ? NEVER : low);
        list.take(to, made.nodes, i, s.slots, chain.latest, chain.cell);
        if (shedding_.active()) shedding_.active()->born(list, to, state, partition);
    }
}

}  // namespace acep

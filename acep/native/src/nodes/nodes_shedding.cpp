// Load shedding in the node engine, with the decisions of `shedding.hpp`.
#include "nodes/nodes.hpp"

namespace acep {

// The seed has an effect only in the first call.
Shedding& NodeEngine::shed(uint64_t seed) {
    if (shedding_.any() == nullptr) {
        if (arrived != 0 || !store_.partitions().empty()) throw std::logic_error("events have come already");
        shedding_.create(partitions_, seed);
    }
    return *shedding_.any();
}

void NodeEngine::order(SheddingTable table) {
    catch_up();
    shed().set(std::move(table));
}

// Compute utilities that were put off by the shedding table under which the nodes were made.
void NodeEngine::catch_up() {
    if (!shedding_.active() || !shedding_.active()->puts_off()) return;
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        store_.partitions()[p].each([&](NodeList& list, uint32_t s) { shedding_.active()->catch_up(list, s, p); });
    }
}

// Start shedding, as the budget may be insufficient: nodes get the extra slots. Existing ones get default values there.
void NodeEngine::wake(int64_t now) {
    shedding_.activate();
    for (uint32_t p = 0; p < store_.partitions().size(); ++p)
        shedding_.active()->note_unwatched(p, tables_.counted ? store_.partitions()[p].last_position : now);
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        for (PartitionNodes& part : store_.partitions()) {
            if (!part.lists.empty())
                widen(part.lists[s], s, earliest(tables_.counted ? part.last_position : now, tables_.span), now);
        }
        widen(maker_.of(s).nodes, s, NEVER, now);
        tables_.states[s].slots += shedding_.hidden();
        frames_.resize_slots(s);
    }
}

// Stop shedding before an event at `now`, as the budget suffices again: nodes lose the extra slots.
void NodeEngine::rest(int64_t now) {
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        PartitionNodes& part = store_.partitions()[p];
        const int64_t last = tables_.counted ? part.last_position : now;
        if (!part.shadow.empty()) store_.drop_shadow(part, last);
        shedding_.active()->lose(p, last);
        for (uint32_t s = 0; s < part.lists.size(); ++s)
            store_.drop_expired(part.lists[s], s, earliest(last, tables_.span), last);
    }
    const uint32_t hidden = shedding_.hidden();
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        const uint32_t slots = tables_.states[s].slots;
        for (PartitionNodes& part : store_.partitions()) {
            if (!part.lists.empty()) part.lists[s].narrow(slots, hidden);
        }
        maker_.of(s).nodes.narrow(slots, hidden);
        tables_.states[s].slots -= hidden;
        frames_.resize_slots(s);
    }
    shedding_.rest();
}

void NodeEngine::widen(NodeList& list, uint32_t state, int64_t low, int64_t now) {
    const uint32_t slots = tables_.states[state].slots;
    list.keep(slots, [&](uint32_t i) { return list.starts()[i] >= low; });
    list.sorted = std::is_sorted(list.starts(), list.starts() + list.end);
    list.widen(slots, shedding_.hidden());
    for (uint32_t i = 0; i < list.end; ++i) {
        list.slot(slots)[i] = low == NEVER ? now : tables_.counted ? list.positions()[i] : list.starts()[i];
        list.slot(slots + 1)[i] = Mark().word();
        for (uint32_t k = slots; k < slots + shedding_.hidden(); ++k)
            list.tags(k, slots + shedding_.hidden())[i] = value;
    }
    list.touched = list.tended = 0;
    list.births = list.limit = list.room = 0;
    list.popped = 1;
    list.price = 0;
}

// Whether an event begins nodes in a shadow-sampled unit.
bool NodeEngine::is_shadow(uint32_t partition, const Event& event) {
    return pattern_arcs_.begins(event.pattern) && shedding_.active()->is_shadow(partition, key(event));
}

// Process an event in the lists of the shadow sample. Nothing is dropped or output there, and other lists are not
// affected: matches that only these lists find are lost by shedding.
void NodeEngine::shadow_sample(PartitionNodes& part, uint32_t partition, const Event& event, bool begins) {
    if (part.shadow.empty()) {
        if (!begins) return;
        store_.make_lists(part.shadow, bounded());
    }
    if (shedding_.active()->sample().hopeless(partition)) return store_.drop_shadow(part, key(event));
    const int64_t low = oldest_start(event);
    std::swap(part.lists, part.shadow);
    shedding_.active()->enter(work_.touches);
    for (const StateArcs& turn : pattern_arcs_.of(event.pattern)) {
        if (turn.state != 0) {
            step(part, turn, event, low);
        } else if (begins) {
            shedding_.set_first_mark(shedding_.active()->begin(partition, event));
            begin(turn, event);
        }
    }
    if (tables_.contiguous()) contiguous_end(part, event);
    if (!ended_.empty()) end_broken(part, event);
    if (!maker_.states().empty()) finish(part, partition, event, low);
    shedding_.active()->leave(work_.touches);
    std::swap(part.lists, part.shadow);
}

// Whether an event is admitted, by its classes and its place in the window of its partition.
bool NodeEngine::admits(const PartitionNodes& part, const Event& event) {
    if (shedding_.active()->table().admit.empty()) return true;
    int64_t oldest = key(event);
    for (const NodeList& list : part.lists) {
        if (!list.empty()) oldest = std::min(oldest, const_cast<NodeList&>(list).starts()[list.head]);
    }
    return shedding_.admits(event, oldest);
}

}  // namespace acep

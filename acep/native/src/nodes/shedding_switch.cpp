// The hidden slots of nodes (nodes/shedding_switch.hpp).
#include "nodes/shedding_switch.hpp"

#include <algorithm>

namespace acep {

void SheddingSwitch::begin(int64_t now) {
    shedding_.activate();
    auto& partitions = store_.partitions();
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        shedding_.active()->sample.note_unwatched(p, store_.now(partitions[p], now));
    }
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        for (PartitionNodes& part : partitions) {
            if (!part.lists.empty()) add_slots(part.lists[s], s, store_.low(part, now), now);
        }
        add_slots(maker_.new_nodes(s).nodes, s, NEVER, now);
        tables_.states[s].slots += shedding_.hidden();
        frames_.resize_slots(s);
    }
}

void SheddingSwitch::rest(int64_t now) {
    auto& partitions = store_.partitions();
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        PartitionNodes& part = partitions[p];
        const int64_t last = store_.now(part, now);
        if (!part.shadow.empty()) store_.drop_shadow(part, last);
        shedding_.active()->sample.record_loss(p, last);
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            store_.drop_expired(part.lists[s], s, earliest(last, tables_.span), last);
        }
    }
    const uint32_t hidden = shedding_.hidden();
    for (uint32_t s = 1; s < tables_.states.size(); ++s) {
        const uint32_t slots = tables_.states[s].slots;
        for (PartitionNodes& part : partitions) {
            if (!part.lists.empty()) part.lists[s].narrow(slots, hidden);
        }
        maker_.new_nodes(s).nodes.narrow(slots, hidden);
        tables_.states[s].slots -= hidden;
        frames_.resize_slots(s);
    }
    shedding_.rest();
}

void SheddingSwitch::compute_utilities() {
    Shedding* const shed = shedding_.active();
    if (shed == nullptr || !shed->utilities.take_deferred()) return;
    auto& partitions = store_.partitions();
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        partitions[p].each([&](NodeList& list, uint32_t s) { shed->utilities.complete_marks(list, s, p); });
    }
}

void SheddingSwitch::add_slots(NodeList& list, uint32_t state, int64_t low, int64_t now) const {
    const uint32_t slots = tables_.states[state].slots, hidden = shedding_.hidden();
    list.keep(slots, [&](uint32_t i) { return list.starts()[i] >= low; });
    list.sorted = std::is_sorted(list.starts(), list.starts() + list.end);
    list.widen(slots, hidden);
    for (uint32_t i = 0; i < list.end; ++i) {
        list.slot(slots)[i] = low == NEVER ? now : tables_.counted ? list.positions()[i] : list.starts()[i];
        list.slot(slots + 1)[i] = Mark().word();
        for (uint32_t k = slots; k < slots + hidden; ++k) list.tags(k, slots + hidden)[i] = value;
    }
    list.touched = list.pruned_at = 0;
    list.births = list.limit = list.room = 0;
    list.popped = 1;
    list.pruned_threshold = 0;
}

}  // namespace acep

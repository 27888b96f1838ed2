// Stored partial matches (nodes/node_store.hpp): their removal, and the memory that it frees.
#include "nodes/node_store.hpp"

#include <algorithm>

namespace acep {

// Removal ----------------------------------------------------------------------------------------

bool NodeStore::expire_head(NodeList& list, uint32_t state, int64_t low) {
    if (list.sorted && shedding_.logs()) {
        Shedding& shed = *shedding_.active();
        for (uint32_t i = list.head; i < list.end && list.starts()[i] < low; ++i) {
            shed.log.log_end(list, i, state, tables_.expiry(list.starts()[i]), EndReason::expired);
        }
    }
    return list.expire(low);
}

void NodeStore::make_room(NodeList& list, uint32_t state, int64_t low) {
    if (list.size() < list.room) return;
    drop_expired(list, state, low, low + tables_.span);
    list.room = std::max(Shedding::least_room, 2 * list.size());
}

bool NodeStore::expire_shadow(PartitionNodes& part, int64_t low, int64_t when) {
    for (uint32_t s = 0; s < part.shadow.size(); ++s) {
        NodeList& list = part.shadow[s];
        if (!expire_head(list, s, low)) drop_expired(list, s, low, when);
        if (!list.empty()) return false;
    }
    part.shadow.clear();
    return true;
}

bool NodeStore::expire_all(PartitionNodes& part, int64_t low, int64_t when) {
    for (uint32_t s = 0; s < part.lists.size(); ++s) {
        if (!expire_head(part.lists[s], s, low)) drop_expired(part.lists[s], s, low, when);
    }
    return std::ranges::all_of(part.lists, [](const NodeList& list) { return list.empty(); });
}

void NodeStore::drop_shadow(PartitionNodes& part, int64_t when) {
    for (uint32_t s = 0; s < part.shadow.size(); ++s) drop_all(part.shadow[s], s, when, EndReason::shed);
    part.shadow.clear();
}

void NodeStore::drop_begun(uint32_t partition, int64_t upto) {
    PartitionNodes* const part = find(partition);
    if (part == nullptr) return;
    for (uint32_t s = 0; s < part->lists.size(); ++s) {
        NodeList& list = part->lists[s];
        if (list.empty()) continue;
        keep(list, s, now(*part, clock_), EndReason::taken,
             [&](uint32_t i) { return first_position(list, s, i) > upto; });
    }
}

void NodeStore::clear_all() {
    for (PartitionNodes& part : partitions_) {
        part.each([](NodeList& list, uint32_t) { list.clear(); });
    }
}

// Facts about nodes ------------------------------------------------------------------------------

int64_t NodeStore::first_position(NodeList& list, uint32_t state, uint32_t row) const {
    if (tables_.firsts) return list.slot(compared_slots(tables_.states[state]))[row];
    uint32_t cell = list.cells()[row];
    while (arena_.cells[cell].past != NIL) cell = arena_.cells[cell].past;
    return arena_.events[arena_.cells[cell].event].position;
}

int64_t NodeStore::count(const std::vector<uint32_t>& states, const Partitions& partitions, int64_t clock) const {
    std::vector<uint8_t> is_wanted(tables_.states.size(), states.empty() ? 1 : 0);
    for (const uint32_t state : states) is_wanted.at(state) = 1;
    int64_t total = 0;
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
        const PartitionNodes& part = partitions_[p];
        int64_t low = NEVER;
        if (tables_.timed()) low = earliest(clock, tables_.span);
        if (tables_.counted) {
            low = earliest(tables_.strict ? part.last_position : partitions.positions[p] - 1, tables_.span);
        }
        for (size_t s = 0; s < part.lists.size(); ++s) {
            if (is_wanted[s] != 0) total += const_cast<NodeList&>(part.lists[s]).living(low);  // only read
        }
    }
    return total;
}

void NodeStore::used_texts(UsedTexts& used) const {
    for (const PartitionNodes& part : partitions_) {
        const_cast<PartitionNodes&>(part).each([&](NodeList& list, uint32_t s) {  // only read
            for (uint32_t k = 0; k < tables_.states[s].slots - (list.empty() ? 0 : shedding_.hidden()); ++k) {
                for (uint32_t i = list.head; i < list.end; ++i) used.add(list.slot(k)[i]);
            }
        });
    }
    frames_.used_texts(used);
}

void NodeStore::find_prospects(uint32_t partition, int64_t low, int64_t clock, Alive& prospects) {
    PartitionNodes* const part = find(partition);
    if (part == nullptr) return;
    for (uint32_t s = 0; s < part->lists.size(); ++s) {
        NodeList& list = part->lists[s];
        for (uint32_t i = list.head; i < list.end; ++i) {
            if (list.starts()[i] < low) continue;
            const int64_t error = list.errors()[i] + tables_.states[s].rest;
            prospects.add({first_position(list, s, i), error, clock}, list.starts()[i]);
        }
    }
}

// Memory -----------------------------------------------------------------------------------------

void NodeStore::free_by_age(int64_t clock) {
    const int64_t low = earliest(clock, tables_.span);
    auto& cells = arena_.cells;
    auto& events = arena_.events;
    while (!cells.empty() && events[cells[cells.tail()].event].ts < low) cells.drop();
    while (!events.empty() && events[events.tail()].ts < low) events.drop();
    frames_.drop_before(low);
}

void NodeStore::free_unreached() {
    // An event whose runs all end with it leaves no cell, so events may outnumber cells.
    const uint32_t cells = arena_.cells.size(), events = arena_.events.size();
    if (cells / 2 > compacted_size_ + 2048 || events / 2 > cells + 2048) compact_cells();
    if (frames_.has_doubled()) compact_frames();
}

// Without a time window, cells cannot be freed by their age.
void NodeStore::compact_cells(int64_t oldest) {
    const int64_t passed = tables_.timed() ? earliest(clock_, tables_.span) : NEVER;
    arena_.compact([&](auto&& visit) {
        for (PartitionNodes& part : partitions_) {
            // While older events are matched again, the cells of other partitions may be freed up to the time.
            int64_t low = part.rematch == rematches_ ? oldest : std::max(oldest, passed);
            if (tables_.counted && tables_.span >= 0 && part.last_position >= 0) {
                low = part.last_position - tables_.span;
            }
            part.each([&](NodeList& list, uint32_t s) {
                drop_expired(list, s, low, low + std::max<int64_t>(tables_.span, 0));
                for (uint32_t i = list.head; i < list.end; ++i) visit(list.cells()[i], low);
            });
        }
    });
    compacted_size_ = arena_.cells.size();
}

void NodeStore::compact_frames() {
    frames_.compact([&](auto&& visit) {
        for (PartitionNodes& part : partitions_) part.each(visit);
    });
}

}  // namespace acep

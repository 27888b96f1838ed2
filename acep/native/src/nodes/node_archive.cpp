// Stored partial matches as bytes (nodes/node_archive.hpp).
#include "nodes/node_archive.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace acep {

void NodeArchive::check_chains(Reader& in) {
    check_cells();
    frames_.check_links();
    if (tables_.timed()) frames_.note_times(in);
}

// Links must lead to older elements, so every walk ends; links to freed ones are cut. No link may claim a later start
// than it reaches: once those cells are freed and their numbers used again, walks may not end.
void NodeArchive::check_cells() {
    auto& cells = arena_.cells;
    const auto& events = arena_.events;
    const auto cut = [&](uint32_t& link, uint32_t at) {
        if (link == NIL) return;
        const uint32_t age = at - link, old = at - cells.tail();
        if (age == 0 || age > (uint32_t{1} << 31)) bad_state("link");
        if (age > old) link = NIL;
    };
    const size_t arcs = tables_.arcs();
    uint32_t last = 0;
    cells.each_number([&](uint32_t i) {
        Cell& c = cells[i];
        const uint32_t event = c.event - events.tail();
        if (event >= events.size() || event < last || c.event == NIL) bad_state("event of a cell");
        last = event;
        if (c.var != UNION && (c.var >= tables_.variables || (c.arc >= arcs && !tables_.dynamic))) {
            bad_state("cell");  // the arc of an automaton that changes may be gone
        }
        const bool begins = c.var != UNION && c.past == NIL;
        if (begins && c.latest > tables_.key(events[c.event])) bad_state("start of a cell");
        cut(c.past, i);
        cut(c.next, i);
        if (!begins) c.latest = std::min(c.latest, arena_.chain(c.past).latest);
        c.below = std::min(c.below, arena_.chain(c.next).latest);
    });
}

void NodeArchive::check_frame_ages() {
    if (!tables_.timed()) return;
    frames_.check_ages([&](auto&& visit) {
        for (PartitionNodes& part : store_.partitions()) part.each(visit);
    }, earliest(store_.clock(), tables_.span));
}

void NodeArchive::check_list(NodeList& list, uint32_t state, int64_t end) {
    const uint32_t slots = tables_.states[state].slots;
    const int64_t expired = tables_.timed() ? earliest(store_.clock(), tables_.span) : NEVER;
    list.keep(slots, [&](uint32_t i) {
        const int64_t start = list.starts()[i];
        if (list.positions()[i] < 0 || list.positions()[i] >= end) bad_state("position of a node");
        if (tables_.counted && start >= end) bad_state("start of a node");
        if (list.errors()[i] < 0 || list.errors()[i] > tables_.budget) bad_state("error of a node");
        const uint32_t cell = list.cells()[i];
        bool alive = dominance_ != nullptr ? cell == NIL : arena_.holds(cell);
        // A node that claims another start than it reaches would outlive its cells.
        const bool reaches = dominance_ != nullptr || !alive || arena_.chain(cell).latest == start;
        if (!reaches && start >= expired) bad_state("start of a node");
        for (uint32_t k = 0; k < slots; ++k) {
            const uint8_t tag = list.tags(k, slots)[i];
            if (tag > value) bad_state("tag");
            if (frames_.is_list(state, k) && tag == value) alive = alive && frames_.holds(list.slot(k)[i]);
        }
        // With shedding an expired one counts until the list is pruned.
        return alive || (shedding_.active() != nullptr && start < expired);
    });
    list.sorted = std::is_sorted(list.starts(), list.starts() + list.end);
    for (uint32_t k = 0; k < slots; ++k) {
        const uint8_t* tags = list.tags(k, slots);
        list.plain = list.plain && std::all_of(tags, tags + list.end, [](uint8_t tag) { return tag == value; });
    }
}

void NodeArchive::shedding_fields(auto& list, auto& archive, bool& sorted) {
    archive.within(0, most_positions, list.touched);
    archive.words(list.pruned_at);
    archive.finite("price", list.pruned_threshold);
    archive.within(0, int64_t{1} << 32, list.limit);
    archive.within(0, int64_t{1} << 16, list.births, list.popped);
    archive.within(0, int64_t{1} << 32, list.room);
    archive.within(0, 4, list.patience);
    archive.words(sorted);
}

void NodeArchive::read_list(Reader& in, NodeList& list, uint32_t state, int64_t end) {
    const uint32_t slots = tables_.states[state].slots;
    bool sorted = list.sorted;
    if (shedding_.active() != nullptr) shedding_fields(list, in, sorted);
    const auto starts = in.items<int64_t>();
    const size_t n = starts.size();
    if (n == 0) return;
    if (n > (size_t{1} << 30) || (tables_.states[state].arcs.empty() && !tables_.dynamic)) bad_state("list");
    if (in.left() / n < 16 + 9 * size_t{slots}) bad_state("end");
    while (list.end < n) list.add(slots, NEVER);
    list.each_column(slots, [&, first = true](auto* column) mutable {
        if (!std::exchange(first, false)) in.items(column, n, "list");
    });
    std::copy(starts.begin(), starts.end(), list.starts());
    list.oldest = NEVER;
    check_list(list, state, end);
    for (uint32_t i = list.head; i < list.end && tables_.timed(); ++i) in.saw(list.starts()[i]);
    list.sorted = list.sorted && sorted;
    if (dominance_ != nullptr && dominance_->states[state].front && !list.sorted) bad_state("order of nodes");
}

// Expired nodes are also dropped on loading.
void NodeArchive::write_list(Writer& out, NodeList& list, uint32_t state) const {
    const uint32_t slots = tables_.states[state].slots;
    bool sorted = list.sorted;
    const bool sheds = shedding_.active() != nullptr;
    if (sheds) shedding_fields(list, out, sorted);
    const int64_t low = tables_.timed() ? earliest(store_.clock(), tables_.span) : NEVER;
    std::vector<uint32_t> rows;
    for (uint32_t i = list.head; i < list.end; ++i) {
        if (sheds || list.starts()[i] >= low) rows.push_back(i);
    }
    if (rows.empty()) return out.number(0);
    list.each_column(slots, [&](auto* column) {
        std::vector<std::remove_cvref_t<decltype(*column)>> values;
        for (const uint32_t row : rows) values.push_back(column[row]);
        out.items(values);
    });
}

template <class Archive>
void NodeArchive::partition_fields(auto& part, Archive& archive, int64_t end, bool& has_lists) {
    archive.within(-1, end, part.last_position);
    archive.within(-1, most_positions, part.last_event);
    if constexpr (Archive::reads) {
        if (part.last_event > archive.events) bad_state("number of an event");
    }
    Bundle::fields(part.bundle, archive);
    archive.words(has_lists);
}

void NodeArchive::write(Writer& out, const Partitions& keys) const {
    Shedding* const shed = shedding_.active();
    out.size(store_.partitions(), 0);
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        PartitionNodes& part = store_.partitions()[p];
        bool has_lists = !part.lists.empty();
        partition_fields(part, out, keys.end(p, tables_.strict, out), has_lists);
        if (shed != nullptr) out.words(!part.shadow.empty());
        part.each([&](NodeList& list, uint32_t s) {
            if (shed != nullptr) shed->utilities.complete_marks(list, s, p);
            write_list(out, list, s);
        });
    }
}

void NodeArchive::read(Reader& in, const Partitions& keys, bool tight) {
    in.size(store_.partitions(), static_cast<int64_t>(keys.size()) + 1);
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        PartitionNodes& part = store_.partitions()[p];
        const int64_t end = keys.end(p, tables_.strict, in);
        bool has_lists = false, has_shadow = false;
        partition_fields(part, in, end, has_lists);
        if (shedding_.active() != nullptr) in.words(has_shadow);
        part.lists.resize(has_lists ? tables_.states.size() : 0);
        part.shadow.resize(has_shadow ? tables_.states.size() : 0);
        part.each([&](NodeList& list, uint32_t s) {
            list.tight = tight;
            read_list(in, list, s, end);
        });
    }
    check_frame_ages();
}

}  // namespace acep

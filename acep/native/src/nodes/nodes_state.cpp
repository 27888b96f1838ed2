// The node engine's memory, which is freed by compaction if there is no time window, and its state as bytes.

#include "nodes/nodes.hpp"

namespace acep {

// Keep the cells that live nodes reach. Without a time window, cells cannot be freed by their age.
void NodeEngine::compact(int64_t oldest) {
    const int64_t passed = tables_.timed() ? earliest(clock_, tables_.span) : NEVER;
    arena_.compact([&](auto&& visit) {
        for (Part& part : parts_) {
            // While older events are matched again, the cells of other partitions may be freed up to the time.
            int64_t low = part.again == holds_ ? oldest : std::max(oldest, passed);
            if (tables_.counted && tables_.span >= 0 && part.last >= 0) low = part.last - tables_.span;
            part.each([&](NodeList& list, uint32_t s) {
                drop_expired(list, s, low, low + std::max<int64_t>(tables_.span, 0));
                for (uint32_t i = list.head; i < list.end; ++i) visit(list.cells()[i], low);
            });
        }
    });
    kept_cells_ = arena_.cells.size();
}

void NodeEngine::compact_frames() {
    frames_.compact([&](auto&& visit) {
        for (Part& part : parts_) part.each(visit);
    });
}

// Check cells and events. Links must lead to older elements, so every walk ends; links to freed ones are cut. No
// link may claim a later start than it reaches: once those cells are freed and their numbers used again, walks may not end.
void NodeEngine::check_arena() {
    auto& cells = arena_.cells;
    auto& events = arena_.events;
    const auto cut = [&](uint32_t& link, uint32_t at) {
        if (link == NIL) return;
        const uint32_t age = at - link, old = at - cells.tail();
        if (age == 0 || age > (uint32_t{1} << 31)) bad_state("link");
        if (age > old) link = NIL;
    };
    const size_t arcs = tables_.arcs();
    uint32_t last = 0;
    for (uint32_t i = cells.tail(); i != cells.head(); ++i) {
        if (i == NIL) continue;
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
    }
}

// Keep the rows that were read in a list if their references are valid; those of expired ones may not be. `end`: the
// number above all positions.
void NodeEngine::check_list(NodeList& list, uint32_t state, int64_t end) {
    const uint32_t slots = tables_.states[state].slots;
    const int64_t expired = tables_.timed() ? earliest(clock_, tables_.span) : NEVER;
    list.keep(slots, [&](uint32_t i) {
        const int64_t start = list.starts()[i];
        if (list.positions()[i] < 0 || list.positions()[i] >= end) bad_state("position of a node");
        if (tables_.counted && start >= end) bad_state("start of a node");
        if (list.errors()[i] < 0 || list.errors()[i] > tables_.budget) bad_state("error of a node");
        const uint32_t cell = list.cells()[i];
        bool alive = dominance_ ? cell == NIL : arena_.holds(cell);
        // A node that claims another start than it reaches would outlive its cells.
        const bool reaches = dominance_ || !alive || arena_.chain(cell).latest == start;
        if (!reaches && start >= expired) bad_state("start of a node");
        for (uint32_t k = 0; k < slots; ++k) {
            const uint8_t tag = list.tags(k, slots)[i];
            if (tag > value) bad_state("tag");
            if (frames_.is_list(state, k) && tag == value) alive = alive && frames_.holds(list.slot(k)[i]);
        }
        // With shedding an expired one counts until the list is pruned.
        return alive || (shed_ && start < expired);
    });
    list.sorted = std::is_sorted(list.starts(), list.starts() + list.end);
    for (uint32_t k = 0; k < slots; ++k) {
        const uint8_t* tags = list.tags(k, slots);
        list.plain = list.plain && std::all_of(tags, tags + list.end, [](uint8_t tag) { return tag == value; });
    }
}

template <class Archive>
void NodeEngine::list_fields(auto& self, Archive& archive, NodeList& list, uint32_t state, int64_t end) {
    const uint32_t slots = self.tables_.states[state].slots;
    bool sorted = list.sorted;
    if (self.shed_) {
        archive.within(0, most_positions, list.touched);
        archive.words(list.tended);
        archive.finite("price", list.price);
        archive.within(0, int64_t{1} << 32, list.limit);
        archive.within(0, int64_t{1} << 16, list.births, list.popped);
        archive.within(0, int64_t{1} << 32, list.room);
        archive.within(0, 4, list.patience);
        archive.words(sorted);
    }
    if constexpr (Archive::reads) {
        const auto starts = archive.template items<int64_t>();
        const size_t n = starts.size();
        if (n == 0) return;
        if (n > (size_t{1} << 30) || (self.tables_.states[state].arcs.empty() && !self.tables_.dynamic)) {
            bad_state("list");
        }
        if (archive.left() / n < 16 + 9 * size_t{slots}) bad_state("end");
        while (list.end < n) list.add(slots, NEVER);
        list.each_column(slots, [&, first = true](auto* column) mutable {
            if (!std::exchange(first, false)) archive.items(column, n, "list");
        });
        std::copy(starts.begin(), starts.end(), list.starts());
        list.oldest = NEVER;
        self.check_list(list, state, end);
        for (uint32_t i = list.head; i < list.end && self.tables_.timed(); ++i) archive.saw(list.starts()[i]);
        list.sorted = list.sorted && sorted;
        if (self.dominance_ && self.dominance_->states[state].front && !list.sorted) bad_state("order of nodes");
    } else {
        // Expired ones are also dropped on loading.
        const int64_t low = self.tables_.timed() ? earliest(self.clock_, self.tables_.span) : NEVER;
        std::vector<uint32_t> rows;
        for (uint32_t i = list.head; i < list.end; ++i) {
            if (self.shed_ || list.starts()[i] >= low) rows.push_back(i);
        }
        if (rows.empty()) return archive.number(0);
        list.each_column(slots, [&](auto* column) {
            std::vector<std::remove_cvref_t<decltype(*column)>> kept;
            for (const uint32_t row : rows) kept.push_back(column[row]);
            archive.items(kept);
        });
    }
}

template <class Archive>
void NodeEngine::fields(auto& self, Archive& archive) {
    archive.within(0, most_positions, self.work_.nodes, self.work_.touches, self.work_.matches);
    if (self.shedding() != nullptr) {
        bool rests = self.rests();
        archive.words(self.clock_, rests);
        archive.saw(self.clock_);
        if constexpr (Archive::reads) {
            if (rests && !self.rests()) bad_state("nodes of another kind");
            if (!rests) self.rouse();
        }
        auto& memory = self.memory_;
        int64_t next = memory.next;
        archive.within(0, most_positions, next, memory.peak, memory.given, memory.given_since);
        if constexpr (Archive::reads) memory.next = std::min(memory.next, next);
        archive.within(0, int64_t{1} << 32, self.kept_cells_, self.frames_.compacted_size());
        archive.within(0, most_positions, self.shedding()->withheld);
        for (auto& one : self.merging_.unions) Trial::fields(one, archive, 1 << 30);
    }
    for (auto& one : self.merging_.likes) Likes::fields(one, archive);
    Arena::fields(self.arena_, archive);
    FrameStore::fields(self.frames_, archive);
    if constexpr (Archive::reads) {
        self.check_arena();
        self.frames_.check_links();
        if (self.tables_.timed()) self.frames_.note_times(archive);
    }
    archive.size(self.parts_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (uint32_t p = 0; p < self.parts_.size(); ++p) {
        auto& part = const_cast<Part&>(self.parts_[p]);  // only utilities that were put off change when it is written
        const int64_t end = self.partitions_.end(p, self.tables_.strict, archive);
        archive.within(-1, end, part.last);
        archive.within(-1, most_positions, part.seen);
        if constexpr (Archive::reads) {
            if (part.seen > archive.events) bad_state("number of an event");
        }
        Bundle::fields(part.bundle, archive);
        bool lists = !part.lists.empty(), shadow = !part.shadow.empty();
        archive.words(lists);
        if (self.shed_) archive.words(shadow);
        if constexpr (Archive::reads) {
            part.lists.resize(lists ? self.tables_.states.size() : 0);
            part.shadow.resize(shadow ? self.tables_.states.size() : 0);
        }
        part.each([&](NodeList& list, uint32_t s) {
            if constexpr (Archive::reads) {
                list.tight = self.bounded();
            } else if (self.shed_) {
                self.shed_->catch_up(list, s, p);
            }
            list_fields(self, archive, list, s, end);
        });
    }
    if constexpr (Archive::reads) {
        if (self.tables_.timed()) {
            self.frames_.check_ages([&](auto&& visit) {
                for (Part& part : self.parts_) part.each(visit);
            }, earliest(self.clock_, self.tables_.span));
        }
    }
    archive.items(self.live_);
    if (Archive::reads && self.live_.size() > self.parts_.size()) bad_state("partitions");
    if (self.completion_) self.completion_->fields(archive);
    if (self.dominance_) Dominance::fields(*self.dominance_, archive, self.work_.touches);
    if (self.shedding() != nullptr) self.shedding()->fields(archive);
}

void NodeEngine::dump(Writer& out) const { fields(*this, out); }

void NodeEngine::load(Reader& in) {
    fields(*this, in);
    if (bounded()) recount();
}

}  // namespace acep

// The state of the merged and compressed engines as bytes. After loading, links lead to older cells, and no link
// claims a later start than it reaches, as walks rely on this. No start is later than the events so far. So an invalid
// state is refused, or gives other matches.
#include <algorithm>

#include "merged/compressed.hpp"

namespace acep {
namespace {

// The earliest start of a window, which ends with an event so far. Later windows begin no earlier, and what began
// before them is freed. `end`: the number above all positions.
template <class Archive>
void low_field(auto& low, Archive& archive, const Tables& tables, int64_t end) {
    archive.words(low);
    if constexpr (Archive::reads) {
        if (low == NEVER + 1) return;
        int64_t last;
        if (low == NEVER || tables.span < 0 || __builtin_add_overflow(low, tables.span, &last)) {
            bad_state("start of a window");
        }
        if (!tables.counted) archive.saw(last);
        if (tables.counted && last >= end) bad_state("start of a window");
    }
}

// `places`: number of keys. A root whose beginnings were freed is invalid.
template <class Archive>
void root_fields(auto& root, Archive& archive, const Tables& tables, const Arena& arena, size_t places, int64_t end) {
    low_field(root.low, archive, tables, end);
    archive.words(root.ts, root.id);
    archive.saw(root.ts);
    archive.within(0, tables.budget + 1, root.error);
    archive.words(root.bundle);
    archive.within(0, int64_t{NIL} + 1, root.past);
    archive.within(0, static_cast<int64_t>(places), root.partition);
    archive.within(0, tables.variables, root.var);
    if (Archive::reads && root.past != NIL && !arena.holds(root.past)) bad_state("beginnings of matches");
}

}  // namespace

template <class Archive>
void Merger::fields(auto& self, Archive& archive, const Partitions& partitions) {
    self.automaton_.fields(archive);
    const auto states = static_cast<int64_t>(self.automaton_.states());
    const Tables& tables = self.tables_;
    Arena::fields(self.arena_, archive);
    archive.words(self.now_);
    if constexpr (Archive::reads) {
        self.cap_positions(self.end(partitions, archive));
        self.check_arena();
    }
    archive.within(4096, int64_t{1} << 32, self.compact_at_);
    archive.size(self.parts_, int64_t{partitions.size()} + 1);
    if (tables.timed() && !self.parts_.empty()) archive.saw(self.now_);
    for (uint32_t p = 0; p < self.parts_.size(); ++p) {
        auto& part = self.parts_[p];
        const int64_t end = partitions.end(p, tables.strict, archive);
        low_field(part.low, archive, tables, end);
        archive.within(-1, end, part.last);
        Bundle::fields(part.bundle, archive);
        archive.size(part.live, states + 1);
        for (auto& live : part.live) {
            archive.within(1, states, live.state);
            archive.within(0, int64_t{NIL}, live.chain.cell);
        }
        if constexpr (Archive::reads) self.check_live(part.live, end);
    }
}

void Merger::cap_positions(int64_t end) {
    auto& events = arena_.events;
    if (tables_.counted) now_ = std::min(now_, end - 1);
    for (uint32_t i = events.tail(); tables_.counted && i != events.head(); ++i) {
        if (i != NIL) events[i].position = std::min(events[i].position, end - 1);
    }
}

void Merger::check_arena() {
    auto& cells = arena_.cells;
    auto& events = arena_.events;
    const size_t arcs = tables_.arcs();
    uint32_t last = 0;
    for (uint32_t k = 0; k < cells.size(); ++k) {
        const uint32_t i = cells.tail() + k;
        if (i == NIL) continue;
        Cell& c = cells[i];
        const uint32_t event = c.event - events.tail();
        if (event >= events.size() || event < last || c.event == NIL) bad_state("event of a cell");
        last = event;
        if (c.var != UNION && (c.var >= tables_.variables || c.arc >= arcs)) bad_state("cell");
        const bool first = c.var != UNION && c.past == NIL && c.latest == key(events[c.event]);
        for (uint32_t* link : {&c.past, &c.next}) {
            if (*link == NIL) continue;
            const uint32_t age = i - *link;
            if (age == 0 || age > (uint32_t{1} << 31)) bad_state("link");
            if (age > k) {
                *link = NIL;  // freed
            } else if (by_epoch() && key(events[cells[*link].event]) > key(events[c.event])) {
                // Events of other partitions may be later: match windows pass on the events of one partition together.
                bad_state("order of events");
            }
        }
        if (!first) c.latest = arena_.chain(c.past).latest;
        c.below = arena_.chain(c.next).latest;
    }
}

void Merger::check_live(std::vector<Live>& all, int64_t end) {
    std::vector<uint8_t> seen(automaton_.states());
    for (Live& live : all) {
        if (seen[live.state]++ != 0) bad_state("a D-state twice");
        live.chain = arena_.holds(live.chain.cell) ? arena_.chain(live.chain.cell) : Chain();
        if (tables_.counted && live.chain.latest >= end) bad_state("position");
    }
    std::erase_if(all, [](const Live& live) { return live.chain.cell == NIL; });  // these had expired
}

template <class Archive>
void Cursor::fields(auto& self, Archive& archive, const Tables& tables, const Arena& arena, size_t places,
                    int64_t end) {
    bool done = self.done();
    archive.words(done);
    if constexpr (Archive::reads) self.stop();
    if (done) return;
    const auto cell = [&](auto& at) {
        archive.within(0, int64_t{NIL} + 1, at);
        if (Archive::reads && at != NIL && !arena.holds(at)) bad_state("place of a walk");
    };
    root_fields(self.root_, archive, tables, arena, places, end);
    archive.items(self.key_.data(), self.key_.size(), "key of a match");
    archive.words(self.alone_);
    cell(self.at_);
    archive.within(0, int64_t{1} << 31, self.depth_);
    uint32_t deepest = self.depth_;
    archive.size(self.stack_, int64_t{1} << 32);
    for (auto& step : self.stack_) {
        cell(step.cell);
        if (Archive::reads && (step.cell == NIL || arena.cells[step.cell].next == NIL)) bad_state("place of a walk");
        archive.within(0, int64_t{1} << 31, step.depth);
        deepest = std::max(deepest, step.depth);
    }
    if constexpr (Archive::reads) {
        while (self.ids_.size() < size_t{deepest} + 2) self.deepen();
    }
    auto* vars = self.vars_.data() + (self.vars_.size() - deepest);
    archive.items(self.ids_.data() + (self.ids_.size() - deepest), deepest, "depth of a walk");
    archive.items(vars, deepest, "depth of a walk");
    if (Archive::reads && std::any_of(vars, vars + deepest, [&](uint16_t v) { return v >= tables.variables; })) {
        bad_state("variable");
    }
}

template <class Archive>
void MergedEngine::fields(auto& self, Archive& archive) {
    const auto& arena = self.merger_.arena();
    const size_t partitions = self.partitions_.size();
    const int64_t end = self.merger_.end(self.partitions_, archive);
    archive.words(self.work_.nodes, self.work_.touches, self.work_.matches);
    Merger::fields(self.merger_, archive, self.partitions_);
    archive.words(self.lazy_);
    std::vector<Root> held;
    for (uint32_t k = 0; k < self.roots_.size() && !Archive::reads; ++k) {
        if (self.roots_.tail() + k != NIL) held.push_back(self.roots_[self.roots_.tail() + k]);
    }
    archive.size(held, int64_t{1} << 31);
    for (Root& root : held) root_fields(root, archive, self.tables_, arena, partitions, end);
    if constexpr (Archive::reads) {
        // Cells are freed up to the window of the first root.
        const auto earlier = [](const Root& a, const Root& b) { return a.low < b.low; };
        if (self.merger_.by_epoch() && !std::is_sorted(held.begin(), held.end(), earlier)) bad_state("order of roots");
        self.roots_.clear();
        for (const Root& root : held) self.roots_.push(root);
    }
    Cursor::fields(self.cursor_, archive, self.tables_, arena, partitions, end);
    if (Archive::reads && !self.cursor_.done()) {
        if (self.roots_.empty() || self.cursor_.root().low != self.roots_[self.roots_.tail()].low) bad_state("walk");
    }
}

void MergedEngine::dump(Writer& out) const {
    if (!walk_.done()) throw std::logic_error("in the midst of matches");
    fields(*this, out);
}
void MergedEngine::load(Reader& in) { fields(*this, in); }

template <class Archive>
void CompressedEngine::fields(auto& self, Archive& archive) {
    archive.words(self.work_.nodes, self.work_.touches, self.work_.matches);
    Merger::fields(self.merger_, archive, self.partitions_);
    archive.within(0, int64_t{NIL}, self.places_);
    archive.items(self.keys_);
    if (Archive::reads && self.keys_.size() != self.places_ * self.partitions_.width()) bad_state("keys");
    archive.items(self.place_of_);
    for (const uint32_t place : self.place_of_) {
        if (Archive::reads && place != NIL && place >= self.places_) bad_state("key of a partition");
    }
    archive.size(self.roots_, int64_t{1} << 40);
    const int64_t end = self.merger_.end(self.partitions_, archive);
    for (auto& root : self.roots_) root_fields(root, archive, self.tables_, self.merger_.arena(), self.places_, end);
}

void CompressedEngine::dump(Writer& out) const { fields(*this, out); }
void CompressedEngine::load(Reader& in) { fields(*this, in); }

}  // namespace acep

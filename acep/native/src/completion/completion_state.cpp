// The state of completion (waiting matches and events) as bytes. All references are checked when it is loaded.
#include <algorithm>

#include "completion/completion.hpp"

namespace acep {

template <class Archive>
void Completion::fields(auto& self, Archive& archive) {
    KeptRows::fields(self.arena_.kept, self.arena_.events, archive);
    if constexpr (Archive::reads) {
        self.touched_.clear();
        self.due_ = {};
    }
    archive.size(self.held_, static_cast<int64_t>(self.partitions_.size()) + 1);
    for (uint32_t p = 0; p < self.held_.size(); ++p) {
        auto& h = self.held_[p];
        const int64_t end = self.partitions_.end(p, self.tables_.strict, archive);
        archive.within(-1, end, h.last);
        Bundle::fields(h.bundle, archive);
        if constexpr (Archive::reads) h.suspects.resize(self.tables_.negations.size());
        for (size_t i = 0; i < self.tables_.negations.size(); ++i) {
            Suspects all = h.suspects.empty() ? Suspects() : h.suspects[i];
            const size_t width = self.tables_.negations[i].columns.size();
            if constexpr (!Archive::reads) all.cut(width);
            archive.items(all.ts);
            archive.items(all.positions);
            archive.items(all.rows);
            archive.items(all.valid);
            if constexpr (Archive::reads) {
                all.check(width, end);
                if (!all.ts.empty()) archive.saw(all.ts.back());
                h.suspects[i] = std::move(all);
            }
        }
        for (auto* all : {&h.undecided, &h.waiting, &h.ready}) {
            archive.size(*all, int64_t{1} << 40);
            for (auto& b : *all) {
                archive.within(0, self.tables_.budget + 1, b.error);
                archive.words(b.start, b.end);
                archive.saw(b.end);
                for (auto* column : {&b.positions, &b.ids, &b.rows, &b.values}) archive.items(*column);
                for (auto* column : {&b.vars, &b.arcs}) archive.items(*column);
                for (auto* column : {&b.valid, &b.known}) archive.items(*column);
                archive.items(b.options);
                if constexpr (Archive::reads) self.check(b, end);
            }
        }
        if constexpr (Archive::reads) {
            for (const Binding& b : h.undecided) h.earliest = std::min(h.earliest, self.key(b));
            self.touch(p);  // visited when time next advances, which puts it in the queue
        }
    }
}

void Completion::fields(Writer& out) const { fields(*this, out); }
void Completion::fields(Reader& in) { fields(*this, in); }

void Suspects::check(size_t width, int64_t end) const {
    if (positions.size() != size() || rows.size() != size() * width || valid.size() != size() * width) {
        bad_state("events of a negation");
    }
    if (!std::is_sorted(ts.begin(), ts.end()) || !std::is_sorted(positions.begin(), positions.end())) {
        bad_state("order of the events of a negation");
    }
    if (!positions.empty() && (positions.front() < 0 || positions.back() >= end)) {
        bad_state("positions of the events of a negation");
    }
}

void Completion::check(const Binding& b, int64_t end) const {
    const size_t n = b.size(), width = tables_.kept.size(), returns = tables_.returns.size();
    if (n == 0 || b.start > b.end || b.ids.size() != n || b.vars.size() != n || b.rows.size() != n * width ||
        b.valid.size() != n * width || b.values.size() != returns || b.known.size() != returns) {
        bad_state("lengths of a match");
    }
    if (!std::is_sorted(b.positions.begin(), b.positions.end()) || b.first() < 0 || b.last() >= end) {
        bad_state("positions of a match");
    }
    const auto below = [](const auto& all, size_t limit) {
        return std::all_of(all.begin(), all.end(), [&](size_t x) { return x < limit; });
    };
    // The arc of a query that changes may be gone.
    const bool known = tables_.dynamic || below(b.arcs, conditions_.arcs());
    if (!below(b.vars, tables_.variables) || !known || b.options.empty()) {
        bad_state("match");
    }
    for (const Option& o : b.options) {
        if (o.error < 0 || o.error > tables_.budget || o.arcs > b.arcs.size() || b.arcs.size() - o.arcs < n ||
            o.state >= tables_.states.size() || o.accept >= tables_.states[o.state].accepts.size()) {
            bad_state("ending of a match");
        }
    }
}

}  // namespace acep

// Scoring of nodes before they are made, from the parent and the event, so that refused nodes are never made.
#include "shedding/shedding.hpp"

namespace acep {

// Find the source of the value that an arc puts into a slot of its target; false if the value must be computed.
bool Shedding::origin(const Arc& arc, uint32_t slot, Origin& found) {
    for (const Put& p : arc.puts) {
        if (static_cast<uint32_t>(p.slot) != slot) continue;
        found = {p.from, p.column, p.from >= 0};
        switch (p.write) {
            case Write::copy: found.column = -1; return true;  // an unbound register has no number
            case Write::last: found.held = false; return p.column >= 0;
            case Write::nth: return p.extra == 1 && p.column >= 0;
            default: return false;
        }
    }
    return false;
}

void Shedding::look_ahead() {
    admission_.clear();
    for (const State& s : tables_.states) {
        for (const Arc& arc : s.arcs) {
            if (admission_.size() <= arc.number) admission_.resize(arc.number + size_t{1});
            ArcAdmission& own = admission_[arc.number];
            own.ends = tables_.states[arc.target].ends;
            own.scorable = table_.features == 1 && own.ends > 0;  // a node that may end a match is always made
            own.later = 0;
            own.whole = true;
            if (table_.terms.empty()) continue;
            const std::vector<Term>& terms = table_.terms[arc.target];
            for (uint32_t k = 0; k < terms.size(); ++k) {
                if (terms[k].worth.empty()) continue;
                const auto [least, most] = std::minmax_element(terms[k].worth.begin(), terms[k].worth.end());
                TermRange range{k, *most, *most - *least, &terms[k], {}, {}};
                const Term::Kind kind = terms[k].kind;
                const bool two = kind == Term::ratio || kind == Term::difference;
                if (kind == Term::partition ||
                    (origin(arc, terms[k].a, range.a) && (!two || origin(arc, terms[k].b, range.b)))) {
                    own.terms.push_back(range);
                } else {
                    own.later += static_cast<double>(range.most);
                    own.whole = false;
                }
            }
            std::sort(own.terms.begin(), own.terms.end(), [](const TermRange& a, const TermRange& b) {
                return a.range != b.range ? a.range > b.range : a.term < b.term;
            });
            for (size_t k = own.terms.size(); k-- > 1;) own.terms[k - 1].most += own.terms[k].most;
        }
    }
}

bool Shedding::foresee(const Arc& arc, const Coming& coming, Mark& mark) {
    const ArcAdmission& own = admission_[arc.number];
    if (own.ends <= tables_.budget - coming.error) return true;
    if (!affords()) {
        ++refused;
        return false;
    }
    ++decided;
    mark.feature = 128;
    mark.chance = table_.noise == 0 ? 0 : own.whole ? chance() >> 2 : Mark::most_chance;
    const int64_t base = sum(arc.target, coming.error, coming.start, coming.now, mark, coming.now, mark.birth);
    double total = own.later;
    bool stays = base != nothing;
    // Stops once the remaining terms cannot reach the utility threshold.
    for (size_t k = 0; k < own.terms.size() && stays; ++k) {
        const TermRange& t = own.terms[k];
        stays = static_cast<double>(base) + total + static_cast<double>(t.most) >= price || price <= 1;
        if (!stays) break;
        const Term& term = *t.of;
        total += static_cast<double>(term.of(number(term, here_, [&](bool second, int64_t& word) {
            const Origin& from = second ? t.b : t.a;
            if (from.held &&
                coming.parents.tags(static_cast<uint32_t>(from.slot), coming.slots)[coming.row] != unbound) {
                word = coming.parents.slot(static_cast<uint32_t>(from.slot))[coming.row];
                return coming.parents.tags(static_cast<uint32_t>(from.slot), coming.slots)[coming.row] == value;
            }
            if (from.column < 0) return false;
            const Column& column = coming.event.batch->columns[static_cast<size_t>(from.column)];
            word = column.values[coming.event.row];
            return !column.null(coming.event.row);
        })));
    }
    mark.feature = added(total);
    if (stays && static_cast<double>(clamped(base + mark.feature - 128)) >= price) {
        mark.decided = own.whole;  // else it is scored again once it is made
        return true;
    }
    ++refused;
    return false;
}

}  // namespace acep

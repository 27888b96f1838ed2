// Scoring of partial matches before they are made, and of events.
#include "shedding/admission.hpp"

namespace acep {

bool Admission::find_origin(const Arc& arc, uint32_t slot, Origin& origin) {
    for (const Put& p : arc.puts) {
        if (static_cast<uint32_t>(p.slot) != slot) continue;
        origin = {p.from, p.column, p.from >= 0};
        switch (p.write) {
            case Write::copy: origin.column = -1; return true;  // an unbound register has no number
            case Write::last: origin.inherits = false; return p.column >= 0;
            case Write::nth: return p.extra == 1 && p.column >= 0;
            default: return false;
        }
    }
    return false;
}

void Admission::use_table() {
    arcs_.clear();
    for (const State& s : tables_.states) {
        for (const Arc& arc : s.arcs) prepare(arc);
    }
}

void Admission::prepare(const Arc& arc) {
    if (arcs_.size() <= arc.number) arcs_.resize(arc.number + size_t{1});
    ArcAdmission& scores = arcs_[arc.number];
    scores.least_error = tables_.states[arc.target].ends;
    // A partial match that may end a match is always made.
    scores.scorable = table_.features == 1 && scores.least_error > 0;
    scores.most_unknown = 0;
    scores.complete = true;
    if (table_.terms.empty()) return;
    const std::vector<Term>& terms = table_.terms[arc.target];
    for (uint32_t k = 0; k < terms.size(); ++k) {
        if (terms[k].utility.empty()) continue;
        const auto [least, most] = std::minmax_element(terms[k].utility.begin(), terms[k].utility.end());
        TermRange range{k, *most, *most - *least, &terms[k], {}, {}};
        const Term::Kind kind = terms[k].kind;
        const bool two = kind == Term::ratio || kind == Term::difference;
        if (kind == Term::partition ||
            (find_origin(arc, terms[k].a, range.a) && (!two || find_origin(arc, terms[k].b, range.b)))) {
            scores.terms.push_back(range);
        } else {
            scores.most_unknown += static_cast<double>(range.most);
            scores.complete = false;
        }
    }
    std::sort(scores.terms.begin(), scores.terms.end(), [](const TermRange& a, const TermRange& b) {
        return a.range != b.range ? a.range > b.range : a.index < b.index;
    });
    for (size_t k = scores.terms.size(); k-- > 1;) scores.terms[k - 1].most += scores.terms[k].most;
}

double Admission::term_buckets(const TermRange& range, const Candidate& candidate, uint32_t partition) const {
    const Term& term = *range.term;
    return static_cast<double>(term.of(utilities_.number(term, partition, [&](bool second, int64_t& word) {
        const Origin& from = second ? range.b : range.a;
        const auto slot = static_cast<uint32_t>(from.slot);
        if (from.inherits) {
            if (const uint8_t tag = candidate.parents.tags(slot, candidate.slots)[candidate.row]; tag != unbound) {
                word = candidate.parents.slot(slot)[candidate.row];
                return tag == value;
            }
        }
        if (from.column < 0) return false;
        const Column& column = candidate.event.batch->columns[static_cast<size_t>(from.column)];
        word = column.values[candidate.event.row];
        return !column.null(candidate.event.row);
    })));
}

bool Admission::admit_unmade(const Arc& arc, const Candidate& candidate, uint32_t partition, Mark& mark) {
    const ArcAdmission& scores = arcs_[arc.number];
    if (scores.least_error <= tables_.budget - candidate.error) return true;
    if (!budget_.affords()) {
        ++refused;
        return false;
    }
    budget_.count_decisions();
    mark.feature = 128;
    mark.chance = table_.noise == 0 ? 0 : scores.complete ? utilities_.draw_chance() : Mark::most_chance;
    const int64_t base = utilities_.unclamped(arc.target, candidate.error, candidate.start, candidate.now, mark,
                                              candidate.now, mark.birth);
    const double threshold = budget_.threshold();
    double buckets = scores.most_unknown;
    bool stays = base != Utilities::no_utility;
    // Stops once the remaining terms cannot reach the utility threshold.
    for (size_t k = 0; k < scores.terms.size() && stays; ++k) {
        const TermRange& range = scores.terms[k];
        stays = static_cast<double>(base) + buckets + static_cast<double>(range.most) >= threshold || threshold <= 1;
        if (stays) buckets += term_buckets(range, candidate, partition);
    }
    mark.feature = Utilities::feature_of(buckets);
    if (stays && static_cast<double>(Utilities::clamped(base + mark.feature - 128)) >= threshold) {
        mark.decided = scores.complete;  // else it is scored again once it is made
        return true;
    }
    ++refused;
    return false;
}

bool Admission::score(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark mark) {
    const bool sheds = budget_.sheds();
    utilities_.set_feature(mark, made, row, state, partition, !sheds);
    slots_.set_mark(made, row, state, mark);
    if (!sheds) return true;
    if (!budget_.affords()) {
        ++refused;
        return false;
    }
    budget_.count_decisions();
    const uint32_t bucket =
        utilities_.bucket(state, made.errors()[row], made.starts()[row], now, mark, now, mark.birth);
    if (bucket != 0 && static_cast<double>(bucket) >= budget_.threshold()) return true;
    ++refused;
    return false;
}

bool Admission::admit_event(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest) {
    if (table_.admit.empty() || budget_.threshold() <= 0) return true;
    const int64_t places = table_.places;
    int64_t place = 0;
    if (tables_.span >= 0 && oldest < now && places > 1) {
        const double share = static_cast<double>(apart(now, oldest)) / (static_cast<double>(tables_.span) + 1);
        place = std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(places)), 0, places - 1);
    }
    if (!budget_.affords()) {
        ++skipped;
        return false;
    }
    budget_.count_decisions();
    int64_t best = 0;
    for (uint32_t c : classes) {
        best = std::max<int64_t>(best, table_.admit[c * static_cast<size_t>(places) + static_cast<size_t>(place)]);
    }
    if (table_.noise > 0) best += utilities_.draw() * table_.noise >> 8;
    if (static_cast<double>(best) >= budget_.threshold()) return true;
    ++skipped;
    return false;
}

}  // namespace acep

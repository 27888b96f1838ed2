// The arcs of an automaton that changes (nodes/changing_arcs.hpp).
#include "nodes/changing_arcs.hpp"

#include <algorithm>
#include <stdexcept>

namespace acep {

bool ChangingArcs::is_same_plan(const Tables& tables) const {
    bool same = tables_.dynamic && tables.dynamic && tables.states.size() >= tables_.states.size() &&
                tables.variables >= tables_.variables && tables.span == tables_.span &&
                tables.counted == tables_.counted && tables.strict == tables_.strict && tables.told == tables_.told &&
                tables.partitions == tables_.partitions && tables.choice == tables_.choice &&
                tables.skip == tables_.skip && tables.firsts == tables_.firsts &&
                tables.kept.size() >= tables_.kept.size() && tables.negations.size() >= tables_.negations.size() &&
                tables.returns.size() == tables_.returns.size();
    for (size_t s = 0; same && s < tables_.states.size(); ++s) {
        same = tables.states[s].slots == tables_.states[s].slots;
    }
    return same;
}

bool ChangingArcs::may_add(const Tables& tables) const {
    return is_same_plan(tables) && tables.states.size() == tables_.states.size() && tables_.told != 0 &&
           tables_.frames.empty() && tables.frames.empty() && !tables_.completes() &&
           std::ranges::all_of(tables.states, [](const State& s) { return s.ignoring.empty(); });
}

void ChangingArcs::add_arc(Arc arc) {
    auto& arcs = tables_.states[arc.source].arcs;
    arc.number = static_cast<uint16_t>(places_.size());
    places_.emplace_back(arc.source, static_cast<uint32_t>(arcs.size()));
    arcs.push_back(std::move(arc));
}

void ChangingArcs::add(Tables& tables) {
    find_places();
    if (places_.size() + tables.arcs() > most_arcs) throw std::invalid_argument("tables: number of arcs");
    const auto n_assigns = static_cast<int64_t>(tables_.assigns.size());
    for (State& state : tables.states) {
        for (Arc& arc : state.arcs) {
            for (Put& put : arc.puts) {
                if (put.write == Write::assign) put.extra += n_assigns;
            }
            add_arc(std::move(arc));
        }
    }
    tables_.assigns.insert(tables_.assigns.end(), tables.assigns.begin(), tables.assigns.end());
    tables_.classes = tables.classes;
    tables_.columns = tables.columns;
    tables_.variables = tables.variables;
}

bool ChangingArcs::set_times(const std::vector<ArcTimes>& times) {
    find_places();
    const size_t n_before = places_.size();
    size_t n_arcs = n_before;
    bool fits = true;
    for (const ArcTimes& arc : times) {
        fits = fits && arc.number <= n_arcs && arc.like < n_arcs;
        n_arcs += fits && arc.number == n_arcs ? 1 : 0;
    }
    if (!fits || n_arcs > most_arcs) throw std::invalid_argument("arcs: no such number");
    for (const ArcTimes& arc : times) {
        if (arc.number == places_.size()) {
            const auto [state, place] = places_[arc.like];
            add_arc(tables_.states[state].arcs[place]);
        }
        const auto [state, place] = places_[arc.number];
        tables_.states[state].arcs[place].lifetime = arc.lifetime;
    }
    return n_arcs != n_before;
}

void ChangingArcs::find_places() {
    if (!places_.empty()) return;
    std::vector<std::pair<uint32_t, uint32_t>> places(tables_.arcs());
    for (uint32_t s = 0; s < tables_.states.size(); ++s) {
        const auto& arcs = tables_.states[s].arcs;
        for (uint32_t i = 0; i < arcs.size(); ++i) {
            if (arcs[i].number >= places.size()) throw std::invalid_argument("arcs: no such number");
            places[arcs[i].number] = {s, i};
        }
    }
    places_ = std::move(places);
}

}  // namespace acep

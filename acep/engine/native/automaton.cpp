// Making D-states and what events do in them.
#include "automaton.hpp"

#include <algorithm>
#include <stdexcept>

namespace acep {

bool mergeable(const Tables& tables) {
    if (tables.completes() || (tables.contiguous() && tables.budget > 0)) return false;
    for (const State& s : tables.states) {
        if (s.slots != 0 || !s.ending.empty()) return false;
        for (const Accept& a : s.accepts) {
            if (!a.crossings.empty()) return false;
        }
        for (const Arc& a : s.arcs) {
            if (!a.leaving.empty() || !a.binding.empty() || !a.crossings.empty()) return false;
        }
    }
    return true;
}

Automaton::Automaton(const Tables& tables, const Front& front) : tables_(tables), front_(front) {
    if (!mergeable(tables)) throw std::invalid_argument("tables: predicates or costs tie the events of this plan together");
    states_.push_back({{0, 0}});  // D-state 0: nothing is bound. No other is like it, since no arc leads to state 0
    numbers_.emplace(states_.front(), start);
}

uint32_t Automaton::number(const Places& places) {
    Places live;
    for (const Place& p : places) {
        const auto& arcs = tables_.states[p.state].arcs;
        const bool goes_on = std::any_of(arcs.begin(), arcs.end(), [&](const Arc& a) {
            return p.error + a.weight + tables_.states[a.target].rest <= tables_.budget;
        });
        if (goes_on) live.push_back(p);
    }
    if (live.empty()) return NOWHERE;
    auto [found, fresh] = numbers_.try_emplace(live, static_cast<uint32_t>(states_.size()));
    if (fresh) {
        if (states_.size() == most_states) {
            numbers_.erase(found);
            throw std::runtime_error("the pattern is too ambiguous to be merged: more than 65536 sets of states");
        }
        states_.push_back(std::move(live));
    }
    return found->second;
}

Automaton::Step Automaton::make(uint32_t pattern, uint32_t state) {
    const Places here = states_[state];
    std::map<uint16_t, std::map<uint32_t, int64_t>> reached;  // by variable, by state: the least error
    std::map<uint16_t, uint16_t> number_of_arc;
    Places waiting;
    for (const Place& p : here) {
        bool taken = false;
        for (const Arc& arc : tables_.states[p.state].arcs) {
            if (!front_.has(pattern, arc.event_class)) continue;
            taken = taken || (arc.blocking && tables_.strategy == Strategy::next);
            const int64_t error = p.error + arc.weight;
            if (error + tables_.states[arc.target].rest > tables_.budget) continue;
            auto [known, fresh] = reached[arc.var].try_emplace(arc.target, error);
            if (!fresh) known->second = std::min(known->second, error);
            number_of_arc.try_emplace(arc.var, arc.number);
        }
        if (!taken && !tables_.contiguous()) waiting.push_back(p);
    }
    std::vector<Move> moves;
    for (const auto& [var, targets] : reached) {
        Move move{NOWHERE, var, number_of_arc[var], -1};
        Places places;
        int64_t least = tables_.budget + 1;
        for (auto [target, error] : targets) {
            places.push_back({target, error});
            for (const Accept& a : tables_.states[target].accepts) least = std::min(least, error + a.cost);
        }
        if (least <= tables_.budget) move.error = least;
        move.live = number(places);
        if (move.error >= 0 || move.live != NOWHERE) moves.push_back(move);
    }
    if (moves_.size() + moves.size() >= UNKNOWN) throw std::length_error("too many moves");
    Step step{static_cast<uint32_t>(moves_.size()), static_cast<uint32_t>(moves.size()),
              state == start ? start : number(waiting)};
    moves_.insert(moves_.end(), moves.begin(), moves.end());
    if (steps_.size() <= pattern) steps_.resize(pattern + 1);
    auto& known = steps_[pattern];
    if (known.size() <= state) known.resize(std::max(states_.size(), size_t{state} + 1), {UNKNOWN, 0, NOWHERE});
    known[state] = step;
    return step;
}

size_t Automaton::bytes() const {
    size_t total = moves_.capacity() * sizeof(Move);
    for (const auto& s : states_) total += 2 * s.capacity() * sizeof(Place) + 128;
    for (const auto& s : steps_) total += s.capacity() * sizeof(Step);
    return total;
}

}  // namespace acep

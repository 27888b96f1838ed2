// Construction of D-states (sets of automaton states) and of their transitions, on demand.
#include "plan/automaton.hpp"

#include <algorithm>
#include <stdexcept>

namespace acep {

bool mergeable(const Tables& tables) {
    if (tables.completes() || tables.trailing() || (tables.contiguous() && tables.budget > 0)) return false;
    for (const State& s : tables.states) {
        if (s.slots != 0 || !s.ending.empty()) return false;
        for (const Arc& a : s.arcs) {
            if (!a.leaving.empty() || !a.binding.empty() || !a.crossings.empty()) return false;
        }
    }
    return true;
}

Automaton::Automaton(const Tables& tables, const EventClassifier& classifier)
    : tables_(tables), classifier_(classifier) {
    if (!mergeable(tables))
        throw std::invalid_argument("tables: predicates or costs tie the events of this plan together");
    states_.push_back({{0, 0}});  // D-state 0: nothing is bound. It is unique, as no arc leads to state 0
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
            if (!classifier_.has(pattern, arc.event_class)) continue;
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
            least = std::min(least, error + tables_.states[target].ends);
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

void Automaton::fields(Writer& out) const {
    out.number(static_cast<int64_t>(states_.size()));
    for (const Places& places : states_) {
        std::vector<int64_t> words;
        for (const Place& p : places) words.insert(words.end(), {p.state, p.error});
        out.items(words);
    }
}

void Automaton::fields(Reader& in) {
    const int64_t many = in.number(1, static_cast<int64_t>(most_states) + 1);
    states_.clear();
    numbers_.clear();
    moves_.clear();
    steps_.clear();
    for (int64_t i = 0; i < many; ++i) {
        const auto words = in.items<int64_t>();
        if (words.empty() || words.size() % 2 != 0) bad_state("D-state");
        Places places;
        for (size_t k = 0; k < words.size(); k += 2) {
            const bool known = words[k] >= 0 && words[k] < static_cast<int64_t>(tables_.states.size());
            if (!known || words[k + 1] < 0 || words[k + 1] > tables_.budget) bad_state("D-state");
            places.push_back({static_cast<uint32_t>(words[k]), words[k + 1]});
            if (k > 0 && places[k / 2 - 1].state >= places[k / 2].state) bad_state("D-state");
        }
        if ((i == 0) != (places == Places{{0, 0}})) bad_state("D-state");
        if (!numbers_.emplace(places, static_cast<uint32_t>(i)).second) bad_state("D-state");
        states_.push_back(std::move(places));
    }
}

int64_t Automaton::bytes() const {
    int64_t total = heap_bytes(moves_);
    for (const auto& s : states_) total += 2 * heap_bytes(s) + 128;
    for (const auto& s : steps_) total += heap_bytes(s);
    return total;
}

}  // namespace acep

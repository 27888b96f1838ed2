// The arcs of an automaton that changes while the stream runs, by their numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/tables.hpp"

namespace acep {

class ChangingArcs {
public:
    // The tables must outlive it.
    explicit ChangingArcs(Tables& tables) : tables_(tables) {}

    // Forget where arcs are, as the tables are others.
    void forget() { places_.clear(); }
    // Return whether partial matches can go on with other tables.
    bool is_same_plan(const Tables& tables) const;
    // Return whether arcs of other tables with the same states can be added: only those of hand-written automata, whose
    // arcs keep no lists of frames and pass no negations.
    bool may_add(const Tables& tables) const;
    // Add the arcs of other tables with the same states; their numbers follow those of the arcs so far. Throw
    // std::invalid_argument if they are too many.
    void add(Tables& tables);
    // Set the times of arcs by their numbers; one with the number after the last is a copy of another. Return whether
    // there are new arcs. Throw std::invalid_argument if there is no such number; then nothing has changed.
    bool set_times(const std::vector<ArcTimes>& times);

private:
    // Find the place of each arc by its number. The numbers are those from 0 on.
    void find_places();
    // Add an arc in its state; what refers to the arcs of the state must be made anew.
    void add_arc(Arc arc);

    Tables& tables_;
    std::vector<std::pair<uint32_t, uint32_t>> places_;  // by number of an arc, once needed: its state, and its place
};

}  // namespace acep

// The automaton of a plan without registers, made deterministic on demand: each binding is one walk.
//
// Several runs may have one binding, which counts once, with the least error. A *D-state* is therefore the set of
// states of the runs of one binding, each with its least error so far. The effect of an event depends only on its
// pattern (event_classifier.hpp), and is computed when the pattern first occurs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/state.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

constexpr uint32_t NOWHERE = 0xFFFFFFFFu;

// Return whether the engines over D-states can run a plan: no predicate relates events beyond the partition, complete
// runs are written directly, and under contiguity no cost depends on gaps.
bool mergeable(const Tables& tables);

// The automaton over D-states: sets of states, each with the least error of a run in it. Steps are computed when
// they are first needed, and stored; tables and classes must stay.
class Automaton {
public:
    static constexpr size_t most_states = size_t{1} << 16;
    static constexpr uint32_t start = 0;

    // One way to bind the event to a variable. The binding goes on from D-state `live`, or NOWHERE; it is complete
    // with this event if `error` >= 0.
    struct Move {
        uint32_t live;
        uint16_t var;
        uint16_t arc;  // one of the arcs that make this binding
        int64_t error;
    };
    // The effect of one pattern on a D-state: the moves that bind the event, and the D-state of runs that do not.
    struct Step {
        uint32_t first;
        uint32_t count;
        uint32_t waits;
    };

    Automaton(const Tables& tables, const EventClassifier& classifier);

    // Return the effect of an event pattern on a D-state.
    Step step(uint32_t pattern, uint32_t state) {
        if (pattern < steps_.size() && state < steps_[pattern].size()) {
            const Step& known = steps_[pattern][state];
            if (known.first != UNKNOWN) return known;
        }
        return make(pattern, state);
    }
    // Return the i-th move of a step; computing another step may invalidate the reference.
    const Move& move(const Step& step, uint32_t i) const { return moves_[step.first + i]; }

    // Apply an event to the live D-states of a partition. A D-state is removed unless its runs may ignore the event and
    // stay there. Call follow(step, live) for the moves that bind the event, and goes(state, live) if the runs that
    // ignore it go to another D-state.
    template <class Live>
    void advance(std::vector<Live>& all, uint32_t pattern, auto&& in_window, auto&& follow, auto&& goes) {
        for (size_t i = 0; i < all.size();) {
            const Live here = all[i];
            uint32_t waits = NOWHERE;
            if (in_window(here)) {
                const Step step = this->step(pattern, here.state);
                waits = step.waits;
                if (step.count != 0) follow(step, here);
                if (waits != here.state && waits != NOWHERE) goes(waits, here);
            }
            if (waits == here.state) {
                ++i;
            } else {
                all[i] = all.back();
                all.pop_back();
            }
        }
    }
    // Call f(live) for each move of a step after which the binding goes on.
    void each_live(const Step& step, auto&& f) const {
        for (uint32_t i = 0; i < step.count; ++i) {
            if (const uint32_t live = move(step, i).live; live != NOWHERE) f(live);
        }
    }
    // Return whether the binding goes on after some move of a step.
    bool any_live(const Step& step) const {
        bool found = false;
        each_live(step, [&](uint32_t) { found = true; });
        return found;
    }

    // Call f(state, error) for the runs of a D-state: their states, each with its least error.
    void each_place(uint32_t number, auto&& f) const {
        for (const Place& place : states_[number]) f(place.state, place.error);
    }

    // Write the D-states by the numbers that other parts of the state use, or read those of an automaton of the same
    // tables.
    void fields(Writer& out) const;
    void fields(Reader& in);

    // Return the number of D-states so far.
    size_t states() const { return states_.size(); }
    // Return the bytes on the heap, without the map of numbers.
    int64_t bytes() const;

private:
    // A state in a D-state, with the least error of the runs there.
    struct Place {
        uint32_t state;
        int64_t error;
        auto operator<=>(const Place&) const = default;
    };
    using Places = std::vector<Place>;  // in rising order of state

    static constexpr uint32_t UNKNOWN = 0xFFFFFFFFu;

    // Compute and store the step of a pattern and a D-state.
    Step make(uint32_t pattern, uint32_t state);
    // Return the number of the D-state of those places from which a run can still go on.
    uint32_t number(const Places& places);

    const Tables& tables_;
    const EventClassifier& classifier_;
    std::vector<Places> states_;
    std::map<Places, uint32_t> numbers_;
    std::vector<Move> moves_;
    std::vector<std::vector<Step>> steps_;  // by pattern, by D-state
};

}  // namespace acep

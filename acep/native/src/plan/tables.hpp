// The flat tables of a plan, checked: states, arcs, predicates, register writes. acep/plan/lower/tables.py makes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/columns.hpp"

namespace acep {

// The event selection strategy: skip till any match, skip till next match, partition contiguity, strict contiguity.
enum class Strategy : int64_t { any = 0, next = 1, partition = 2, strict = 3 };

// The source of a value; the meaning of `a` and `b` depends on it.
enum class From : int64_t {
    event = 0,     // column a of the event
    one = 1,       // 1, or 0 where column a is null (a = -1: always 1)
    slot = 2,      // register slot a
    total = 3,     // slots a (low) and a + 1 (high): an integer sum; null beyond 64 bits
    average = 4,   // integer sum in slots a and a + 1, over the count in slot b, in units of 10^-places
    mean = 5,      // float sum in slot a, over the count in slot b
    frame = 6,     // component b of the frame taken from loop a
};

// Where a program's leaf takes its value from.
struct Source {
    From from;
    int32_t a;
    int32_t b;
    int32_t places = 0;  // of an average; the arrays have it above the lowest 20 bits of b
};

// A predicate with the sources of its leaves. With `only >= 0`, it applies only if count slot `only` is `turn`.
struct Check {
    uint32_t program;
    int32_t only;
    int64_t turn;
    std::vector<Source> sources;
    std::vector<int32_t> loops;  // slots of frame lists
};

// How a slot of the target state is set; `from` is a slot of the source state or -1.
enum class Write : int64_t {
    copy = 0,
    last = 1,      // column
    nth = 2,       // column; the `extra`-th event, counted in slot `counter`
    count = 3,
    sum = 4,       // column; two slots
    add = 5,       // column, floats
    least = 6,     // column; extra: 0 integers, 1 floats, 2 texts
    greatest = 7,
    nonnull = 8,
    frames = 9,    // extra: the frame
    position = 10, // of the first event
    assign = 11,   // extra: the assignment
    // The engine itself puts these in place of simple assignments.
    plus = 12,     // extra: is added to slot `from`
    constant = 13, // extra: the value
};

// How an arc sets a slot.
struct Put {
    Write write;
    int32_t slot;  // of the target
    int32_t from;
    int32_t column;
    int32_t counter;
    int64_t extra;
};

// A new value of a register of a hand-written automaton: a program with the sources of its leaves.
struct Assign {
    uint32_t program;
    std::vector<Source> sources;
};

// The times of events for which an arc is valid.
struct Lifetime {
    int64_t first, last;
    // Return whether an arc is valid for an event of this time.
    bool has(int64_t ts) const { return ts >= first && ts <= last; }
};

// The times of an arc that has a number. If it is a new arc, it is `like` another one in all but its times.
struct ArcTimes {
    size_t number, like;
    Lifetime lifetime;
};

// An ignorable arc: an event of the class for which the checks hold passes, and a partial match stays as it is.
struct Ignore {
    uint32_t event_class;
    std::vector<Check> checks;
    Lifetime lifetime;
};

// Events of a class for which the checks hold: they break a negation so that no partial match in a state can go on.
struct Ended {
    uint32_t event_class;
    std::vector<Check> checks;
};

// A way of an arc to skip components: the weight of what is missing, and how many letters (events) that is.
struct Gap {
    int64_t weight;
    int64_t letters;
};

// A negation that a run crosses on an arc or an ending, and the groups that it enters behind the negation.
struct Crossing {
    uint32_t negation;
    std::vector<uint32_t> entered;
};

// A transition of the automaton that binds an event. `leaving`: conditions of what the arc leaves. `blocking`: it
// skips no letter and stays in the innermost repetition, so that under skip till next match the event must be
// taken.
struct Arc {
    uint32_t source;
    uint32_t target;
    uint16_t var;
    uint16_t number;  // its place among all arcs, in a query with versions those of all versions
    uint32_t history; // equal for arcs that cross the same negations and enter the same groups
    uint32_t event_class;
    int64_t weight;
    bool blocking;
    std::vector<Gap> gaps;
    std::vector<Check> leaving;
    std::vector<Check> binding;
    std::vector<Put> puts;
    std::vector<Crossing> crossings;
    std::vector<uint32_t> resets;
    Lifetime lifetime;
};

// A way to end a run in a state: the cost of what is missing behind it, and the negations there.
struct Accept {
    int64_t cost;
    std::vector<Crossing> crossings;
};

// A state of the automaton, in which a component was bound last; state 0 is before the first event.
struct State {
    int64_t rest;  // least error still to be added; budget + 1 if no end can be reached
    uint32_t slots;
    int64_t ends;  // least cost of an ending; budget + 1 if there is none
    std::vector<Arc> arcs;
    std::vector<Accept> accepts;
    std::vector<Check> ending;
    std::vector<Ignore> ignoring;
    std::vector<Ended> ended;
};

// The complete matches that are output (docs/reference/semantics.md, "HAVING, RETURN, output").
enum class Choice : int64_t { all = 0, non_overlap = 1, earliest_maximal = 2, longest = 3, shortest = 4 };

// Whether a match that is given says where others may not begin.
constexpr bool sequential(Choice choice) { return choice != Choice::all && choice != Choice::earliest_maximal; }

// Whether matches are chosen in the order of their first events.
constexpr bool by_first_event(Choice choice) { return choice == Choice::longest || choice == Choice::shortest; }

// Where the next match may begin after one that is given: after its last event, after its first one, or at the first or
// last event that it binds to a variable.
enum class SkipPlace : int64_t { past_last = 0, next = 1, first_of = 2, last_of = 3 };
// Where the next match may begin; `variable`: of a place that asks for one.
struct SkipTarget {
    SkipPlace place = SkipPlace::past_last;
    uint16_t variable = 0;
    bool operator==(const SkipTarget&) const = default;
};

// The value of a reference to the events of a variable, from column `column`, which is kept with these events.
enum class How : int64_t {
    length = 0,    // number of events
    nth = 1,       // value of the n-th event
    last = 2,
    count = 3,     // number of values that are not null
    sum = 4,       // integers; null beyond 64 bits
    add = 5,       // floats
    least = 6,     // n: 0 integers, 1 floats, 2 texts
    greatest = 7,
    average = 8,   // of integers, in units of 10^-n
    mean = 9,      // of floats
    each = 10,     // value of the current event of loop `loop`
    previous = 11, // value of the event before it
    distinct = 12, // number of different values that are not null
    spread = 13,   // standard deviation; n: 0 of a sample, 1 of a population; 2 and 3: the same of floats
};

// A reference to the events of a variable in a condition over whole bindings.
struct Ref {
    int32_t var;      // -1: the event that may break a negation
    How how;
    int32_t column;
    int64_t n;
    int32_t loop;     // >= 0: for the loop's current event, or the events before it; -1: for all events
    bool fallback;    // if there is no event, the value is `otherwise`, not null
    int64_t otherwise;
};

// A condition on an event that may break a negation. It must hold for all combinations of events of its loops, from
// index `low` on; it fails if a variable of `least` has fewer events than required.
struct Conjunct {
    // A loop over the events of a variable.
    struct Loop {
        uint32_t var;
        size_t low;
    };
    // The least number of events that a variable must have.
    struct Least {
        uint32_t var;
        size_t events;
    };
    uint32_t program;
    std::vector<Ref> refs;
    std::vector<Loop> loops;
    std::vector<Least> least;
};

// A component of which no event may stand between those around it.
struct Negation {
    uint32_t event_class;
    int64_t weight;                  // of each event that breaks it; -1: infinite
    std::vector<uint32_t> around;    // the enclosing groups, outermost first
    int64_t since;                   // events before it do not break it
    std::vector<uint32_t> columns;   // kept with events that may break it
    std::vector<Conjunct> conjuncts; // conditions beyond its event class
};

// An expression over a whole binding.
struct Whole {
    uint32_t program;
    std::vector<Ref> refs;
};

constexpr size_t most_arcs = 0xFFFE;
constexpr int most_of_frame = 6;  // values that a frame has room for (acep/plan/lower/tables.py, MOST_OF_FRAME)

// The tables of a plan, checked when they are read: every number in them is in its range.
struct Tables {
    Strategy strategy;
    int64_t budget;   // scaled
    int64_t surplus;  // the cost of an event of a gap beyond its missing letters, under contiguity; -1: it breaks it
    int64_t span;     // -1: no window
    bool counted;
    bool strict;      // positions count the events of the whole stream
    bool unambiguous; // the bound events determine the run: equal nodes may be united
    uint32_t partitions;  // number of the session's partition table
    uint32_t classes;     // of the session
    uint32_t columns;     // of the session
    uint32_t variables;
    std::vector<State> states;
    std::vector<std::vector<Source>> frames;
    std::vector<Assign> assigns;
    bool dynamic = false;  // arcs may come and go
    uint32_t told = 0;  // values of a match that its last node has: the state and the registers; 0: none
    Choice choice = Choice::all;
    SkipTarget skip;
    bool firsts = false;  // the last slot of each state is the position of the first event
    bool rises = false;  // HAVING, if it fails for a run, fails for those that begin later and end with the same event
    std::vector<uint32_t> kept;  // columns kept with bound events
    int64_t order_by = -1;  // which of these is compared instead of event ids; -1: the ids
    std::vector<uint32_t> ranks;  // of the variables, by name
    std::vector<std::vector<uint8_t>> groups;  // by group and variable: whether the group contains it
    std::vector<Negation> negations;
    std::vector<Whole> having;  // one or none
    std::vector<Whole> returns;

    // Return whether a complete run goes through more steps before it is written.
    bool completes() const {
        return choice != Choice::all || !negations.empty() || !having.empty() || !returns.empty();
    }
    // Return whether a complete run may have to wait.
    bool waits() const { return choice != Choice::all || trailing(); }
    // Return whether a negation follows the last event of some run.
    bool trailing() const {
        return std::any_of(states.begin(), states.end(), [](const State& s) {
            return std::any_of(s.accepts.begin(), s.accepts.end(),
                               [](const Accept& a) { return !a.crossings.empty(); });
        });
    }
    // Return whether a negation stands before the first event of some run.
    bool leading() const {
        return std::any_of(states[0].arcs.begin(), states[0].arcs.end(),
                           [](const Arc& a) { return !a.crossings.empty(); });
    }
    // Return the time or the position of an event, depending on the unit of the window.
    int64_t key(const auto& event) const { return counted ? event.position : event.ts; }
    // Return the number of arcs.
    size_t arcs() const {
        size_t found = 0;
        for (const State& s : states) found += s.arcs.size();
        return found;
    }
    // Return whether there is a window in time.
    bool timed() const { return span >= 0 && !counted; }
    // Return the time when a partial match that began at `start` leaves the window; there must be one.
    int64_t expiry(int64_t start) const {
        int64_t end;
        return __builtin_add_overflow(start, span, &end) ? std::numeric_limits<int64_t>::max() : end;
    }
    // Return whether the strategy is one of contiguity.
    bool contiguous() const { return strategy == Strategy::partition || strategy == Strategy::strict; }
};

// Read the tables from arrays. Throw std::invalid_argument if the arrays do not fit together. `programs`: the number of
// leaves of each block program of the session.
Tables tables_from(const Arrays& arrays, const std::vector<uint32_t>& programs);

}  // namespace acep

// How a search goes back from an event that may end matches: which event pattern it looks for next, by which key, and
// what it checks (docs/internals/search.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nodes/register_keys.hpp"
#include "plan/event_classifier.hpp"
#include "plan/tables.hpp"

namespace acep {

// An event of a path, counted from the first one, and a place among the values that are kept with an event; or (`one`)
// whether the value at this place is not null. A place of -1 is never null.
struct SearchRef {
    uint32_t level;
    int32_t place;
    bool one;
};

// A predicate between events.
struct SearchCheck {
    uint32_t program;
    std::vector<SearchRef> refs;
    std::optional<SimplePredicate> simple;  // the same without a program
};

// A condition on a row by one of its values, which fails for all higher values (or all lower ones) where it fails for
// one. Then the walk goes on at the row before it with a lower value (or a higher one).
struct SearchOrder {
    SearchCheck check;
    uint32_t place;  // of the link among those of a row
};

// Rows of an earlier event that a row needs before it, and what these need in turn. With the row is noted how late the
// first of them may be at best; as none is added later, that never changes.
struct SearchNeed {
    uint32_t level;
    uint32_t index;  // that of the rows of its class and partition
    uint32_t place;  // of the note among those of a row
    uint32_t step;   // the one of these rows
    std::optional<SearchOrder> order;
    std::vector<SearchCheck> checks;  // those of these two events
};

// An attribute that a row has in common with an event that is bound already, or that is near to one of it.
struct SearchLink {
    RegisterKey::Part part;  // `slot` and `column`: the place of the attribute in the row
    SearchRef other;
};

// One step of a search: rows for the event `level`, which lie between those of `above` and `below`.
struct SearchStep {
    uint32_t level;
    uint32_t kind;         // number of its event class among those of the plan
    uint32_t above;        // the next later event that is bound
    int32_t below;         // the next earlier one that is bound; -1: none
    uint32_t index;        // its rows are found through this index
    bool follows;          // the row of `above` has a link to the last row of the index before it
    bool near;             // the key has a band
    bool greedy;           // if the search fails from a row, it fails from all earlier ones
    int32_t failures;      // where rows from which the search has failed are noted; -1: that depends on other rows
    std::vector<SearchLink> links;   // the key of the index
    std::vector<SearchLink> equal;   // equalities of the key, which are compared with the row
    std::optional<SearchOrder> order;  // only where the index has all rows of a partition
    std::vector<SearchCheck> checks;
    std::vector<SearchNeed> needs;
};

// An index over rows of one event class, by the cells of some attributes. Without any it has the rows of a partition.
struct SearchIndex {
    uint32_t kind;
    std::vector<RegisterKey::Part> parts;
    bool operator==(const SearchIndex&) const = default;
};

// Links between the rows of an index over the rows of a partition: to the last one before with a lower value, or a
// higher one. A row without a value is beyond all others.
struct SearchRanks {
    uint32_t index;
    uint32_t value;  // place of the value
    bool doubles;
    bool lower;
    bool operator==(const SearchRanks&) const = default;
};

// One way through the automaton, with its total error, and how to search for its events.
struct SearchPath {
    int64_t error;
    uint32_t last_kind;  // of its last event
    uint32_t levels;     // number of its events
    std::vector<uint16_t> vars;  // by level: the variable
    std::vector<SearchStep> steps;
};

// The paths of a pattern as steps of a search, with the indexes that these need.
struct SearchPlan {
    std::vector<uint32_t> classes;  // by kind: the event class
    std::vector<uint32_t> columns;  // by place: the column of the session
    std::vector<SearchPath> paths;  // those of least error first
    std::vector<SearchIndex> indexes;
    std::vector<SearchRanks> ranks;
    uint32_t failures = 0;  // number of steps that note failures
    uint32_t needs = 0;     // number of notes of needed rows
    uint32_t kept = 0;      // kinds of events that are not only the last ones, as bits
    uint32_t ending = 0;    // kinds of last events, as bits
    uint32_t first = 0;     // kinds of first events, as bits
};

// Make the plan of a search. Throw std::invalid_argument if the pattern of the tables has no small number of sequences
// of single events that may be bound freely (acep/plan/searching.py).
SearchPlan search_plan(const Tables& tables, const std::vector<BlockProgram>& programs);

}  // namespace acep

// Admission under a budget: of events, and of new partial matches. These are scored before they are made where that is
// possible, from the parent and the event, so that refused ones are never made.
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "plan/tables.hpp"
#include "shedding/hidden_slots.hpp"
#include "shedding/mark.hpp"
#include "shedding/shedding_table.hpp"
#include "shedding/touch_budget.hpp"
#include "shedding/utilities.hpp"

namespace acep {

// The source of a register of a partial match that may be made.
struct Origin {
    int32_t slot = -1;  // of the parent
    int32_t column = -1;  // of the event, if the parent's slot is unbound
    bool inherits = false;  // whether the parent's slot is used
};

// A term of the utility whose number is known before the partial match is made.
struct TermRange {
    uint32_t index;  // among the terms of the state
    float most, range;  // `most`: the most that this term and those after it add
    const Term* term;  // in the shedding table
    Origin a, b;
};

// How the partial matches that an arc makes are scored before they are made.
struct ArcAdmission {
    bool scorable = false;  // whether they can be
    int64_t least_error = 0;  // least error that an ending at the arc's target adds
    bool complete = true;  // all terms are known
    double most_unknown = 0;  // the most buckets that the unknown terms add
    std::vector<TermRange> terms;  // those of the largest range first
};

// A partial match that may be made: its parent's row in a list, and an event.
struct Candidate {
    NodeList& parents;
    uint32_t row;
    uint32_t slots;  // of the parent
    const Event& event;
    int64_t start;
    int64_t error;
    int64_t now;
};

// Refusals are counted. Each decision by utility costs a look-up, which is charged to the budget.
class Admission {
public:
    Admission(const Tables& tables, const SheddingTable& table, TouchBudget& budget, Utilities& utilities)
        : slots_(tables), tables_(tables), table_(table), budget_(budget), utilities_(utilities) {}

    // Prepare the scores of each arc for the shedding table, which has changed.
    void use_table();
    // Return whether the partial matches of an arc must and can be scored before they are made.
    bool scores_unmade(const Arc& arc) const {
        return budget_.sheds() && arc.number < arcs_.size() && arcs_[arc.number].scorable;
    }
    // Return whether a partial match is admitted before an arc makes it, if `scores_unmade`. `mark`: that of the
    // parent, then its own.
    bool admit_unmade(const Arc& arc, const Candidate& candidate, uint32_t partition, Mark& mark);
    // Return whether a new partial match is admitted, and set its feature and chance.
    bool admit(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now) {
        int64_t& word = slots_.mark_word(made, row, state);
        if ((word & Mark::decided_bit) == 0) return score(made, row, state, partition, now, Mark::of(word));
        word &= ~Mark::decided_bit;
        return true;
    }
    // Return whether an event of some classes is admitted. `oldest`: the earliest start in its partition.
    bool admit_event(const std::vector<uint32_t>& classes, int64_t now, int64_t oldest);

    int64_t refused = 0;  // new partial matches that were not kept
    int64_t skipped = 0;  // events that were not admitted
    int64_t keyless = 0;  // those of them skipped for lack of room for another key

private:
    // Find the source of the value that an arc puts into a slot of its target; return false if it must be computed.
    static bool find_origin(const Arc& arc, uint32_t slot, Origin& origin);
    // Prepare the scores of an arc.
    void prepare(const Arc& arc);
    // Return the buckets that a term adds to a candidate.
    double term_buckets(const TermRange& range, const Candidate& candidate, uint32_t partition) const;
    // Return whether a new partial match, which was not decided before it was made, is admitted; complete its mark.
    bool score(NodeList& made, uint32_t row, uint32_t state, uint32_t partition, int64_t now, Mark mark);

    const HiddenSlots slots_;
    const Tables& tables_;
    const SheddingTable& table_;
    TouchBudget& budget_;
    Utilities& utilities_;
    std::vector<ArcAdmission> arcs_;  // by number of the arc
};

}  // namespace acep

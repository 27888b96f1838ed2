// The features of a partial match that are known before it is made, so that it can be refused unmade (admission.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/columns.hpp"
#include "shedding/shedding_table.hpp"

namespace acep {

// The source of a register of a partial match that may be made.
struct Origin {
    int32_t slot = -1;  // of the parent
    int32_t column = -1;  // of the event, if the parent's slot is unbound
    bool held = false;  // whether the parent's slot is used
};

// A term of the utility whose number is known before the partial match is made.
struct TermRange {
    uint32_t term;
    float most, range;  // `most`: the most that this term and those after it add
    const Term* of;  // in the shedding table
    Origin a, b;
};

struct ArcAdmission {
    bool scorable = false;  // the arc's partial matches can be scored before they are made
    int64_t ends = 0;  // least error that an ending at the arc's target adds
    bool whole = true;  // all terms are known
    double later = 0;  // the most buckets that the unknown terms add
    std::vector<TermRange> terms;  // those of the largest range first
};

// A partial match that may be made: its parent's row in a list, and an event.
struct Coming {
    NodeList& parents;
    uint32_t row;
    uint32_t slots;  // of the parent
    const Event& event;
    int64_t start;
    int64_t error;
    int64_t now;
};

}  // namespace acep

// Admission in the node engine: whether its budget suffices, and the marks of new partial matches (nodes_shedding.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "shedding/shedding.hpp"

namespace acep {

struct NodeAdmission {
    int64_t nodes_before = 0;  // partial matches made before the current event
    int64_t sufficient = -1;  // the greatest sum of touches and new partial matches that the budget surely allows
    bool woke = false;  // shedding has begun, and the policy was not told yet
    uint32_t hidden = 0;  // slots that shedding adds to each partial match now
    bool clears = false;  // the current event is a match point, which clears the partial matches before it
    Mark mark;  // of partial matches that begin with the current event
    Mark own_mark;  // of the partial match that is being made
    std::vector<std::vector<uint32_t>> classes;  // by event pattern: its event classes
};

}  // namespace acep

// Base class of engines that need few transition evaluations per event, however many partial matches there are: under
// a budget they need not choose among partial matches (sampling_units.hpp).
#pragma once

#include <cstdint>
#include <limits>

#include "session/engine.hpp"

namespace acep {

// An engine whose touches can be limited: an event that would exceed the limit is not processed.
class BoundedEngine : public Engine {
public:
    using Engine::Engine;

    // The most touches in all: an event that would exceed it is not processed, and `over_limit` is set.
    int64_t limit = std::numeric_limits<int64_t>::max();
    bool over_limit = false;

    int64_t match_points = 0;  // found, counted per partition

    // Drop all partial matches of a partition; return how many chains or sums there were at time `ts`.
    virtual int64_t drop(uint32_t partition, int64_t ts) = 0;

protected:
    // Return whether the limit allows an event that takes needs() touches, which are at most `most`.
    template <class Needs>
    bool suffices(size_t most, Needs&& needs) {
        if (work_.touches <= limit - static_cast<int64_t>(most)) [[likely]]
            return true;
        over_limit = work_.touches + needs() > limit;
        return !over_limit;
    }
};

}  // namespace acep

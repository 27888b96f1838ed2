// An engine with few touches an event, whatever the number of partial matches: under a budget it need not choose among
// them, as long as the allowance suffices (sampling_units.hpp).
#pragma once

#include <cstdint>
#include <limits>

#include "session/engine.hpp"

namespace acep {

class BoundedEngine : public Engine {
public:
    using Engine::Engine;

    // An event that would need more touches in all is not looked at, and `denied` is set.
    int64_t limit = std::numeric_limits<int64_t>::max();
    bool denied = false;

    int64_t match_points = 0;  // found, each partition's for itself

    // Forgets all that waits in a partition at time `ts`: how many chains or sums that was.
    virtual int64_t drop(uint32_t partition, int64_t ts) = 0;

protected:
    // Whether an event may be looked at that takes `most` touches at most, and needs() exactly.
    template <class Needs>
    bool suffices(size_t most, Needs&& needs) {
        if (work_.touches <= limit - static_cast<int64_t>(most)) [[likely]] return true;
        denied = work_.touches + needs() > limit;
        return !denied;
    }
};

}  // namespace acep

// The partial matches of the merged engine, for a user to look at: the runs of its D-states.
#include <algorithm>

#include "merged/merged.hpp"

namespace acep {

ListedColumns Merger::list_partial_matches(const ListingRequest& request, const Partitions& partitions) const {
    PartialMatchList listed(request, arena_, partitions);
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        int64_t position = tables_.strict ? request.arrived - 1 : partitions.positions[p] - 1;  // of the last event
        if (request.holds_back) position = part.last;
        const bool broken = tables_.contiguous() && part.last != position;  // by events that no arc may bind
        int64_t low = part.low;
        if (tables_.timed()) low = std::max(low, earliest(request.clock, tables_.span));
        if (tables_.counted && !request.holds_back) low = std::max(low, earliest(position, tables_.span));
        for (const Live& live : part.live) {
            if (broken || live.chain.latest < low) continue;
            automaton_.each_place(live.state, [&](uint32_t state, int64_t error) {
                if (!request.wants(state)) return;
                listed.add({p, state, live.chain.cell, error, live.chain.latest, low, -1});
            });
        }
    }
    return listed.columns();
}

}  // namespace acep

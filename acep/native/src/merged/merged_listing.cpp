// The partial matches of the merged engine, for a user to look at: the runs of its D-states.
#include <algorithm>

#include "merged/merged.hpp"

namespace acep {

ListedColumns Merger::list_partial_matches(const ListingRequest& request, const Partitions& partitions) const {
    PartialMatchList listed(request, arena_, partitions);
    for (uint32_t p = 0; p < parts_.size(); ++p) {
        const Part& part = parts_[p];
        const int64_t last = request.last_position(tables_.strict, partitions.positions[p]);
        const bool broken = tables_.contiguous() && part.last != last;  // by an event that no arc may bind
        int64_t low = part.low;
        if (tables_.span >= 0) low = std::max(low, earliest(tables_.counted ? last : request.clock, tables_.span));
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

std::unique_ptr<Engine> MergedEngine::copy(int64_t events) const {
    auto other = std::make_unique<MergedEngine>(tables_, classifier_, partitions_);
    copy_state(*this, *other, events);
    return other;
}

}  // namespace acep

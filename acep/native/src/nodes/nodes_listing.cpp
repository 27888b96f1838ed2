// The partial matches of the node engine, for a user to look at.
#include <stdexcept>

#include "nodes/nodes.hpp"

namespace acep {
namespace {

// Throw std::invalid_argument if partial matches have no events.
void check_has_events(const NodeParts& parts) {
    if (parts.dominance) throw std::invalid_argument("with dominance, partial matches have no events");
}

}  // namespace

ListedColumns NodeEngine::list_partial_matches(const ListingRequest& request) const {
    check_has_events(parts_);
    PartialMatchList listed(request, parts_.arena, partitions_);
    const auto& partitions = parts_.store.partitions();
    const Shedding* const shed = parts_.shedding.active();
    for (uint32_t p = 0; p < partitions.size(); ++p) {
        const PartitionNodes& part = partitions[p];
        const int64_t last = request.last_position(tables_.strict, partitions_.positions[p]);
        const int64_t now = tables_.counted ? last : request.clock;
        const int64_t low = tables_.span < 0 ? NEVER : earliest(now, tables_.span);
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            if (!request.wants(s)) continue;
            auto& list = const_cast<NodeList&>(part.lists[s]);  // only read
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (list.starts()[i] < low || !matcher_.may_go_on(list, i, s, last)) continue;
                const int64_t utility = shed != nullptr ? shed->utilities.bucket_to_show(list, i, s, p, now) : -1;
                listed.add({p, s, list.cells()[i], list.errors()[i], list.starts()[i], low, utility});
            }
        }
    }
    return listed.columns();
}

std::unique_ptr<Engine> NodeEngine::copy(int64_t events) const {
    check_has_events(parts_);
    Tables tables = tables_;
    for (size_t s = 1; s < tables.states.size(); ++s) tables.states[s].slots -= parts_.shedding.hidden();
    auto other = std::make_unique<NodeEngine>(std::move(tables), classifier_, partitions_);
    if (const Shedding* const shed = parts_.shedding.any()) other->shed().set(shed->table());
    copy_state(*this, *other, events);
    return other;
}

}  // namespace acep

// The partial matches of the node engine, for a user to look at.
#include <stdexcept>

#include "nodes/nodes.hpp"

namespace acep {

ListedColumns NodeEngine::list_partial_matches(const ListingRequest& request) const {
    check_has_events();
    PartialMatchList listed(request, arena_, partitions_);
    for (uint32_t p = 0; p < store_.partitions().size(); ++p) {
        const PartitionNodes& part = store_.partitions()[p];
        const int64_t last = request.last_position(tables_.strict, partitions_.positions[p]);
        const int64_t now = tables_.counted ? last : request.clock;
        const int64_t low = tables_.span < 0 ? NEVER : earliest(now, tables_.span);
        for (uint32_t s = 0; s < part.lists.size(); ++s) {
            if (!request.wants(s)) continue;
            auto& list = const_cast<NodeList&>(part.lists[s]);  // only read
            for (uint32_t i = list.head; i < list.end; ++i) {
                if (list.starts()[i] < low || !may_go_on(list, i, s, last)) continue;
                const int64_t utility = shedding_.active() ? shedding_.active()->utility(list, i, s, p, now) : -1;
                listed.add({p, s, list.cells()[i], list.errors()[i], list.starts()[i], low, utility});
            }
        }
    }
    return listed.columns();
}

std::unique_ptr<Engine> NodeEngine::copy(int64_t events) const {
    check_has_events();
    Tables tables = tables_;
    for (size_t s = 1; s < tables.states.size(); ++s) tables.states[s].slots -= shedding_.hidden();
    auto other = std::make_unique<NodeEngine>(std::move(tables), classifier_, partitions_);
    if (shedding_.any() != nullptr) other->shed().set(shedding_.any()->table());
    copy_state(*this, *other, events);
    return other;
}

void NodeEngine::check_has_events() const {
    if (dominance_) throw std::invalid_argument("with dominance, partial matches have no events");
}

// Return whether contiguity leaves a node an arc, after the events up to a position. Events that no arc may bind are
// not passed to the engine, so they do not end nodes before another event does.
bool NodeEngine::may_go_on(NodeList& list, uint32_t row, uint32_t state, int64_t position) const {
    const int64_t between = position - list.positions()[row];
    if (!tables_.contiguous() || between <= 0) return true;
    const State& from = tables_.states[state];
    return from.ignoring.empty() && has_arc_left(tables_, from, list, row, between);
}

}  // namespace acep

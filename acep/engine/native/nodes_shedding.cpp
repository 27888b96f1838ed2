// Best effort in the node engine: what it asks of `shedding.hpp`.
#include "nodes.hpp"

namespace acep {

Shedding& NodeEngine::shed() {
    if (!shed_) {
        if (arrived != 0 || !parts_.empty()) throw std::logic_error("events have come already");
        hidden_ = Shedding::hidden;
        for (size_t s = 1; s < tables_.states.size(); ++s) {
            tables_.states[s].slots += hidden_;
            framed_[s].resize(tables_.states[s].slots, 0);
        }
        shed_ = std::make_unique<Shedding>(tables_, front_.texts, partitions_);
    }
    return *shed_;
}

bool NodeEngine::expire(NodeList& list, uint32_t state, int64_t low) {
    if (shed_ && list.sorted && shed_->logs()) {
        for (uint32_t i = list.head; i < list.end && list.starts()[i] < low; ++i) {
            shed_->died(list, i, state, shed_->expiry(list.starts()[i]), Death::expired);
        }
    }
    return list.expire(low);
}

// Forgets what has expired before a node is added, now and then.
void NodeEngine::make_room(NodeList& list, uint32_t state, int64_t low) {
    if (list.size() < list.room) return;
    keep(list, state, low + tables_.span, Death::expired, [&](uint32_t k) { return list.starts()[k] >= low; });
    list.room = std::max(Shedding::least_room, 2 * list.size());
}

// Whether an event comes in, by its classes and its place in the window of its partition.
bool NodeEngine::admits(uint32_t partition, const Event& event) {
    if (shed_->orders().admit.empty()) return true;
    while (classes_.size() <= event.pattern) {
        const auto next = static_cast<uint32_t>(classes_.size());
        classes_.emplace_back();
        for (uint32_t c = 0; c < tables_.classes; ++c) {
            if (front_.has(next, c)) classes_.back().push_back(c);
        }
    }
    int64_t oldest = key(event);
    for (const NodeList& list : parts_[partition].lists) {
        if (!list.empty()) oldest = std::min(oldest, const_cast<NodeList&>(list).starts()[list.head]);
    }
    return shed_->admits(classes_[event.pattern], partition, key(event), oldest);
}

}  // namespace acep

// The change between shedding and rest: nodes get hidden slots when the budget may be insufficient, and lose them when
// it is sufficient again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodes/frames.hpp"
#include "nodes/node_maker.hpp"
#include "nodes/node_shedding.hpp"
#include "nodes/node_store.hpp"
#include "plan/tables.hpp"

namespace acep {

class SheddingSwitch {
public:
    // All must outlive it. The numbers of slots in `tables` change with the hidden ones.
    SheddingSwitch(Tables& tables, FrameStore& frames, NodeShedding& shedding, NodeStore& store, NodeMaker& maker)
        : tables_(tables), frames_(frames), shedding_(shedding), store_(store), maker_(maker) {}

    // Begin to shed at time or position `now`, if shedding rests. Nodes so far get default values in the hidden slots.
    void begin_if_resting(int64_t now) {
        if (shedding_.resting() != nullptr) begin(now);
    }
    // Begin to shed if it rests and the budget may be insufficient for `touches` of the event at `now`; return whether
    // it did.
    bool begin_if_insufficient(size_t touches, int64_t now) {
        if (shedding_.resting() == nullptr || shedding_.suffices(touches)) return false;
        begin(now);
        return true;
    }
    // Stop to shed before an event at `now`; it is active.
    void rest(int64_t now);
    // Compute utilities that were put off by the shedding table under which the nodes were made.
    void compute_utilities();

private:
    // Begin to shed; it rests.
    void begin(int64_t now);
    // Add the hidden slots to the nodes of a list that began at `low` or later, and remove others.
    void add_slots(NodeList& list, uint32_t state, int64_t low, int64_t now) const;

    Tables& tables_;
    FrameStore& frames_;
    NodeShedding& shedding_;
    NodeStore& store_;
    NodeMaker& maker_;
};

}  // namespace acep

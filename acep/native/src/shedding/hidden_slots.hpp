// The slots that shedding adds to each partial match after its registers: the time when it was made, and its mark.
#pragma once

#include <cstdint>

#include "chains/node_list.hpp"
#include "plan/tables.hpp"
#include "shedding/mark.hpp"

namespace acep {

// Access to the last two slots of partial matches. `state` is the state of the list, whose slots include these two.
class HiddenSlots {
public:
    static constexpr uint32_t count = 2;

    explicit HiddenSlots(const Tables& tables) : tables_(tables) {}

    // Return the number of slots of a state's partial matches, with the hidden ones.
    uint32_t slots(uint32_t state) const { return tables_.states[state].slots; }
    // Return the word that holds the mark of a partial match.
    int64_t& mark_word(NodeList& list, uint32_t row, uint32_t state) const { return list.slot(slots(state) - 1)[row]; }
    // Return the mark of a partial match.
    Mark mark(NodeList& list, uint32_t row, uint32_t state) const { return Mark::of(mark_word(list, row, state)); }
    // Store the mark of a partial match.
    void set_mark(NodeList& list, uint32_t row, uint32_t state, Mark mark) const {
        mark_word(list, row, state) = mark.word();
    }
    // Return the time when a partial match was made: that of its last event.
    int64_t made_at(NodeList& list, uint32_t row, uint32_t state) const { return list.slot(slots(state) - 2)[row]; }

private:
    const Tables& tables_;
};

}  // namespace acep

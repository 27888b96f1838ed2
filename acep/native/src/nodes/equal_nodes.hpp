// Equality of partial matches by their registers, and the decision when to search for equal ones (node_merging.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "common/hash.hpp"

namespace acep {

// Return whether the registers of two rows are equal in the slots of `which`.
bool equal_registers(NodeList& nodes, uint32_t a, NodeList& others, uint32_t b, uint32_t slots, const auto& which) {
    for (const uint32_t s : which) {
        const uint8_t tag = nodes.tags(s, slots)[a];
        if (tag != others.tags(s, slots)[b]) return false;
        if (tag == value && nodes.slot(s)[a] != others.slot(s)[b]) return false;
    }
    return true;
}

// Return a hash of the registers of a row in the slots of `which`, and of a word.
uint64_t hash_registers(NodeList& nodes, uint32_t row, uint64_t hash, uint32_t slots, const auto& which) {
    for (const uint32_t s : which) {
        const uint8_t tag = nodes.tags(s, slots)[row];
        hash = mixed(hash + tag + (tag == value ? static_cast<uint64_t>(nodes.slot(s)[row]) * 3 : 0));
    }
    return mixed(hash);
}

// A trial of a search, to see whether it pays off: it succeeded for `met` of the last `seen` new partial matches of a
// state. If it succeeds for too few of `size`, it pauses while 16 times as many are made.
struct Trial {
    static constexpr uint32_t size = 256;
    static constexpr uint32_t most_rest = 16 * size;
    uint32_t seen = 0, met = 0, rest = 0;  // rest: partial matches until the next trial

    // Return whether the search pauses for one more partial match.
    bool pauses() { return rest != 0 && rest-- != 0; }
    // End a trial, with a pause if it does not pay.
    void end(bool pays) {
        if (!pays) rest = most_rest;
        seen = met = 0;
    }
    // Write or read the numbers. All values are safe, as they only control how long to search.
    static void fields(auto& self, auto& archive, int64_t most) {
        archive.at_most(most, self.seen, self.met);
        archive.at_most(most_rest, self.rest);
    }
};

// The search for an equal partial match of an earlier event.
struct EqualNodeSearch : Trial {
    bool possible = false;  // nodes of different events may be equal
    bool often = false;  // at least 15 in 16 of the last trial found one, so lists may become unsorted for it
    uint32_t joined = 0;  // how many were united with the one found

    // Write or read the numbers.
    static void fields(auto& self, auto& archive) {
        archive.at_most(size - 1, self.seen, self.met, self.joined);
        archive.at_most(most_rest, self.rest);
        archive.at_most(1, self.often);
    }
};

}  // namespace acep

// The equalities of an arc between registers and attributes of the event: the key by which partial matches are found.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "chains/node_list.hpp"
#include "expression/vm.hpp"
#include "plan/tables.hpp"

namespace acep {

struct RegisterKey {
    struct Part {
        uint32_t slot;
        uint32_t column;  // of the event
        bool doubles;
        bool operator==(const Part&) const = default;
    };
    std::vector<Part> parts;  // none: the arc has no such equality
    uint32_t number = 0;      // of the index among those of the state
    std::vector<Check> leaving, binding;  // what the arc asks beyond the key

    bool empty() const { return parts.empty(); }
};

// Return the key of an arc; the number of its index is not set.
RegisterKey register_key(const Arc& arc, const std::vector<BlockProgram>& programs);

// Return a word that is equal for equal values: the two zeros are equal.
inline int64_t canonical(int64_t word, bool doubles) { return doubles && std::bit_cast<double>(word) == 0 ? 0 : word; }

// Return whether two words are equal as values.
inline bool equal_words(int64_t a, int64_t b, bool doubles) {
    return doubles ? std::bit_cast<double>(a) == std::bit_cast<double>(b) : a == b;
}

}  // namespace acep

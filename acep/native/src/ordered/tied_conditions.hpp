// Conditions of rows that also read the first row of the match (docs/internals/row_patterns.md, "SASE+ queries").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/texts.hpp"
#include "expression/vm.hpp"

namespace acep {

// A column that a condition reads: the value of the row, or that of the first row. `valid`: 0 where it is null.
struct TiedInput {
    const int64_t* values;
    const uint8_t* valid;
    bool of_first;
};

// A condition on a row and the first row: a program, and the columns that are its inputs.
struct TiedCondition {
    BlockProgram program;
    std::vector<TiedInput> inputs;
};

// The conditions for one first row at a time. They are computed for blocks of rows as these are asked for.
class TiedConditions {
public:
    TiedConditions(std::vector<TiedCondition> conditions, const Texts* texts, size_t rows);

    // Go on with another first row.
    void begin(size_t first);
    // Return whether a condition holds for a row from the first one on.
    bool hold(uint32_t condition, size_t row);

private:
    // The rows from the first one on for which a condition is computed.
    struct Computed {
        std::vector<uint8_t> bits;
        size_t size = 0;
    };

    // Compute a condition for further rows: as many as before, so that a short match costs little.
    void compute(uint32_t condition);

    std::vector<TiedCondition> conditions_;
    const Texts* texts_;
    size_t rows_, first_ = 0;
    std::vector<Computed> computed_;  // by condition
    std::vector<Leaf> leaves_;
    Scratch scratch_;
};

}  // namespace acep

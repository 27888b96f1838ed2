// The order of the output: matches are sorted by end, then ids in stream order, then the names of their variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace acep {

// n matches: match i binds the events offsets[i] to offsets[i + 1], m in all. ranks: rank of each variable by name.
struct Trails {
    size_t n, m, variables;
    const int64_t* end;
    const int64_t* offsets;
    const int64_t* ids;
    const uint16_t* vars;
    const uint16_t* ranks;
};

// Throw std::invalid_argument unless the offsets rise from 0 to m.
void check(const Trails& trails);

// Whether the matches are in order. This and `output_order` need trails that were checked, and throw
// std::invalid_argument for a variable without a rank, if they compare it.
bool in_order(const Trails& trails);

// Return the numbers of the matches in output order; equal matches keep their order.
std::vector<int64_t> output_order(const Trails& trails);

}  // namespace acep

// The order of the output: matches by end, then ids in stream order, then the names of their variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace acep {

// n matches of which match i binds the events offsets[i] to offsets[i + 1], m in all; ranks: of each variable, by name.
struct Trails {
    size_t n, m, variables;
    const int64_t* end;
    const int64_t* offsets;
    const int64_t* ids;
    const uint16_t* vars;
    const uint16_t* ranks;
};

// Throws std::invalid_argument where offsets are not from 0 to m and rising.
void check(const Trails& trails);

// Whether the matches are in order. This and `output_order` throw std::invalid_argument for a variable without a rank
// that they meet, and take trails that were checked.
bool in_order(const Trails& trails);

// Where the matches come from when they are in order; equal ones stay as they are.
std::vector<int64_t> output_order(const Trails& trails);

}  // namespace acep

// The order of the output: matches are sorted by end, then ids in stream order, then the names of their variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace acep {

// The bound events of `n` matches, `m` events in all: those of match i are at [offsets[i], offsets[i + 1]) of `ids` and
// `vars`. `ranks` has the rank of each variable by its name.
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

// Return whether the matches are in order. This function and `output_order` need trails that `check` has accepted. They
// throw std::invalid_argument if they compare a variable that has no rank.
bool in_order(const Trails& trails);

// Return whether match i of some trails comes before match j of others in output order. All that `in_order` needs holds
// of both.
bool precedes(const Trails& some, size_t i, const Trails& others, size_t j);

// Return the numbers of the matches in output order; equal matches keep their order.
std::vector<int64_t> output_order(const Trails& trails);

// Return a hash of each match: of its events, and of its value in each of the `columns`.
std::vector<int64_t> contents(const Trails& trails, const std::vector<const int64_t*>& columns);

// The places of numbers that `come`, as they were not there before, and the places of those that are `gone`.
struct Changes {
    std::vector<int64_t> come, gone;
};

// Compare the numbers in some `places` with those of `now`. Equal numbers count as one.
Changes changes(std::vector<int64_t> places, const int64_t* numbers, std::span<const int64_t> now);

}  // namespace acep

// Matches gathered from several places: those that a revision takes back, and those that it gives.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/order.hpp"

namespace acep {

// Some rows of matches that are kept together. `numbers`: what else is known of each match.
struct MatchPart {
    static constexpr size_t number_count = 3;

    Trails trails;
    std::array<const int64_t*, number_count> numbers;
    std::span<const int64_t> rows;
};

// Matches, and for each of them (`source`) which of the rows that were asked for it is.
struct Gathered {
    std::array<std::vector<int64_t>, MatchPart::number_count> numbers;
    std::vector<int64_t> end, offsets{0}, ids, source;
    std::vector<uint16_t> vars;
};

// Return the rows of the first `back` parts in output order, followed by those of the other parts in output order.
// The parts need trails that `check` has accepted. Throw std::out_of_range for a row that is not there.
Gathered gathered(std::span<const MatchPart> parts, size_t back);

}  // namespace acep

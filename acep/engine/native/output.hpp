// What an engine gives: matches as columns, or a row for each match point.
#pragma once

#include <cstdint>
#include <vector>

#include "pooled.hpp"

namespace acep {

// Matches in the order in which they were completed. Trails are in stream order.
struct Output {
    Numbers<int64_t> start, end, error, bundle;  // n each; errors scaled
    Numbers<int64_t> keys;                       // n times the number of key columns
    Numbers<int64_t> offsets{0};                 // n + 1, into ids and vars
    Numbers<int64_t> ids;
    Numbers<uint16_t> vars;
    Numbers<int64_t> values;   // n times the number of RETURN values
    Numbers<uint8_t> valid;    // as `values`

    bool ordered = false;      // surely in the order of the output, as far as ids are concerned
    bool uniform = false;      // all matches bind the same variables in the same order:
    std::vector<uint16_t> shape;

    size_t size() const { return start.size(); }
};

// Of one partition: the last match point given, and the first one of its bundle (Definition 3 of the 2016 paper).
struct Bundle {
    int64_t last_ts = 0;
    int64_t last_position = 0;
    int64_t first = 0;
    bool any = false;

    int64_t at(int64_t ts, int64_t position, int64_t span, bool counted) {
        // Neither time nor position falls, so that the difference fits as it is unsigned.
        auto gap = counted ? static_cast<uint64_t>(position) - static_cast<uint64_t>(last_position)
                           : static_cast<uint64_t>(ts) - static_cast<uint64_t>(last_ts);
        if (!any || (span >= 0 && gap > static_cast<uint64_t>(span))) first = ts;
        any = true;
        last_ts = ts;
        last_position = position;
        return first;
    }
};

}  // namespace acep

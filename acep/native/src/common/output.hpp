// The output of an engine: matches as columns, or counts of matches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/pooled.hpp"

namespace acep {

// Counts of matches that are not written: their number, and a row for each match point or match bundle. One of these
// may have several rows if rows were taken in between.
struct Tally {
    enum Kind : int64_t { off = 0, count = 1, points = 2, bundles = 3 };
    Kind kind = off;
    int64_t total = 0;
    Numbers<int64_t> keys, first, last, bundle, error, many;
    std::vector<uint32_t> row;  // by partition: the number of its last row plus one; 0: none

    void add(uint32_t partition, const int64_t* key, size_t width, int64_t end, int64_t in, int64_t cost) {
        ++total;
        if (kind == count) return;
        if (row.size() <= partition) row.resize(size_t{partition} + 1);
        if (row[partition] != 0) {
            const size_t at = row[partition] - size_t{1};
            if (bundle[at] == in && (kind == bundles || last[at] == end) &&
                std::equal(key, key + width, keys.data() + at * width)) {
                last[at] = std::max(last[at], end);
                error[at] = std::min(error[at], cost);
                ++many[at];
                return;
            }
        }
        keys.insert(keys.end(), key, key + width);
        first.push_back(kind == bundles ? in : end);
        last.push_back(end);
        bundle.push_back(in);
        error.push_back(cost);
        many.push_back(1);
        row[partition] = static_cast<uint32_t>(first.size());
    }
};

// Matches in the order of their completion; the events of each are in stream order.
struct Output {
    Numbers<int64_t> start, end, error, bundle;  // n each; errors scaled
    Numbers<int64_t> keys;                       // n times the number of key columns
    Numbers<int64_t> offsets{0};                 // n + 1, into ids and vars
    Numbers<int64_t> ids;
    Numbers<uint16_t> vars;
    Numbers<int64_t> values;   // n times the number of RETURN values
    Numbers<uint8_t> valid;    // as `values`

    bool ordered = false;      // certainly in output order, as far as ids are concerned
    bool uniform = false;      // all matches bind the same variables in the same order:
    std::vector<uint16_t> shape;

    Tally tally;

    void clear_matches() {
        for (auto* column : {&start, &end, &error, &bundle, &keys, &ids, &values}) column->clear();
        vars.clear();
        valid.clear();
        offsets = {0};
    }
    size_t size() const { return start.size(); }
    // The number of matches, with those that were only counted.
    size_t given() const { return size() + static_cast<size_t>(tally.total); }
};

// The last match point of a partition, and the first one of its bundle (Definition 3 of the 2016 paper).
struct Bundle {
    int64_t last_ts = 0;
    int64_t last_position = 0;
    int64_t first = 0;
    bool any = false;

    int64_t at(int64_t ts, int64_t position, int64_t span, bool counted) {
        // Neither time nor position falls, so the difference fits in an unsigned word.
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

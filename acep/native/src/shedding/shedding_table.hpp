// The shedding table: the decision of a policy about the utility of partial matches, and about how to rank them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace acep {

// A term of a new partial match's utility: a number computed from its registers, and the utility buckets that are added
// to the bucket of its match vector, by bin of that number.
struct Term {
    // Its number is a register, the ratio or the difference of two, or a hash: of a register, of the partition's
    // key, or of a text.
    enum Kind : int64_t { held = 0, ratio = 1, difference = 2, hashed = 3, partition = 4, text = 5 };
    static constexpr uint32_t buckets = 1024;  // of hashed values
    static constexpr size_t few = 16;  // up to so many bounds are searched linearly
    Kind kind = held;
    uint32_t a = 0, b = 0;  // slots
    bool a_floats = false, b_floats = false;
    std::vector<double> bounds;  // rising; unused for hashed values
    std::vector<float> utility;  // utility buckets by bin; the last one: no number; empty: the number is only logged

    // Return the utility buckets that a number (NaN: none) adds.
    float of(double x) const {
        if (std::isnan(x)) return utility.back();
        if (kind >= hashed) return utility[static_cast<size_t>(x)];
        size_t bin = 0;
        if (bounds.size() > few) {
            bin = static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), x) - bounds.begin());
        } else {  // without branches
            for (const double bound : bounds) bin += bound <= x ? size_t{1} : size_t{0};
        }
        return utility[bin];
    }
};

// The decision of a policy: a bucket for each match vector, and how the partial matches of a list are ranked.
struct SheddingTable {
    // Which partial matches of one bucket come first.
    enum Ties : int64_t { newest = 0, oldest = 1, random = 2 };
    static constexpr size_t ages = 16;  // bins of the number of later partial matches: 0, 1, 2 to 3, 4 to 7, ...
    static constexpr int64_t most_level = 254;  // the highest utility bucket of a partial match

    int64_t errors = 1, windows = 1, waits = 1, features = 1;  // sizes of the grid of match vectors
    std::vector<uint8_t> level;  // by match vector: the utility bucket; 0: no utility
    std::vector<int8_t> later;  // by state, and bin of the number made in its list since: buckets added
    std::vector<double> decay;  // by state: buckets that each better partial match of its list subtracts
    std::vector<std::vector<Term>> terms;  // by state
    size_t most_terms = 0;
    uint32_t key_texts = 0;  // a bit for each part of the key that is a text
    int64_t error_step = 1;  // scaled error per bin of the grid
    std::vector<uint8_t> admit;  // by event class and place in the window: bucket of an event; empty: admit all
    int64_t places = 1;  // bins of the time since the oldest start of the partition
    Ties ties = newest;  // which partial matches of one bucket stay
    int64_t noise = 0;  // random buckets added to each partial match and event: 0 .. noise - 1
    double first_threshold = 0;  // utility threshold before the first event
    bool clears = false;  // a match point removes all partial matches of its partition that began before it
    uint64_t sample = 0;  // how many starts of 2^32 are logged with all their descendants
    uint64_t shadow = 0;  // how many sampling units of 2^32 are in the shadow sample
};

}  // namespace acep

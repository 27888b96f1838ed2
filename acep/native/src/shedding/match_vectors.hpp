// The grid of match vectors: the bins of error, remaining window, time since the last event and registers by which
// partial matches count as alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/tables.hpp"
#include "shedding/shedding_table.hpp"

namespace acep {

// Return now - then without overflow, as a loaded state may hold any times.
inline int64_t apart(int64_t now, int64_t then) {
    return static_cast<int64_t>(static_cast<uint64_t>(now) - static_cast<uint64_t>(then));
}

// The numbers of match vectors, for the sizes that a shedding table sets.
class MatchVectors {
public:
    // Take over the sizes of a shedding table, and compute the bounds of the bins once, as they are used very often.
    void set(const SheddingTable& table, int64_t span);

    // Return the number of the match vector of a partial match of `state` at `now`. `made`: time of its last event.
    size_t at(uint32_t state, int64_t error, int64_t start, int64_t made, uint8_t feature, int64_t now) const {
        const int64_t errors = errors_ == 1 ? 0 : std::min(error / error_step_, errors_ - 1);
        int64_t window = 0, wait = 0;
        if (span_ >= 0) {
            window = window_at(apart(now, start));
            const int64_t since = apart(now, made);
            for (const int64_t bound : wait_bounds_) wait += since >= bound ? 1 : 0;
        }
        const int64_t place = ((state * errors_ + errors) * windows_ + window) * waits_ + wait;
        return static_cast<size_t>(place * features_ + (feature * features_ >> 8));
    }

private:
    // Return the bin of the time left in the window: `window_by` from its definition, `window_at` from stored bounds.
    int64_t window_by(int64_t age) const {
        const auto rest = static_cast<double>(apart(span_, age)), windows = static_cast<double>(windows_);
        const auto bin = static_cast<int64_t>(rest * windows / (static_cast<double>(span_) + 1));
        return std::clamp<int64_t>(bin, 0, windows_ - 1);
    }
    int64_t window_at(int64_t age) const {
        if (windows_ == 1) return 0;
        if (window_bounds_.empty() || age < 0 || age > span_) return window_by(age);
        // Rounding changes the bin by at most one.
        const auto rest = static_cast<double>(span_ - age);
        const int64_t near = std::min(static_cast<int64_t>(rest * bins_a_tick_), windows_ - 1);
        const int64_t* end = window_bounds_.data() + near;
        return near - (age >= end[0] ? 1 : 0) + (age < end[1] ? 1 : 0);
    }

    int64_t span_ = -1;  // of the window; -1: none
    int64_t errors_ = 1, error_step_ = 1, windows_ = 1, waits_ = 1, features_ = 1;
    std::vector<int64_t> window_bounds_;  // by bin: the least age that is in a lower bin; -1 at the end
    double bins_a_tick_ = 0;
    std::vector<int64_t> wait_bounds_;  // rising
};

}  // namespace acep

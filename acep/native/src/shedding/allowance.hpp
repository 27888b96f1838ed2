// The allowance of touches, and the numbers by which the utility threshold follows what is spent of it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace acep {

// The touches that a budget grants: a rate from event `since` on, after a sum granted before it.
struct Allowance {
    double rate = -1;  // touches per event; negative: unlimited
    double granted = 0;  // touches granted up to event `since`
    double most_carried = 0;  // the most unused touches that are carried over
    int64_t since = 0;

    // Return the touches granted up to event `seen`.
    double up_to(int64_t seen) const { return granted + rate * static_cast<double>(seen - since); }
    // Return the touches kept for bursts: those of `events` events, or half of `most_carried` if that is less.
    double reserve(double events) const { return std::min(rate * events, most_carried / 2); }
};

// The numbers by which the utility threshold follows the touches that are spent.
struct ThresholdPace {
    int64_t events = 0, spent = 0;  // events, and touches spent, when it was last updated
    int64_t sampled = 0;  // touches of the shadow sample at that time
    double step = 4;  // buckets by which the threshold rises if no budget is left
    double surge = 0;  // part of the threshold that was added in such rises, and decays
    double mean = 0;  // recent touches per event, without the shadow sample
    double sample_mean = 0;  // recent touches per event in the shadow sample
    int64_t shortfall = 0;  // touches for which no budget was left since it was last updated
    bool calm = false;  // nothing needs to be dropped for some time
};

}  // namespace acep
